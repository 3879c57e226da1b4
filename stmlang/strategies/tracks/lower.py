"""Tracks: chains whose transition mixes the tracks of a state, in chunks that are blocks with an edge for each track.

A node is a block as in `stmlang.lower.summary`: its writes are the sources, its reads the targets, and where an edge enters or
leaves there is one for each track. Chunks are merged pair by pair, all at once, to `(S, T, M, G)`, where with `T[n]` the matrix
of node n

    G[m, n] = mark[n] . T[n-1] ... T[m+1] source[m]        S[m] = T[last] ... T[m+1] source[m]
    M[n]    = mark[n] T[n-1] ... T[first]                  T    = T[last] ... T[first]

A source and a target meet once, where their blocks are merged, so that this is `N c` numbers of so many products as there are
tracks. What states pass and what is read of them follows as for any block:

    H  =  ((Q K^T) o G^T) V  +  sum over tracks of M[track] Q C[track]            C' = T C + S K^T V

Nothing is divided and no logarithm is taken: transitions may be zero, singular or orthogonal.
"""

from __future__ import annotations

from typing import NamedTuple, Self, cast

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from stmlang.cost.chains import Chunk
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.attention import masked_attention
from stmlang.lower.contractions import matmul, transposed
from stmlang.lower.operands import Operands
from stmlang.lower.strategy import LoweringContext, Tables, no_tables
from stmlang.lower.summary import Summary, advance, read, write

FEW = 8
"""So many terms are added up one by one: there are many blocks, and each is too small for a matrix kernel."""


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    chunking = _Chunking.of(operands, cast(Chunk, context.settings))
    block = _merged(_nodes(operands, chunking, initial.shape[3]))
    query, key, value = (_terms(chunking.apart(array)) for array in operands.inputs)
    written = write(block.source, key, value)
    entering, final = _passed(block.transition, written, initial.reshape(-1, *initial.shape[-3:]))
    outputs = masked_attention(query, key, value, block.gating) + read(block.mark, query, entering)
    return chunking.together(outputs, operands.query.shape), final.reshape(initial.shape)


class _Chunking(NamedTuple):
    """A chain of so many nodes as `chunks` of `size`."""

    nodes: int
    size: int
    chunks: int

    @classmethod
    def of(cls, operands: Operands, settings: Chunk) -> Self:
        nodes = operands.value.shape[2]
        return cls(nodes, settings.chunk, settings.count(nodes))

    def apart(self, array: Float[Array, "direction head node *rest"]) -> Float[Array, "lane chunk place *rest"]:
        """Filled up with zeros."""
        widths = [(0, 0)] * array.ndim
        widths[2] = (0, self.chunks * self.size - self.nodes)
        return jnp.pad(array, widths).reshape(-1, self.chunks, self.size, *array.shape[3:])

    def together(self, array: Float[Array, "lane chunk target value"], query: tuple[int, ...]) -> Array:
        """What targets read as the outputs of nodes, which have the shape of queries up to the last axis."""
        whole = array.reshape(*query[:2], self.chunks * self.size, *query[3:-1], array.shape[-1])
        return whole[:, :, : self.nodes]

    @property
    def beyond(self) -> Bool[Array, "chunk place"]:
        """Which places hold no node."""
        places = jnp.arange(self.chunks * self.size) >= self.nodes
        return places.reshape(self.chunks, self.size)


def _terms(array: Float[Array, "lane chunk place *term index"]) -> Float[Array, "lane chunk term index"]:
    """What nodes write or read, node by node."""
    return array.reshape(*array.shape[:2], -1, array.shape[-1])


# --- the blocks of the chunks ----------------------------------------------------------------------------------------


def _nodes(operands: Operands, chunking: _Chunking, tracks: int) -> Summary:
    """Every node as a block `(lane, chunk, place, ., .)`. Those beyond the chain pass every state on."""

    def by_term(gate: Array, several: bool) -> Float[Array, "lane chunk place term track"]:
        terms = gate.shape[4 : 4 + several]
        numbers = gate.reshape(*gate.shape[:3], *(terms or (1,)), gate.shape[-2])
        return chunking.apart(jnp.broadcast_to(numbers, (*numbers.shape[:-1], tracks)))

    source = by_term(operands.source, operands.key.ndim > 4)
    mark = by_term(operands.mark, operands.query.ndim > 4)
    gate = operands.transition
    numbers = gate.reshape(*gate.shape[:3], *gate.shape[-2:])
    identity = jnp.eye(tracks, dtype=source.dtype)[None, None, None]
    if gate.shape[-1] == 1:
        numbers = numbers * identity
    passed = jnp.where(chunking.beyond[None, ..., None, None], identity, chunking.apart(transposed(numbers)))
    nothing = jnp.zeros((*source.shape[:-1], mark.shape[-2]), source.dtype)
    return Summary(source, passed, transposed(mark), nothing)


def _merged(blocks: Summary) -> Summary:
    """The blocks that stand along the third axis as one, `(lane, chunk, ., .)`."""
    while blocks.source.shape[2] > 1:
        first, second = (Summary(*(array[:, :, side::2] for array in blocks)) for side in (0, 1))
        blocks = _joined(first, second)
    return Summary(*(jnp.squeeze(array, 2) for array in blocks))


def _joined(a: Summary, b: Summary) -> Summary:
    """`stmlang.lower.summary.merge` where all edges that leave the first enter the second."""
    across = jnp.concatenate([a.gating, _product(a.source, b.mark)], axis=-1)
    later = jnp.pad(b.gating, [(0, 0)] * (b.gating.ndim - 1) + [(a.gating.shape[-1], 0)])
    return Summary(
        jnp.concatenate([_product(a.source, b.transition), b.source], axis=-2),
        _product(a.transition, b.transition),
        jnp.concatenate([a.mark, _product(a.transition, b.mark)], axis=-1),
        jnp.concatenate([across, later], axis=-2),
    )


def _multiplied(a: Float[Array, "*batch row inner"], b: Float[Array, "*batch inner column"]) -> Array:
    """`a b`."""
    inner = a.shape[-1]
    if inner > FEW:
        return matmul(a, b)
    terms = [a[..., :, k, None] * b[..., None, k, :] for k in range(inner)]
    return sum(terms[1:], start=terms[0])


def _forward(a: Array, b: Array) -> tuple[Array, tuple[()]]:
    return _multiplied(a, b), ()


def _backward(arguments: tuple[Array, Array], saved: tuple[()], cotangent: Array) -> tuple[Array, Array]:
    del saved
    a, b = arguments
    return _multiplied(cotangent, transposed(b)), _multiplied(transposed(a), cotangent)


_product = with_adjoint(_multiplied, _forward, _backward)
"""`a b`, whose adjoint is two such products: by default it would be sums over rows and over columns, one for each track."""


# --- the states between chunks ---------------------------------------------------------------------------------------


def _passed(
    transition: Float[Array, "lane chunk track track"],
    written: Float[Array, "lane chunk track key value"],
    initial: Float[Array, "lane track key value"],
) -> tuple[Float[Array, "lane chunk track key value"], Float[Array, "lane track key value"]]:
    """The states that enter the chunks, and the one that leaves the last."""

    def step(state: Array, chunk: tuple[Array, Array]) -> tuple[Array, Array]:
        through, added = chunk
        return advance(through, state) + added, state

    final, entering = lax.scan(step, initial, (jnp.moveaxis(transition, 1, 0), jnp.moveaxis(written, 1, 0)))
    return jnp.moveaxis(entering, 0, 1), final


LOWERING = direction_by_direction(no_tables, _run)
