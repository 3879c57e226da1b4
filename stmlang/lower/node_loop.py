"""A grid node by node in the order of memory: a loop in a loop for each axis, whose innermost body is one node.

The states of the port along an axis are carried by that axis' loop; those of the other ports are read and written place by
place. A state is used at the node that it enters soon after it was made, and is kept nowhere: arrays hold only what crosses
the lines of outer axes. Any gates will do, since nothing but one node is ever evaluated.

The adjoint walks back, a stretch of the first axis at a time. What entered each stretch was kept; inside of it the states that
enter each node are made again, and each node is differentiated by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.mesh_axes import alike

States = list[Array]
"""Those of each port, `(*other axes, ...)`: the ones that enter or leave a grid; of a node one for each port."""

Node = Callable[[Any, Any, States], tuple[States, Array]]
"""`(shared, values of a node, states that enter) -> (states that leave, what it reads)`, without traced arrays of its own."""

Visit = Callable[[Any, States, Any], tuple[States, Any, Any]]
"""`(values of a node, states, carried) -> (states, carried, results)`."""


def node_loop(node: Node, rank: int, every: int) -> Callable[[Any, Any, States], tuple[States, Array]]:
    """`node` for all nodes of a grid: `(shared, values (*axes, ...), states) -> (states, results (*axes, ...))`. For its
    adjoint the states are kept that enter every `every`-th place of the first axis."""

    def plain(shared: Any, values: Any, states: States) -> tuple[States, Array]:
        return _walked(node, rank, shared, values, states)

    def forward(shared: Any, values: Any, states: States) -> tuple[tuple[States, Array], list[Array]]:
        def stretch(state: Array, at: tuple[Any, States]) -> tuple[Array, Any]:
            values, others = at
            (leaving, *after), results = _walked(node, rank, shared, values, [state, *others])
            return leaving, (results, after, state)

        state, kept, piecewise = states[0], list[Array](), list[Any]()
        for stretches in _stretches((values, states[1:]), every):
            state, (results, after, entering) = lax.scan(stretch, state, stretches)
            kept.append(entering)
            piecewise.append((results, after))
        results, after = _joined(piecewise)
        return ([state, *after], results), kept

    def backward(args: tuple[Any, Any, States], kept: list[Array], cotangent: tuple[States, Array]) -> tuple[Any, Any, States]:
        shared, values, states = args
        leaving, asked = cotangent

        def stretch(carry: tuple[Array, Any], at: Any) -> tuple[tuple[Array, Any], Any]:
            (due, total), (state, (values, others, asked, after)) = carry, at
            entering = _entering(node, rank, shared, values, [state, *others])
            (due, *back), total, change = _pulled(node, rank, shared, (values, entering, asked), [due, *after], total)
            return (due, total), (change, back)

        carry, piecewise = (leaving[0], alike(_zeros(shared), args)), list[Any]()
        cut = _stretches((values, states[1:], asked, leaving[1:]), every)
        for stretches in reversed(list(zip(kept, cut, strict=True))):
            carry, results = lax.scan(stretch, carry, stretches, reverse=True)
            piecewise.insert(0, results)
        change, back = _joined(piecewise)
        return carry[1], change, [carry[0], *back]

    return with_adjoint(plain, forward, backward)


def _walked(node: Node, rank: int, shared: Any, values: Any, states: States) -> tuple[States, Array]:
    """The states that leave, and what all nodes read."""

    def visit(values: Any, states: States, carried: Any) -> tuple[States, Any, Array]:
        leaving, read = node(shared, values, states)
        return leaving, carried, read

    leaving, _, read = _visited(visit, rank, values, states, ())
    return leaving, read


def _entering(node: Node, rank: int, shared: Any, values: Any, states: States) -> States:
    """The states that enter each node, `(*axes, ...)` for each port."""

    def visit(values: Any, states: States, carried: Any) -> tuple[States, Any, States]:
        return node(shared, values, states)[0], carried, states

    return _visited(visit, rank, values, states, ())[2]


def _pulled(
    node: Node, rank: int, shared: Any, values: tuple[Any, States, Array], states: States, total: Any
) -> tuple[States, Any, Any]:
    """The way back, of `(values of nodes, states that entered them, cotangents of what they read)` and the cotangents of the
    states that leave: those of the states that enter, `total` and the cotangent of what is shared, those of the values."""

    def visit(values: Any, due: States, total: Any) -> tuple[States, Any, Any]:
        values, entering, asked = values
        _, pull = cast("tuple[Any, Callable[..., Any]]", jax.vjp(node, shared, values, entering))
        own, change, back = pull((due, asked))
        return back, jax.tree.map(jnp.add, total, own), change

    return _visited(visit, rank, values, states, total, reverse=True)


def _visited(
    visit: Visit, rank: int, values: Any, states: States, carried: Any, *, reverse: bool = False
) -> tuple[States, Any, Any]:
    """All nodes visited in order, or in the opposite one."""

    def line(axis: int, values: Any, states: States, carried: Any) -> tuple[States, Any, Any]:
        if axis == rank:
            return visit(values, states, carried)

        def place(carry: tuple[Array, Any], at: tuple[Any, States]) -> tuple[tuple[Array, Any], Any]:
            (state, carried), (values, others) = carry, at
            states, carried, results = line(axis + 1, values, _with(others, axis, state), carried)
            return (states[axis], carried), (results, _without(states, axis))

        others = _without(states, axis)
        (state, carried), (results, others) = lax.scan(place, (states[axis], carried), (values, others), reverse=reverse)
        return _with(others, axis, state), carried, results

    return line(0, values, states, carried)


def _zeros(tree: Any) -> Any:
    def zeros(array: Array) -> Array:
        return jnp.zeros(array.shape, array.dtype)

    return jax.tree.map(zeros, tree)


def _without(states: States, port: int) -> States:
    return [*states[:port], *states[port + 1 :]]


def _with(others: States, port: int, state: Array) -> States:
    return [*others[:port], state, *others[port:]]


def _stretches(tree: Any, every: int) -> list[Any]:
    """Arrays cut along their first axis, `(stretch, place, ...)`: what does not fill a stretch comes first, alone."""
    length = jax.tree.leaves(tree)[0].shape[0]
    every = min(every, length)
    rest = length % every

    def between(start: int, stop: int, size: int) -> Any:
        def cut(array: Array) -> Array:
            return lax.slice_in_dim(array, start, stop).reshape(-1, size, *array.shape[1:])

        return jax.tree.map(cut, tree)

    return ([between(0, rest, rest)] if rest else []) + [between(rest, length, every)]


def _joined(piecewise: Sequence[Any]) -> Any:
    """Arrays `(stretch, place, ...)` behind each other, `(place, ...)`."""

    def joined(*arrays: Array) -> Array:
        flat = [array.reshape(-1, *array.shape[2:]) for array in arrays]
        return flat[0] if len(flat) == 1 else jnp.concatenate(flat)

    return jax.tree.map(joined, *piecewise)
