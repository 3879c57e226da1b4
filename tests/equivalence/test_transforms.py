"""Every strategy under every transformation of JAX, from one table: a row of `TRANSFORMATIONS` times a strategy of the
registry.

None refuses a transformation, so no pair is left out. One that will have to is to raise an error of ours, which is to be
declared and checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

from stmlang.source.diagnostic import SpecError
from tests.helpers.calls import error
from tests.helpers.smallest import Subject, names, smallest

EXACT, COMPILED = 1e-10, 1e-11
"""How far off what is compared with the recurrence may be, and what is compared with another program of the same strategy."""


def close(actual: Any, expected: Any, tolerance: float) -> None:
    for mine, other in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert error(mine, other) < tolerance


def agrees(subject: Subject, actual: Any, expected: Any) -> None:
    """A result and final states are those of the recurrence, wherever a batch is not padded."""
    (h, state), real = jax.tree.map(np.asarray, actual), subject.real
    close((h[real], state), (expected.h[real], expected.state), EXACT)


def stacked(trees: list[Any]) -> Any:
    """By NumPy: JAX compiles a program for each shape that it is to stack."""
    return jax.tree.map(lambda *arrays: np.stack(arrays), *trees)


def value(subject: Subject) -> Callable[..., Any]:
    return lambda *tree: subject.op(*tree, return_state=True)


def product(subject: Subject, call: Callable[..., Any]) -> Callable[[Any], jax.Array]:
    """The function whose derivatives are taken: the cotangent times result and final states."""

    def total(tree: Any) -> jax.Array:
        terms = jax.tree.map(lambda a, b: jnp.sum(a * b), subject.cotangent, call(*tree))
        return sum(jax.tree.leaves(terms), start=jnp.zeros(()))

    return total


@cache
def pullback(subject: Subject) -> Callable[[Any, Any], Any]:
    """The strategy's own gradient by arguments and cotangent, compiled once: what `test_transformation[grad]` proves right and
    the other rows are compared with."""
    return jax.jit(lambda tree, cotangent: jax.vjp(value(subject), *tree)[1](cotangent))


@cache
def single(subject: Subject) -> Callable[..., Any]:
    """A call, compiled once: what `test_transformation[jit]` proves right."""
    return jax.jit(value(subject))


def slopes(subject: Subject, tree: Any, cotangent: Any) -> Any:
    """The strategy's own gradient, in NumPy's arrays."""
    return jax.tree.map(np.asarray, pullback(subject)(tree, cotangent))


def gradients(subject: Subject) -> list[Any]:
    return [slopes(subject, tree, subject.cotangent) for tree in subject.trees]


def jit(subject: Subject) -> None:
    agrees(subject, single(subject)(*subject.trees[0]), subject.result(subject.trees[0]))


def grad(subject: Subject) -> None:
    """By each argument by itself, along a change of it."""
    tree = subject.trees[0]
    leaves = jax.tree.leaves(slopes(subject, tree, subject.cotangent))
    for number, (array, change) in enumerate(zip(leaves, subject.changes, strict=True)):
        expected = subject.slope(tree, subject.changed(lambda other, number=number: other == number))
        scale = max(abs(expected), float(np.linalg.norm(array * change)), 1e-3)
        assert abs(float(np.sum(array * change)) - expected) < EXACT * scale


def jvp(subject: Subject) -> None:
    tree, along = subject.trees[0], subject.changed(lambda _: True)
    _, slope = jax.jit(lambda point, change: jax.jvp(value(subject), point, change))(tree, along)
    agrees(subject, slope, subject.derivative(tree, along))


def vmap(subject: Subject) -> None:
    """Gates and states are shared, `in_axes = None`."""
    (*_, gates, initial), call = subject.trees[0], value(subject)
    inputs = stacked([tree[:3] for tree in subject.trees])
    mapped = jax.jit(jax.vmap(call, in_axes=(0, 0, 0, None, None)))(*inputs, gates, initial)
    h, state = jax.tree.map(np.asarray, mapped)
    for number, tree in enumerate(subject.trees):
        own = jax.tree.map(lambda array, number=number: array[number], (h, state))
        agrees(subject, own, subject.result((*tree[:3], gates, initial)))


def vmap_of_grad(subject: Subject) -> None:
    """All arguments are mapped."""
    mapped = jax.jit(jax.vmap(jax.grad(product(subject, value(subject)))))(stacked(subject.trees))
    close(mapped, stacked(gradients(subject)), COMPILED)


def hessian(subject: Subject) -> None:
    """Forward over reverse, in the plane of two changes, of the arrays of even number and of the others, against differences of
    first derivatives of the recurrence, which are exact."""
    tree, total = subject.trees[0], product(subject, value(subject))
    along = [subject.changed(lambda number, rest=rest: number % 2 == rest) for rest in (0, 1)]

    def moved(at: Any, tree: Any) -> Any:
        return jax.tree.map(lambda point, *changes: point + at[0] * changes[0] + at[1] * changes[1], tree, *along)

    bend = jax.jit(jax.jacfwd(jax.grad(lambda at: total(moved(at, tree)))))(np.zeros(2))
    step = 1e-5
    expected = np.empty((2, 2))
    for row in range(2):
        ends = [moved([sign * step * (row == place) for place in range(2)], tree) for sign in (1, -1)]
        for column in range(2):
            up, down = (subject.slope(end, along[column]) for end in ends)
            expected[row, column] = (up - down) / (2 * step)
    assert error(bend, expected) < 1e-7


def remat(subject: Subject) -> None:
    again = jax.jit(jax.grad(product(subject, jax.checkpoint(value(subject)))))(subject.trees[0])
    close(again, gradients(subject)[0], COMPILED)


def scan(subject: Subject) -> None:
    """Layers, each with gates of its own and fed with the values of the one before; the gradient against the chain rule, one
    layer after the other."""
    (q, k, v, _, initial), layers = subject.trees[0], [tree[3] for tree in subject.trees]
    call = value(subject)

    def total(v: jax.Array, stack: Any) -> jax.Array:
        deep, _ = jax.lax.scan(lambda v, gates: (v + call(q, k, v, gates, initial)[0], None), v, stack)
        return jnp.sum(deep * subject.cotangent[0])

    actual, (by_values, by_gates) = jax.jit(jax.value_and_grad(total, (0, 1)))(v, stacked(layers))
    inputs = [v]
    for gates in layers:
        inputs.append(inputs[-1] + np.asarray(single(subject)(q, k, inputs[-1], gates, initial)[0]))
    (cotangent, states), by_layer = subject.cotangent, []
    states = jax.tree.map(np.zeros_like, states)
    for values, gates in zip(reversed(inputs[:-1]), reversed(layers), strict=True):
        slope = slopes(subject, (q, k, values, gates, initial), (cotangent, states))
        cotangent, by_layer = cotangent + slope[2], [slope[3], *by_layer]
    expected = float(np.sum(inputs[-1] * subject.cotangent[0]))
    assert abs(float(actual) - expected) < COMPILED * max(1, abs(expected))
    close(by_values, cotangent, COMPILED)
    close(by_gates, stacked(by_layer), COMPILED)


def shard(subject: Subject) -> None:
    """A batch of two on two devices, the types of `jax.shard_map` checked: results, and gradients by the inputs, of which each
    device has its own, and by gates and states, which both share."""
    mesh, trees = Mesh(np.array(jax.devices()[:2]), ("shard",)), subject.trees[:2]
    assert mesh.size == 2
    call, shared = value(subject), tuple(trees[0][3:])
    total = product(subject, call)

    def local(q: jax.Array, k: jax.Array, v: jax.Array, shared: Any) -> Any:
        def loss(inputs: Any, shared: Any) -> jax.Array:
            return jnp.sum(jax.vmap(lambda *inputs: total((*inputs, *shared)))(*inputs))

        own, common = jax.grad(loss, (0, 1))((q, k, v), shared)
        return jax.vmap(lambda *inputs: call(*inputs, *shared)[0])(q, k, v), own, common

    split, whole = PartitionSpec("shard"), PartitionSpec()
    sharded = jax.shard_map(
        local, mesh=mesh, in_specs=(split, split, split, whole), out_specs=(split, split, whole), check_vma=True
    )
    h, own, common = jax.jit(sharded)(*(stacked([tree[place] for tree in trees]) for place in range(3)), shared)
    apart = [(*tree[:3], *shared) for tree in trees]
    each = [slopes(subject, tree, subject.cotangent) for tree in apart]
    alone = [np.asarray(single(subject)(*tree)[0])[subject.real] for tree in apart]
    close(np.asarray(h)[:, subject.real], stacked(alone), COMPILED)
    close(own, stacked([slope[:3] for slope in each]), COMPILED)
    close(common, jax.tree.map(lambda *arrays: sum(arrays), *(slope[3:] for slope in each)), COMPILED)


def transpose(subject: Subject) -> None:
    """In values and states, in which every scan here is linear; in keys that a transition reads a call is not, and says so."""
    (q, k, v, gates, initial), call = subject.trees[0], value(subject)

    def linear(v: Any, initial: Any) -> Any:
        return call(q, k, v, gates, initial)

    back = jax.jit(lambda cotangent: jax.linear_transpose(linear, v, initial)(cotangent))(subject.cotangent)
    *_, by_values, _, by_states = slopes(subject, subject.trees[0], subject.cotangent)
    close(back, (by_values, by_states), COMPILED)
    if "k[key]" in str(subject.op.scan):
        with pytest.raises(SpecError, match="STM5214"):
            jax.linear_transpose(lambda k: call(q, k, v, gates)[0], k)(subject.cotangent[0])


TRANSFORMATIONS: tuple[Callable[[Subject], None], ...] = (
    jit,
    grad,
    jvp,
    vmap,
    vmap_of_grad,
    hessian,
    remat,
    scan,
    shard,
    transpose,
)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("strategy", names())
def test_transformation(strategy: str, transformation: Callable[[Subject], None]) -> None:
    transformation(smallest(strategy))


def test_a_strategy_that_no_scan_admits_is_missed() -> None:
    """It does not drop out of the table unseen."""
    with pytest.raises(pytest.fail.Exception, match=r"no scan in .*EXAMPLES admits strategy `unheard of`"):
        smallest("unheard of")
