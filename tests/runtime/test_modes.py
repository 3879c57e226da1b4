"""A call that is differentiated runs the plan for training, and one that nothing differentiates that for inference."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.nn import ScanLayer
from stmlang.plan.store import plan_from_json
from tests.helpers.scan_calls import programs, work

BATCH = 3
SIZES = {"heads": 2, "key": 3, "value": 2}


def compiled(time, **options):
    return stmlang.compile("std:plstm/chain", time=time, target="cpu", dtype="float64", tuned=False, **SIZES, **options)


@pytest.fixture(scope="module")
def op():
    """A scan of a size at which the mode decides between strategies."""
    ops = (compiled(time) for time in (16, 32, 64, 128, 256, 512, 1024))
    return next(op for op in ops if op.plan.strategy != op.plan_for(1, "inference").strategy)


@pytest.fixture(scope="module")
def in_either(op):
    """The same scan by the plan of either mode alone."""
    plans = {mode: op.plan_for(1, mode) for mode in ("training", "inference")}
    return {mode: compiled(op.node_shape[0], strategy=plan.strategy, config=plan.settings) for mode, plan in plans.items()}


def loss(op, arguments):
    return (op(*arguments) ** 2).sum()


def close(actual, expected):
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9), actual, expected)


def test_what_runs_depends_on_whether_it_is_differentiated(op, in_either):
    arguments = op.example()
    mode = {mode: op.plan_for(1, mode).strategy for mode in ("training", "inference")}
    assert programs(lambda a: op(*a), arguments) == {(mode["inference"], 1)}
    assert programs(jax.checkpoint(lambda a: op(*a)), arguments) == {(mode["inference"], 1)}
    for function, run in (
        (loss, "inference"),
        (jax.value_and_grad(loss, 1), "training"),
        (lambda op, a: jax.jvp(lambda a: loss(op, a), (a,), (a,)), "training"),
        (lambda op, a: jax.grad(jax.checkpoint(lambda a: loss(op, a)))(a), "training"),
    ):
        own, forced = (work(lambda a, op=op, f=function: f(op, a), arguments) for op in (op, in_either[run]))
        assert own == forced
    mapped = jax.tree.map(lambda array: jnp.stack([array] * BATCH), arguments)
    of_batch = op.plan_for(BATCH, "inference").strategy
    assert programs(jax.vmap(lambda a: op(*a)), mapped) == {(of_batch, BATCH)}


def test_values_and_gradients_are_those_of_the_reference(op, in_either):
    arguments = op.example()
    value, gradient = jax.value_and_grad(loss, 1)(op, arguments)
    close(op(*arguments), op.reference(*arguments))
    close(value, loss(op, arguments))
    close(gradient, jax.grad(loss, 1)(in_either["training"], arguments))
    scaled = (lambda scale, op=op: loss(op, (arguments[0] * scale, *arguments[1:])) for op in (op, in_either["training"]))
    close(*(jax.hessian(function)(0.7) for function in scaled))
    h, state = op(*arguments, op.zero_state(), True)
    _, (expected, final) = jax.jvp(lambda q: op(q, *arguments[1:], op.zero_state(), True), (arguments[0],), (arguments[0],))
    close(h, expected)
    assert jax.tree.structure(state) == jax.tree.structure(final)


def test_masks_and_segments_run_it_too(op):
    arguments = op.example()
    nodes = np.arange(op.node_shape[0])
    mask, segments = jnp.asarray(nodes % 3 > 0), jnp.asarray(nodes // 5)
    for beside in ({"mask": mask}, {"segments": segments}):
        alone = op(*arguments, **beside)
        differentiated, _ = jax.vjp(lambda a, beside=beside: op(*a, **beside), arguments)
        close(alone, differentiated)


def test_what_was_asked_for_stays(op):
    arguments = op.example()
    inference = compiled(op.node_shape[0], mode="inference")
    assert inference.plan_for(1, "training") is inference.plan
    fixed = compiled(op.node_shape[0], batch=BATCH)
    assert fixed.plan_for(1, "inference").strategy == op.plan_for(BATCH, "inference").strategy
    assert fixed.plan_for(1) is fixed.plan
    forced = compiled(op.node_shape[0], strategy=op.plan.strategy, config=op.plan.settings)
    assert programs(lambda a: forced(*a), arguments) == {(op.plan.strategy, 1)}
    assert f"runs `{op.plan_for(1, 'inference').strategy}" in op.explain()
    assert "Any other runs" not in forced.explain()
    with pytest.raises(stmlang.SpecError, match="unknown mode"):
        op.plan_for(1, "evaluation")


def test_layers_in_a_stack_run_it(op):
    """Nothing has to be said to a model: its weights, and whether its dropout is on, are another matter."""
    keys = jax.random.split(jax.random.key(0), 2)
    layers = eqx.filter_vmap(lambda key: ScanLayer(op, 4, key=key))(keys)
    learned, rest = eqx.partition(layers, eqx.is_inexact_array)

    def model(learned, x):
        def step(x, own):
            return eqx.combine(own, rest)(x), None

        return jax.lax.scan(step, x, learned)[0]

    x = jax.random.normal(jax.random.key(1), (op.node_shape[0], 4), jnp.float64)
    assert programs(model, learned, x) == {(op.plan_for(1, "inference").strategy, 1)}
    alone, (value, _) = model(learned, x), jax.value_and_grad(lambda learned, x: model(learned, x).sum())(learned, x)
    close(alone.sum(), value)


def test_artifacts_run_it(op, tmp_path):
    arguments = op.example()
    op.export(tmp_path / "op.stmx", batch=None)
    loaded = stmlang.load(tmp_path / "op.stmx")
    assert plan_from_json(loaded.plan) == op.plan_for(1, "inference")
    close(loaded(*arguments), op(*arguments))
    close(jax.grad(loss, 1)(loaded, arguments), jax.grad(loss, 1)(op, arguments))
