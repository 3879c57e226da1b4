"""Strategies under the transformations of JAX: vmap, jvp, grad of vmap, remat, scans over layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.fuzz.generators import random_arguments
from stmlang.oracle.derivative import Arguments, derivative
from tests.helpers.calls import as_tree, compiled, differentiated, error, errors, expected
from tests.helpers.cases import CASES, Case, Way

BY_NAME = {case.name: case for case in CASES}
CHOSEN = (
    ("chain 9 delta", "recurrent"),
    ("chain 17", "chunkwise"),
    ("chain 17", "linear"),
    ("grid 5x3", "parallel"),
    ("dag D", "recurrent"),
    ("dag D", "dense"),
    ("factors", "nodes"),
    ("factors", "dense_nodes"),
    ("factors matrix", "nodes"),
    ("tree", "chunkwise"),
    ("grid 4x7 constant", "impulse"),
    ("grid 5x3 exact", "raster"),
    ("chain 9 delta", "delta"),
    ("chain 13 erase", "delta"),
    ("grid 7x5 turn", "separable"),
    ("grid 4x7 turn", "separable"),
)
SOME = [
    pytest.param(case, next(way for way in case.strategies if way[0] == strategy), id=f"{name}-{strategy}")
    for name, strategy in CHOSEN
    for case in [BY_NAME[name]]
]
each = pytest.mark.parametrize(("case", "way"), SOME)


def close(found: object, wanted: object, tolerance: float = 1e-11) -> None:
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < tolerance


@each
def test_vmap_is_a_loop(case: Case, way: Way) -> None:
    """The gradient of a mapped call too."""
    op = compiled(case, way)
    batch = [as_tree(random_arguments(op, seed, case.values)) for seed in range(3)]
    call = differentiated(op, expected(case).cotangent)
    mapped = jax.jit(jax.vmap(call))(jax.tree.map(lambda *arrays: jnp.stack(arrays), *batch))
    single = jax.jit(call)
    for number, arguments in enumerate(batch):
        close(jax.tree.map(lambda array, number=number: array[number], mapped), single(arguments))


@each
def test_vmap_over_some_arguments(case: Case, way: Way) -> None:
    op = compiled(case, way)
    q, k, v, gates, initial = as_tree(random_arguments(op, 0, case.values))
    batch = np.stack([v, 2 * v, v - 1])
    mapped = jax.jit(jax.vmap(lambda v: op(q, k, v, gates, initial)))(batch)
    close(mapped, np.stack([op(q, k, one, gates, initial) for one in batch]))


@each
def test_forward_mode(case: Case, way: Way) -> None:
    wanted, op = expected(case), compiled(case, way)
    tree = as_tree(wanted.arguments)
    along = jax.tree.unflatten(jax.tree.structure(tree), wanted.changes)
    value, slope = jax.jit(lambda point, change: jax.jvp(lambda *a: op(*a, return_state=True), point, change))(tree, along)
    assert max(errors(value, wanted.result).values()) < 1e-10
    oracle = derivative(op.scan, op.dag, wanted.arguments, Arguments(*along))
    assert max(errors(slope, oracle).values()) < 1e-10


@pytest.mark.parametrize(("case", "way"), SOME[:3])
def test_checkpoint(case: Case, way: Way) -> None:
    op = compiled(case, way)
    tree, cotangent = as_tree(expected(case).arguments), expected(case).cotangent
    plain = jax.jit(differentiated(op, cotangent))(tree)
    close(jax.jit(differentiated(remat(op), cotangent))(tree), plain)


def remat(op: object) -> object:
    """The op, recomputed in the backward pass."""

    def call(*arguments: object, return_state: bool) -> object:
        return jax.checkpoint(lambda *given: op(*given, return_state=return_state))(*arguments)

    return call


@pytest.mark.parametrize(("case", "way"), SOME[1:3])
def test_scan_over_layers(case: Case, way: Way) -> None:
    """Layers with gates of their own, each fed with the values of the one before: as a loop in Python, gradient included."""
    op = compiled(case, way)
    q, k, v, _, _ = as_tree(random_arguments(op, 0))
    layers = [dict(random_arguments(op, seed).gates) for seed in range(3)]
    stacked = jax.tree.map(lambda *arrays: jnp.stack(arrays), *layers)

    def looped(v: jax.Array, layers: list) -> jax.Array:
        for gates in layers:
            v = v + op(q, k, v, gates)
        return v

    def scanned(v: jax.Array, stacked: dict) -> jax.Array:
        return jax.lax.scan(lambda v, gates: (v + op(q, k, v, gates), None), v, stacked)[0]

    wanted, gradient = jax.jit(jax.value_and_grad(lambda v, gates: jnp.sum(looped(v, gates) ** 2), argnums=(0, 1)))(v, layers)
    found, other = jax.jit(jax.value_and_grad(lambda v, gates: jnp.sum(scanned(v, gates) ** 2), argnums=(0, 1)))(v, stacked)
    close(found, wanted)
    close(other[0], gradient[0])
    close(other[1], jax.tree.map(lambda *arrays: jnp.stack(arrays), *gradient[1]))


@pytest.mark.parametrize(("case", "way"), SOME[0::4])
def test_second_derivatives(case: Case, way: Way) -> None:
    """Forward over reverse against differences of the gradient."""
    wanted, op = expected(case), compiled(case, way)
    tree = as_tree(wanted.arguments)
    along = jax.tree.unflatten(jax.tree.structure(tree), wanted.changes)
    gradient = jax.jit(lambda tree: differentiated(op, wanted.cotangent)(tree)[1])
    _, found = jax.jit(lambda tree, along: jax.jvp(gradient, (tree,), (along,)))(tree, along)
    up, down = (gradient(jax.tree.map(lambda a, b, step=step: a + step * b, tree, along)) for step in (1e-5, -1e-5))
    close(found, jax.tree.map(lambda a, b: (a - b) / 2e-5, up, down), 1e-6)
