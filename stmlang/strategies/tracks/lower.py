"""Tracks: chains whose transition mixes the tracks of a state, in chunks that are blocks with an edge for each track.

The writes of nodes are sources, their reads targets, and where an edge enters or leaves a block there is one for each track. A
block is the matrix by which targets and leaving edges get what entering edges bring and sources write. With `T[n]` the
transition of node n

    M[n]  =  mark[n] T[n-1] ... T[first]          G[n, m]  =  mark[n] T[n-1] ... T[m+1] source[m]
    T     =  T[last] ... T[first]                 S[m]     =  T[last] ... T[m+1] source[m]

Chunks are merged pair by pair, all at once. A source and a target meet once, where their blocks are merged, so that this is
`N c` numbers of so many products as there are tracks. What nodes read and what states pass follows:

    H  =  ((Q K^T) o G) V  +  sum over tracks of M[., track] Q C[track]            C' = T C + sum over nodes of S K^T V

Nothing is divided and no logarithm is taken: transitions may be zero, singular or orthogonal.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self, cast

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from stmlang.cost.chains import Chunk
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import matmul, transposed
from stmlang.lower.no_fusion import apart
from stmlang.lower.operands import Operands
from stmlang.lower.strategy import LoweringContext, Tables, no_tables

FEW = 8
"""So many terms are added up one by one: there are many blocks, and each is too small for a matrix kernel."""


class Block(NamedTuple):
    """What targets get, and behind them leaving edges: of entering edges, and of sources."""

    of_entering: Float[Array, "*batch target_leaving entering"]
    of_sources: Float[Array, "*batch target_leaving source"]

    @property
    def targets(self) -> int:
        rows, tracks = self.of_entering.shape[-2:]
        return rows - tracks

    @property
    def read(self) -> tuple[Float[Array, "*batch target entering"], Float[Array, "*batch target source"]]:
        """`M` and `G`."""
        return self.of_entering[..., : self.targets, :], self.of_sources[..., : self.targets, :]

    @property
    def leaving(self) -> tuple[Float[Array, "*batch leaving entering"], Float[Array, "*batch leaving source"]]:
        """`T` and `S`."""
        return self.of_entering[..., self.targets :, :], self.of_sources[..., self.targets :, :]


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    tracks, keys, values = initial.shape[3:]
    chunking = _Chunking.of(operands, cast(Chunk, context.settings))
    block = _merged(_nodes(operands, chunking, tracks))
    (mark, gating), (transition, source) = block.read, block.leaving
    query, key, value = (_terms(chunking.apart(array)) for array in operands.inputs)
    key = transposed(key)
    lead = query.shape[:2]
    carried = (source[..., :, None, :] * key[..., None, :, :]).reshape(*lead, tracks * keys, -1)
    asked = (mark[..., :, :, None] * query[..., :, None, :]).reshape(*lead, -1, tracks * keys)
    written = matmul(carried, value).reshape(*lead, tracks, keys * values)
    entering, final = _passed(transition, written, initial.reshape(-1, tracks, keys * values))
    outputs = matmul(matmul(query, key) * gating, value) + matmul(asked, entering.reshape(*lead, tracks * keys, values))
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

    def apart(self, array: Float[Array, "direction head node *rest"]) -> Float[Array, "chunk lane place *rest"]:
        """Filled up with zeros."""
        widths = [(0, 0)] * array.ndim
        widths[2] = (0, self.chunks * self.size - self.nodes)
        split = jnp.pad(array, widths).reshape(-1, self.chunks, self.size, *array.shape[3:])
        return jnp.moveaxis(split, 1, 0)

    def together(self, array: Float[Array, "chunk lane target value"], query: tuple[int, ...]) -> Array:
        """What targets read as the outputs of nodes, which have the shape of queries up to the last axis."""
        whole = jnp.moveaxis(array, 0, 1).reshape(*query[:2], self.chunks * self.size, *query[3:-1], array.shape[-1])
        return whole[:, :, : self.nodes]

    @property
    def beyond(self) -> Bool[Array, "chunk 1 place"]:
        """Which places hold no node."""
        places = jnp.arange(self.chunks * self.size) >= self.nodes
        return places.reshape(self.chunks, 1, self.size)


def _terms(array: Float[Array, "chunk lane place *term index"]) -> Float[Array, "chunk lane term index"]:
    """What nodes write or read, node by node."""
    return array.reshape(*array.shape[:2], -1, array.shape[-1])


# --- the blocks of the chunks ----------------------------------------------------------------------------------------


def _nodes(operands: Operands, chunking: _Chunking, tracks: int) -> Block:
    """Every node as a block `(chunk, lane, place, ., .)`. Those beyond the chain pass every state on."""

    def by_term(gate: Array, several: bool) -> Float[Array, "chunk lane place term track"]:
        terms = gate.shape[4 : 4 + several]
        numbers = gate.reshape(*gate.shape[:3], *(terms or (1,)), gate.shape[-2])
        return chunking.apart(jnp.broadcast_to(numbers, (*numbers.shape[:-1], tracks)))

    source = transposed(by_term(operands.source, operands.key.ndim > 4))
    mark = by_term(operands.mark, operands.query.ndim > 4)
    gate = operands.transition
    numbers = gate.reshape(*gate.shape[:3], *gate.shape[-2:])
    identity = jnp.eye(tracks, dtype=source.dtype)[None, None, None]
    if gate.shape[-1] == 1:
        numbers = numbers * identity
    passed = jnp.where(chunking.beyond[..., None, None], identity, chunking.apart(numbers))
    nothing = jnp.zeros((*mark.shape[:-1], source.shape[-1]), source.dtype)
    return Block(jnp.concatenate([mark, passed], axis=-2), jnp.concatenate([nothing, source], axis=-2))


def _merged(blocks: Block) -> Block:
    """The blocks that stand along the third axis as one, `(chunk, lane, ., .)`."""
    while blocks.of_sources.shape[2] > 1:
        blocks = _joined(blocks)
    return Block(*(jnp.squeeze(array, 2) for array in blocks))


def _halves(blocks: Block) -> tuple[Block, Block]:
    """The first and the second one of all pairs."""
    pairs = [array.reshape(*array.shape[:2], -1, 2, *array.shape[3:]) for array in blocks]
    first, second = (Block(*(lax.index_in_dim(array, side, 3, keepdims=False) for array in pairs)) for side in (0, 1))
    return first, second


@apart
def _pairwise(blocks: Block) -> Block:
    """Neighbours as one block. What of the second one gets from its entering edges gets of all that leaves the first one."""
    first, second = _halves(blocks)
    mark, gating = first.read
    through, across = (_multiplied(second.of_entering, array) for array in first.leaving)
    later = [(0, 0)] * (gating.ndim - 1) + [(0, second.of_sources.shape[-1])]
    return Block(
        jnp.concatenate([mark, through], axis=-2),
        jnp.concatenate([jnp.pad(gating, later), jnp.concatenate([across, second.of_sources], axis=-1)], axis=-2),
    )


@apart
def _pairwise_pulled(blocks: Block, cotangent: Block) -> Block:
    """The adjoint of `_pairwise`: two products with all that the second blocks got of the first ones."""
    first, second = _halves(blocks)
    targets, tracks, sources = first.targets, first.of_entering.shape[-1], first.of_sources.shape[-1]
    of_entering, of_sources = cotangent
    got = jnp.concatenate([of_entering[..., targets:, :], of_sources[..., targets:, :sources]], axis=-1)
    left = _multiplied(transposed(second.of_entering), got)
    of_first = (
        jnp.concatenate([of_entering[..., :targets, :], left[..., :tracks]], axis=-2),
        jnp.concatenate([of_sources[..., :targets, :sources], left[..., tracks:]], axis=-2),
    )
    of_second = (
        _multiplied(got, transposed(jnp.concatenate(first.leaving, axis=-1))),
        of_sources[..., targets:, sources:],
    )
    halves = zip(of_first, of_second, blocks, strict=True)
    return Block(*(jnp.stack([one, other], 3).reshape(array.shape) for one, other, array in halves))


def _pairwise_forward(blocks: Block) -> tuple[Block, tuple[()]]:
    return _pairwise(blocks), ()


def _pairwise_backward(arguments: tuple[Any, ...], saved: tuple[()], cotangent: Block) -> tuple[Block]:
    del saved
    return (_pairwise_pulled(*arguments, cotangent),)


_joined = with_adjoint(_pairwise, _pairwise_forward, _pairwise_backward)
"""`blocks -> blocks`, half as many. A merge fused with the next one would be made anew for each number of that."""


def _multiplied(a: Float[Array, "*batch row inner"], b: Float[Array, "*batch inner column"]) -> Array:
    """`a b`."""
    inner = a.shape[-1]
    if inner > FEW:
        return matmul(a, b)
    terms = [a[..., :, k, None] * b[..., None, k, :] for k in range(inner)]
    return sum(terms[1:], start=terms[0])


# --- the states between chunks ---------------------------------------------------------------------------------------


States = Float[Array, "chunk lane track state"]


def _in_turn(
    transition: Float[Array, "chunk lane track track"],
    written: States,
    initial: Float[Array, "lane track state"],
    reverse: bool = False,
) -> tuple[States, Float[Array, "lane track state"]]:
    """The states that enter the chunks, and the one that leaves the last; or from the last chunk to the first."""

    def step(state: Array, chunk: tuple[Array, Array]) -> tuple[Array, Array]:
        through, added = chunk
        return _multiplied(through, state) + added, state

    final, entering = lax.scan(step, initial, (transition, written), reverse=reverse)
    return entering, final


def _saving(transition: Array, written: States, initial: Array) -> tuple[tuple[States, Array], States]:
    entering, final = _in_turn(transition, written, initial)
    return (entering, final), entering


def _turned_back(arguments: tuple[Any, ...], entering: States, cotangent: tuple[States, Array]) -> tuple[Array, ...]:
    """Cotangents pass the chunks the other way, by the transposed matrices."""
    transition, _, _ = arguments
    leaving, initial = _in_turn(transposed(transition), *cotangent, reverse=True)
    return matmul(leaving, transposed(entering)), leaving, initial


_passed = with_adjoint(_in_turn, _saving, _turned_back)
"""`(transition, written, initial) -> (entering, final)`. The default adjoint would multiply states by states at each step."""


LOWERING = direction_by_direction(no_tables, _run)
