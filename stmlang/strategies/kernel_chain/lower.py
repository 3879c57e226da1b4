"""Chains by kernels: quadratic inside a chunk of 64 nodes, one state between two (see `kernels`).

States pass from chunk to chunk in one kernel, lane by lane; all chunks of all lanes then read theirs at once in another. What
is in memory beside inputs and results are one state a chunk and the decays inside chunks, 64 numbers a node. Second
derivatives, and platforms that know no such kernels, take the same in XLA's operations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import contract
from stmlang.lower.kernels import ROWS, kernel_or, parts_of, stacked
from stmlang.lower.operands import Operands, scalars
from stmlang.lower.segment_products import paths
from stmlang.lower.strategy import LoweringContext, Tables, no_tables
from stmlang.strategies.kernel_chain import kernels

DEPTH = ROWS
"""Keys and values are filled up to it."""


class Chain(NamedTuple):
    """The chunks of all lanes: queries, and those times the decays from the chunk's start; keys, and those times the decays to
    its end; values; decays inside and through; and the states that enter the first chunks."""

    query: Float[Array, "lane chunk 64 64"]
    into: Float[Array, "lane chunk 64 64"]
    key: Float[Array, "lane chunk 64 64"]
    out: Float[Array, "lane chunk 64 64"]
    value: Float[Array, "lane chunk 64 64"]
    inside: Float[Array, "lane chunk 64 64"]
    through: Float[Array, "lane chunk"]
    state: Float[Array, "lane 64 64"]


Results = tuple[Array, Array]
"""Outputs `(lane, chunk, 64, 64)` and the states that leave the last chunks."""


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    gates, (directions, heads, length) = scalars(operands), operands.value.shape[:3]
    query, key, value = operands.inputs
    sizes = key.shape[-1], value.shape[-1]

    def chunked(array: Array, fill: float = 0) -> Array:
        """`(direction, head, node, ...)` as `(lane, chunk, 64, ...)`, filled up at the end."""
        lanes = array.reshape(directions * heads, length, *array.shape[3:])
        filled = jnp.pad(lanes, [(0, 0), (0, -length % ROWS), *[(0, 0)] * (lanes.ndim - 2)], constant_values=fill)
        return filled.reshape(lanes.shape[0], -1, ROWS, *array.shape[3:])

    def tile(array: Array) -> Array:
        return jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, DEPTH - array.shape[-1])])

    inside, into, out, through = paths(chunked(gates.transition[..., 0, 0], 1))
    marked, sourced = chunked(query * gates.mark), chunked(key * gates.source)
    state = initial.reshape(directions * heads, *sizes)
    chain = Chain(
        tile(marked),
        tile(marked * into[..., None]),
        tile(sourced),
        tile(sourced * out[..., None]),
        tile(chunked(value)),
        inside,
        through,
        jnp.pad(state, [(0, 0), *((0, DEPTH - size) for size in sizes)]),
    )
    h, leaving = _kernel(parts_of(context.problem.dtype))(*chain)
    h = h[..., : sizes[1]].reshape(directions, heads, -1, sizes[1])[:, :, :length]
    return h, leaving[:, : sizes[0], : sizes[1]].reshape(initial.shape)


def _kernel(count: int) -> Any:
    """The function of a `Chain`, in so many parts, with its adjoint."""

    def forward(*args: Array) -> tuple[Results, Array]:
        chain = Chain(*args)
        first, second = (_tiles(array, count) for array in (chain.out, chain.value))
        entering, leaving = kernels.states(first, second, _rows(chain.through), chain.state, backwards=False)
        return (kernels.outputs(_chunks(chain, count), entering), leaving), entering

    def backward(cotangent: Results, entering: Array, *args: Array) -> Chain:
        chain, (h, last) = Chain(*args), cotangent
        asked, into = _tiles(h, count), _tiles(chain.into, count)
        leaving, state = kernels.states(into, asked, _rows(chain.through), last, backwards=True)
        due = kernels.due(_chunks(chain, count), asked, entering, leaving)
        through = due.through.sum(-1)
        return Chain(due.query, due.into, due.key, due.out, due.value, due.inside, through, state)

    def plain_backward(cotangent: Results, entering: Array, *args: Array) -> Any:
        del entering
        return Chain(*jax.vjp(_plain, *args)[1](cotangent))

    run, adjoint = kernel_or(forward, _plain_saving), kernel_or(backward, plain_backward)

    def value(*args: Array) -> Results:
        return run(*args)[0]

    def pull(args: tuple[Array, ...], entering: Array, cotangent: Results) -> Any:
        return tuple(adjoint(cotangent, entering, *args))

    def along(args: Any, tangents: Any) -> Results:
        return jax.jvp(_plain, args, tangents)[1]

    return with_adjoint(value, run, pull, along=along)


def _tiles(array: Array, count: int) -> Array:
    """`(lane, chunk, 64, 64)` as parts below each other."""
    split = jnp.moveaxis(stacked(array, count), 0, 2)
    return split.reshape(*array.shape[:2], -1, array.shape[-1])


def _rows(through: Array) -> Array:
    """One decay for every row of the state."""
    return jnp.broadcast_to(through[..., None], (*through.shape, DEPTH)).astype(jnp.float32)


def _chunks(chain: Chain, count: int) -> kernels.Chunks:
    rows = (chain.query, chain.into, chain.key, chain.out, chain.value)
    query, into, key, out, value = (_tiles(array, count) for array in rows)
    return kernels.Chunks(query, into, key, out, value, chain.inside)


def _plain(*args: Array) -> Results:
    return _plain_saving(*args)[0]


def _plain_saving(*args: Array) -> tuple[Results, Array]:
    """The same in XLA's operations."""
    chain = Chain(*args)

    def step(state: Array, chunk: tuple[Array, Array]) -> tuple[Array, Array]:
        through, written = chunk
        return through[:, None, None] * state + written, state

    written = contract("lcmk,lcmv->lckv", chain.out, chain.value)
    by_chunk = jnp.moveaxis(chain.through, 1, 0), jnp.moveaxis(written, 1, 0)
    leaving, entering = lax.scan(step, chain.state, by_chunk)
    entering = jnp.moveaxis(entering, 0, 1)
    scores = contract("lcnk,lcmk->lcnm", chain.query, chain.key) * chain.inside
    h = contract("lcnm,lcmv->lcnv", scores, chain.value) + contract("lcnk,lckv->lcnv", chain.into, entering)
    return (h, leaving), entering


LOWERING = direction_by_direction(no_tables, _run)
