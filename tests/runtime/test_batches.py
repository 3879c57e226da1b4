"""What runs is planned for the batch that is mapped, however it is mapped, and computes what one call after another does."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.source.diagnostic import SpecError
from tests.helpers.scan_calls import programs, work

SPEC = """
topology image = grid(rows, cols = 4)
scan s(heads = 2, key = 3, value = 2) on image {
    angle    = sigmoid(linear(x))
    decay    = tanh(linear(x))
    source[out] = split(angle)[out]
    transition[out] = decay * split(angle)[out]
    mark     = 1
}
"""
BATCH = 64


def compiled(like=None, **options):
    """The scan, of the size of another if one is given."""
    rows = {} if like is None else {"rows": like.node_shape[0]}
    return stmlang.compile(SPEC, target="cpu", dtype="float64", **rows, **options)


@pytest.fixture(scope="module")
def op():
    """A scan of a size at which the batch decides between strategies."""
    ops = (compiled(rows=rows) for rows in range(3, 12))
    return next(op for op in ops if op.plan.strategy != op.plan_for(BATCH).strategy)


@pytest.fixture(scope="module")
def arguments(op):
    """Arguments of few calls, to be repeated where a batch must be large."""
    calls = [op.example(seed) for seed in range(BATCH)]
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *calls)


def loss(op, arguments):
    return (op(*arguments) ** 2).sum()


def single(arguments, number=3):
    return jax.tree.map(lambda array: array[number], arguments)


def close(actual, expected):
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9), actual, expected)


def test_the_batch_that_is_mapped_chooses(op, arguments):
    strategy = op.plan_for(BATCH).strategy
    one = programs(lambda a: op(*a), single(arguments))
    many = programs(jax.vmap(lambda a: op(*a)), arguments)
    nested = jax.tree.map(lambda array: array.reshape(8, 8, *array.shape[1:]), arguments)
    assert one == {(op.plan.strategy, 1)}
    assert many == {(strategy, BATCH)}
    assert programs(jax.vmap(jax.vmap(lambda a: op(*a))), nested) == {(strategy, BATCH)}
    assert programs(jax.vmap(jax.jit(lambda a: op(*a))), arguments) == {(strategy, BATCH)}
    forced = compiled(op, strategy=strategy, config=op.plan_for(BATCH).config)
    alone = compiled(op, batch=1)
    own, same, other = (work(jax.vmap(lambda a, op=op: op(*a)), arguments) for op in (op, forced, alone))
    assert own == same != other


def test_values_and_gradients_are_those_of_the_loop(op, arguments):
    close(jax.vmap(lambda a: op(*a))(arguments)[3], op(*single(arguments)))
    value, gradient = jax.value_and_grad(lambda a: loss(op, a))(single(arguments))

    def total(arguments):
        return jax.vmap(lambda a: loss(op, a))(arguments)

    for function in (total, jax.vmap(jax.checkpoint(lambda a: loss(op, a)))):
        values, gradients = function(arguments), jax.grad(lambda a, function=function: function(a).sum())(arguments)
        close(values[3], value)
        close(single(gradients), gradient)
    close(single(jax.vmap(jax.grad(lambda a: loss(op, a)))(arguments)), gradient)
    close(single(jax.jit(jax.vmap(jax.jit(jax.grad(lambda a: loss(op, a)))))(arguments)), gradient)


def test_derivatives_inside_of_vmap_follow_the_batch(op, arguments):
    """`vmap(grad(f))` runs what `grad(vmap(f))` runs, and not the program of one call."""
    fixed = compiled(op, batch=1)
    inside, alone = (jax.vmap(jax.grad(lambda a, op=op: loss(op, a))) for op in (op, fixed))
    outside = jax.grad(lambda a: jax.vmap(lambda b: loss(op, b))(a).sum())
    assert work(inside, arguments)[0] == pytest.approx(work(outside, arguments)[0], rel=0.02)
    assert work(inside, arguments)[0] != pytest.approx(work(alone, arguments)[0], rel=0.05)


def test_forward_mode_and_second_derivatives(op, arguments):
    few = jax.tree.map(lambda array: array[:2], arguments)
    repeated = jax.tree.map(lambda array: jnp.tile(array, (BATCH // 2, *(1,) * (array.ndim - 1))), few)

    def of_values(arguments, scale):
        q, k, v, gates = arguments
        return (op(q * scale, k, v, {name: array * scale for name, array in gates.items()}) ** 2).sum()

    for derivative in (jax.jacfwd(of_values, 1), jax.hessian(of_values, 1), jax.grad(jax.grad(of_values, 1), 1)):
        loop = [derivative(single(few, number), 0.7) for number in range(2)]
        close(jax.vmap(derivative, (0, None))(repeated, 0.7)[:2], jnp.stack(loop))
    total = jax.hessian(lambda scale: jax.vmap(of_values, (0, None))(repeated, scale).sum())(0.7)
    close(total, BATCH // 2 * sum(jax.hessian(of_values, 1)(single(few, number), 0.7) for number in range(2)))


def test_inside_of_scan_and_transposed(op, arguments):
    def step(carry, scale):
        q, k, v, gates = arguments
        return carry + jax.vmap(lambda q, k, v, gates: op(q * scale, k, v, gates))(q, k, v, gates), None

    scales = jnp.asarray([0.5, 2.0])
    zero = jnp.zeros_like(jax.vmap(lambda a: op(*a))(arguments))
    close(jax.lax.scan(step, zero, scales)[0][3], 2.5 * op(*single(arguments)))
    q, k, v, gates = arguments
    mapped = lambda v: jax.vmap(op)(q, k, v, gates)  # noqa: E731
    (back,) = jax.linear_transpose(mapped, v)(mapped(v))
    expected = jax.vjp(lambda v: op(q[3], k[3], v, jax.tree.map(lambda array: array[3], gates)), v[3])[1](mapped(v)[3])[0]
    close(back[3], expected)


def dotted(one, other):
    return sum(jnp.vdot(*pair) for pair in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def test_transposed_in_what_it_is_linear_in(op, arguments):
    """Whichever strategy is planned: `<A x, c> = <x, A* c>`, mapped and not, for values with entering states, and for queries
    and keys, each by itself; in two of them at once a call is not linear, and is not transposed."""
    q, k, v, gates = arguments
    q3, k3, v3, gates3 = single(arguments)
    state = jax.tree.map(lambda array: array + 0.5, op.zero_state())
    linear = [
        (lambda v: jax.vmap(op)(q, k, v, gates), v),
        (jax.jit(lambda v: jax.vmap(op)(q, k, v, gates)), v),
        (lambda q: jax.vmap(op)(q, k, v, gates), q),
        (lambda v: op(q3, k3, v, gates3), v3),
        (lambda k: op(q3, k, v3, gates3), k3),
        (lambda both: op(q3, k3, both[0], gates3, both[1], True), (v3, state)),
    ]
    for function, at in linear:
        result = function(at)
        cotangent = jax.tree.map(jnp.cos, result)
        (back,) = jax.linear_transpose(function, at)(cotangent)
        close(dotted(result, cotangent), dotted(at, back))
        close(back, jax.vjp(function, at)[1](cotangent)[0])
    with pytest.raises(SpecError, match="STM5214"):
        jax.linear_transpose(lambda both: op(both[0], k3, both[1], gates3), (q3, v3))(op(q3, k3, v3, gates3))


def test_states_and_arguments_that_are_not_mapped(op, arguments):
    q, k, v, gates = arguments
    state = jax.tree.map(lambda array: array + 0.5, op.zero_state())
    alone = op(q[3], k[0], v[3], jax.tree.map(lambda array: array[0], gates), state, True)
    one = jax.tree.map(lambda array: array[0], gates)
    many = jax.vmap(lambda q, v: op(q, k[0], v, one, state, True))(q, v)
    close(jax.tree.map(lambda array: array[3], many), alone)
    mask = jnp.arange(op.node_shape[0] * 4).reshape(op.node_shape) % 3 > 0
    masks = jnp.stack([mask] * BATCH)
    masked = jax.vmap(lambda a, mask: op(*a, mask=mask))(arguments, masks)
    close(masked[3], op(*single(arguments), mask=mask))


def test_sharded(op, arguments):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    spec = jax.sharding.PartitionSpec("x")
    mapped = jax.vmap(lambda a: loss(op, a))
    sharded = jax.shard_map(lambda a: mapped(a), mesh=mesh, in_specs=(spec,), out_specs=spec)
    close(jax.jit(sharded)(arguments), mapped(arguments))
    gradient = jax.grad(lambda a: sharded(a).sum())(arguments)
    close(gradient, jax.grad(lambda a: mapped(a).sum())(arguments))


def test_what_was_asked_for_stays(op, arguments):
    fixed = compiled(op, batch=1)
    assert fixed.plan_for(BATCH) is fixed.plan
    assert programs(jax.vmap(lambda a: fixed(*a)), arguments) == {(fixed.plan.strategy, BATCH)}
    assert fixed != op
    assert compiled(op, batch="mapped") == op
    strategy = compiled(op, strategy="chunkwise")
    assert strategy.plan_for(BATCH).strategy == "chunkwise"
    assert "op.plan_for(batch)" in op.explain()
    assert "op.plan_for(batch)" not in fixed.explain()
    again = pickle.loads(pickle.dumps(op))
    assert again == op
    assert again.plan_for(BATCH).strategy == op.plan_for(BATCH).strategy
    for wrong in (0, 1.5, "many"):
        with pytest.raises(SpecError, match="positive whole number"):
            op.plan_for(wrong)


def test_batches_that_fit_nowhere_run_as_one_call(op, arguments):
    least = min(entry.estimate.memory for entry in op.plan.ranked)
    tight = compiled(op, memory_limit=2 * least)
    with pytest.raises(SpecError, match="needs at least"):
        tight.plan_for(BATCH)
    assert programs(jax.vmap(lambda a: tight(*a)), arguments) == {(tight.plan.strategy, BATCH)}
