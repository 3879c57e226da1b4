"""A chain worked off chunk by chunk: slices of the nodes go in, a state is handed on, and no array of all nodes is copied.

The loop slices its arguments where they lie and writes results in place. Its adjoint walks the chunks backwards from the states
that entered them, which are all that is kept, and differentiates one chunk at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.mesh_axes import alike


class Nodes(Protocol):
    """The nodes of a chain, or of a chunk of it: a pytree of arrays `(node, lane, .)`. Directions and heads make one axis of
    lanes."""

    @property
    def value(self) -> Float[Array, "node lane value"]:
        """Shaped as the outputs are."""
        ...

    def idle(self, own: Bool[Array, "node 1 1"]) -> Self:
        """The same, but that the nodes which are not a chunk's own pass the state on and add nothing to it."""
        ...


State = Float[Array, "lane *track key value"]
N = TypeVar("N", bound=Nodes)
Chunk = Callable[[N, State], tuple[Array, State]]
"""`(nodes, state that enters) -> (outputs (node, lane, value), state that leaves)`."""


def chunk_scan(chunk: Chunk[N], size: int) -> Chunk[N]:
    """`chunk` for a chain of any length, `size` nodes at a time.

    The first chunk may hold fewer: it is given `size` nodes all the same, those that are not its own made idle, and what it
    says of them is overwritten by the next one.
    """

    def plain(nodes: N, state: State) -> tuple[Array, State]:
        return _run(chunk, size, nodes, state)[0]

    def forward(nodes: N, state: State) -> tuple[tuple[Array, State], Array]:
        return _run(chunk, size, nodes, state)

    def backward(args: tuple[Any, ...], saved: Any, cotangent: Any) -> tuple[Any, ...]:
        return _pull(chunk, size, args[0], saved, cotangent)

    return with_adjoint(plain, forward, backward)


def _plan(nodes: Nodes, size: int) -> tuple[int, int, int]:
    """Nodes in a chunk, number of chunks, nodes of the first one."""
    length = nodes.value.shape[0]
    size = min(size, length)
    count = -(-length // size)
    return size, count, length - (count - 1) * size


def _start(number: Array, size: int, first: int) -> Array:
    return jnp.maximum(first + (number - 1) * size, 0)


def _own(number: Array, size: int, first: int) -> Bool[Array, "node 1 1"] | None:
    """Which of the nodes that a chunk is given are its own; None where always all are."""
    if first == size:
        return None
    return ((number > 0) | (jnp.arange(size) < first))[:, None, None]


def _idle(nodes: N, own: Array | None) -> N:
    return nodes if own is None else nodes.idle(own)


def _slice(nodes: N, start: Array, size: int) -> N:
    def window(array: Array) -> Array:
        return lax.dynamic_slice_in_dim(array, start, size, 0)

    return jax.tree.map(window, nodes)


def _put(nodes: N, windows: N, start: Array) -> N:
    def written(array: Array, window: Array) -> Array:
        return lax.dynamic_update_slice_in_dim(array, window, start, 0)

    return jax.tree.map(written, nodes, windows)


def _choose(own: Array | None, nodes: N, others: N) -> N:
    """Some numbers at a chunk's own nodes, others at the rest."""
    if own is None:
        return nodes

    def chosen(new: Array, old: Array) -> Array:
        return jnp.where(own.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(chosen, nodes, others)


def _run(chunk: Chunk[N], size: int, nodes: N, state: State) -> tuple[tuple[Array, State], Array]:
    """Outputs, the state that leaves, and the states that entered the chunks."""
    size, count, first = _plan(nodes, size)
    if count == 1:
        return chunk(nodes, state), state[None]

    def step(carry: tuple[Array, State], number: Array) -> tuple[tuple[Array, State], State]:
        outputs, state = carry
        start = _start(number, size, first)
        chunk_nodes = _idle(_slice(nodes, start, size), _own(number, size, first))
        chunk_outputs, leaving = chunk(chunk_nodes, state)
        return (lax.dynamic_update_slice_in_dim(outputs, chunk_outputs, start, 0), leaving), state

    return lax.scan(step, (alike(jnp.zeros_like(nodes.value), nodes), state), jnp.arange(count))


def _pull(chunk: Chunk[N], size: int, nodes: N, states: Array, cotangent: tuple[Array, State]) -> tuple[N, State]:
    """The cotangents of the nodes and of the state that entered the first chunk."""
    size, count, first = _plan(nodes, size)
    if count == 1:
        return _pulled(chunk, nodes, states[0], cotangent)
    outputs, leaving = cotangent

    def step(carry: tuple[N, State], at: tuple[Array, State]) -> tuple[tuple[N, State], None]:
        (cotangents, leaving), (number, state) = carry, at
        start, own = _start(number, size, first), _own(number, size, first)

        def masked_chunk(chunk_nodes: N, state: State) -> tuple[Array, State]:
            return chunk(_idle(chunk_nodes, own), state)

        asked = lax.dynamic_slice_in_dim(outputs, start, size, 0)
        asked = asked if own is None else jnp.where(own, asked, 0)
        back, entering = _pulled(masked_chunk, _slice(nodes, start, size), state, (asked, leaving))
        return (_put(cotangents, _choose(own, back, _slice(cotangents, start, size)), start), entering), None

    def zeros(array: Array) -> Array:
        return jnp.zeros(array.shape, array.dtype)

    cotangents = alike(jax.tree.map(zeros, nodes), nodes)
    return lax.scan(step, (cotangents, leaving), (jnp.arange(count), states), reverse=True)[0]


def _pulled(chunk: Chunk[N], nodes: N, state: State, cotangent: tuple[Array, State]) -> tuple[N, State]:
    _, pull = cast("tuple[Any, Callable[..., tuple[N, State]]]", jax.vjp(chunk, nodes, state))
    return pull(cotangent)
