"""What a piece of a DAG is to the rest of it: summaries, which can be merged, turned around, applied and made dense.

There are two, and both form a monoid: merging is associative, and what holds no nodes is neutral.

* A `Summary` knows the gates of a piece and no inputs. It holds for any border and for gates that are one number each.
* A `Passage` knows the inputs as well, and of the piece only how states pass it, `C -> T C + W`. That is all that another
  device needs to know of a piece whose nodes it does not hold (`stmlang.lower.exchange`). It holds for gates of every form:
  those that are elementwise on a state axis have lanes along it, matrices mix the numbers along theirs, and columns along which
  gates are the same are alike. What nodes read needs no summary then: the piece is evaluated where it lies, from the state that
  enters.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from stmlang.lower.attention import masked_attention
from stmlang.lower.contractions import matmul, transposed
from stmlang.lower.tables import Indices, select


class Summary(NamedTuple):
    """A convex set of nodes as one node with matrix gates (paper, appendix on hierarchical parallelization).

    `source[n, o]`: what node n's input contributes to leaving edge o; `transition[i, o]`: what entering edge i passes on to o;
    `mark[i, n]`: what node n reads of i; `gating[m, n]`: what node n reads of node m's input, `direct` left out. These are
    sums over all paths inside the set. Nodes are in a topological order. Axes in front are batches.
    """

    source: Float[Array, "*batch node leaving"]
    transition: Float[Array, "*batch entering leaving"]
    mark: Float[Array, "*batch entering node"]
    gating: Float[Array, "*batch node node"]


class Wiring(NamedTuple):
    """Which edges of two pieces meet: positions in the first one's leaving and the second one's entering edges. Those `passed`
    are those `taken`, one by one; the others are `kept` and `fresh`."""

    kept: Indices
    passed: Indices
    taken: Indices
    fresh: Indices


def straight_wiring(edges: int) -> Wiring:
    """Every edge that leaves the first piece enters the second one, in the same order, as on chains."""
    none, every = np.zeros(0, np.int32), np.arange(edges, dtype=np.int32)
    return Wiring(none, every, every, none)


def no_nodes(edges: int, dtype: DTypeLike) -> Summary:
    """The summary of no nodes, which so many edges pass: neutral where they all are joined."""
    shapes = ((0, edges), (edges, 0), (0, 0))
    source, mark, gating = (jnp.zeros(shape, dtype) for shape in shapes)
    return Summary(source, jnp.eye(edges, dtype=dtype), mark, gating)


def merge(a: Summary, b: Summary, wiring: Wiring) -> Summary:
    """Piece a before piece b, as one piece: a's entering edges and b's fresh ones, a's kept and b's leaving ones.

    With `ab` the edges from a to b, `ax` the others that leave a, `xb` the others that enter b (on a chain the paper's 1-D
    recursion, on a grid its 2-D one, on a DAG its hierarchical form):

        S = [ S_a[:,ax]   S_a[:,ab] T_b[ab,:] ]      T = [ T_a[:,ax]   T_a[:,ab] T_b[ab,:] ]
            [    0              S_b           ]          [    0            T_b[xb,:]       ]

        M = [ M_a   T_a[:,ab] M_b[ab,:] ]            G = [ G_a   S_a[:,ab] M_b[ab,:] ]
            [  0         M_b[xb,:]      ]                [  0          G_b           ]
    """
    source_ab, transition_ab = select(a.source, wiring.passed, -1), select(a.transition, wiring.passed, -1)
    transition_b, mark_b = select(b.transition, wiring.taken, -2), select(b.mark, wiring.taken, -2)
    return Summary(
        _upper(select(a.source, wiring.kept, -1), matmul(source_ab, transition_b), b.source),
        _upper(
            select(a.transition, wiring.kept, -1),
            matmul(transition_ab, transition_b),
            select(b.transition, wiring.fresh, -2),
        ),
        _upper(a.mark, matmul(transition_ab, mark_b), select(b.mark, wiring.fresh, -2)),
        _upper(a.gating, matmul(source_ab, mark_b), b.gating),
    )


def _upper(a: Array, across: Array, b: Array) -> Array:
    """`[[a, across], [0, b]]`."""
    if a.shape[-1] == 0:
        return across if b.shape[-2] == 0 else jnp.concatenate([across, b], axis=-2)
    top = jnp.concatenate([a, across], axis=-1)
    if b.shape[-2] == 0:
        return top
    padding = [(0, 0)] * (b.ndim - 1) + [(a.shape[-1], 0)]
    return jnp.concatenate([top, jnp.pad(b, padding)], axis=-2)


def reversed_summary(piece: Summary) -> Summary:
    """That of the graph with all edges turned around. Nodes and edges keep their places."""
    source, transition, mark, gating = map(transposed, piece)
    return Summary(mark, transition, source, gating)


def dense(piece: Summary) -> Float[Array, "*batch entering_and_node leaving_and_node"]:
    """`[[T, M], [S, G]]`: what edges that leave and nodes that read get of each edge that enters and each node that writes."""
    top = jnp.concatenate([piece.transition, piece.mark], axis=-1)
    return jnp.concatenate([top, jnp.concatenate([piece.source, piece.gating], axis=-1)], axis=-2)


# --- a summary meets inputs and states -------------------------------------------------------------------------------


def read(mark: Array, query: Array, state: Array) -> Array:
    """`h[n] = q[n] . sum over i of mark[i, n] C[i]`, the states `(*batch, entering, key, value)` being those that enter."""
    *batch, entering, key, value = state.shape
    weighted = transposed(mark)[..., :, :, None] * query[..., :, None, :]
    flat = weighted.reshape(*weighted.shape[:-2], entering * key)
    return matmul(flat, state.reshape(*batch, entering * key, value))


def write(source: Array, key: Array, value: Array) -> Array:
    """`C[o] = sum over n of source[n, o] outer(k[n], v[n])`: (*batch, leaving, key, value)."""
    weighted = transposed(source)[..., :, None, :] * transposed(key)[..., None, :, :]
    *batch, leaving, size, nodes = weighted.shape
    flat = matmul(weighted.reshape(*batch, leaving * size, nodes), value)
    return flat.reshape(*batch, leaving, size, value.shape[-1])


def advance(transition: Array, state: Array) -> Array:
    """`C[o] = sum over i of transition[i, o] C[i]`."""
    *batch, entering, key, value = state.shape
    flat = matmul(transposed(transition), state.reshape(*batch, entering, key * value))
    return flat.reshape(*flat.shape[:-1], key, value)


def leaving_states(source: Array, transition: Array, key: Array, value: Array, state: Array) -> Array:
    """The states that leave, `(*batch, leaving, key, value)`: what nodes write and what passes."""
    return advance(transition, state) + write(source, key, value)


def apply(piece: Summary, query: Array, key: Array, value: Array, state: Array) -> tuple[Array, Array]:
    """What nodes read, `(*batch, node, value)`, and the states that leave, of inputs and of the states that enter."""
    outputs = masked_attention(query, key, value, piece.gating) + read(piece.mark, query, state)
    return outputs, leaving_states(piece.source, piece.transition, key, value, state)


# --- how states pass -------------------------------------------------------------------------------------------------


class Passage(NamedTuple):
    """`C' = T C + W` lane by lane, of states laid out as in `stmlang.cost.exchange`: `T` mixes numbers in the same way for all
    columns that are `free` of it."""

    transition: Float[Array, "*lane mixed mixed"]
    written: Float[Array, "*lane mixed free"]


def no_passage(like: Passage) -> Passage:
    """The neutral passage, of states as those of another."""
    size = like.transition.shape[-1]
    unit = jnp.broadcast_to(jnp.eye(size, dtype=like.transition.dtype), like.transition.shape)
    return Passage(unit, jnp.zeros_like(like.written))


def pass_states(passage: Passage, state: Float[Array, "*lane mixed free"]) -> Array:
    """The states that leave."""
    return matmul(passage.transition, state) + passage.written


def merge_passages(a: Passage, b: Passage) -> Passage:
    """Through a and then through b."""
    return Passage(matmul(b.transition, a.transition), pass_states(b, a.written))
