"""What is measured is what is said to be."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.runtime.measure import (
    AttentionSize,
    Timing,
    built,
    scan_arguments,
    scan_program,
    softmax_attention,
    softmax_program,
    time_interleaved,
)

SPEC = "scan s(heads = 2, key = 3, value = 2) on chain(t = 5) { source = sigmoid(linear(x)); transition = param(0.5) }"


def test_softmax_attention() -> None:
    q, k, v = (jax.random.normal(jax.random.key(number), (2, 6, 4)) for number in range(3))
    scores = np.einsum("hnk,hmk->hnm", q, k)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    expected = np.einsum("hnm,hmv->hnv", weights, v)
    np.testing.assert_allclose(softmax_attention(q, k, v), expected, rtol=1e-5)
    np.testing.assert_allclose(softmax_attention(q, k, v, block=3), expected, rtol=1e-5)
    half = softmax_attention(*(part.astype(jnp.bfloat16) for part in (q, k, v)))
    assert half.dtype == jnp.bfloat16
    np.testing.assert_allclose(half.astype(jnp.float32), expected, atol=0.05)


def test_blocks_keep_memory_linear() -> None:
    sizes = [AttentionSize(nodes, 1, 4, 4, "float32") for nodes in (2048, 4096)]
    whole = [softmax_program(size, "training").temporary_bytes for size in sizes]
    blockwise = [softmax_program(size, "training", blockwise=True).temporary_bytes for size in sizes]
    assert whole[1] > 3.5 * whole[0]
    assert blockwise[1] < 2.5 * blockwise[0]
    assert sizes[1].pairs_bytes("training") == 4 * 4096**2 * 4
    assert sizes[1].flops("inference") == 4096**2 * 4 * 4


@pytest.mark.parametrize("batch", [1, 3])
def test_programs_of_a_scan(batch: int) -> None:
    op = stmlang.compile(SPEC)
    q, k, v, gates = scan_arguments(op, batch)
    assert gates["transition"].shape == op.signature.gates["transition"]
    h = scan_program(op, "inference", batch).run()
    found, gradients = scan_program(op, "training", batch).run()
    np.testing.assert_allclose(found, h, atol=1e-6)
    assert jax.tree.map(jnp.shape, gradients) == jax.tree.map(jnp.shape, (q, k, v, gates))
    expected = (
        op.reference(q, k, v, gates) if batch == 1 else op.reference(q[2], k[2], v[2], {**gates, "source": gates["source"][2]})
    )
    np.testing.assert_allclose(h if batch == 1 else h[2], expected, atol=1e-5)
    assert AttentionSize.of(op, batch) == AttentionSize(5, 2 * batch, 3, 2, "float32")


def test_a_program_knows_what_it_cost() -> None:
    program = built(lambda x: jnp.sum(jnp.sort(x @ x)), jnp.ones((64, 64)))
    assert program.run() == pytest.approx(64**3)
    assert program.compile_seconds == program.trace_seconds + program.xla_seconds > 0
    assert program.temporary_bytes >= 64 * 64 * 4


def test_calls_are_timed_in_turns() -> None:
    seen: list[str] = []
    ticks: list[int] = []
    calls = {name: lambda name=name: seen.append(name) for name in "ab"}
    times = time_interleaved(calls, 3, advance=lambda: ticks.append(1))
    assert [len(timing.samples) for timing in times.values()] == [3, 3]
    assert len(ticks) == 6
    turns = [name for at, name in enumerate(seen) if at == 0 or name != seen[at - 1]]
    assert turns == ["a", "b", "a", "b", "a", "b"]  # warming up, then a b, b a, a b
    assert len(time_interleaved(calls, 50, seconds=0)["a"].samples) == 1


def test_ratios_are_taken_turn_by_turn() -> None:
    slow, fast = Timing((2.0, 4.0, 60.0)), Timing((1.0, 2.0, 3.0))
    assert slow.ratio(fast) == 2
    assert (slow.median, slow.least) == (4, 2)
    assert Timing((2.0, 4.0, 6.0)).noise(fast) == 0
    assert Timing((2.0,)).noise(Timing((1.0,))) == 1
    assert 1 < slow.noise(fast) < 10
