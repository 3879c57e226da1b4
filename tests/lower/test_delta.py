"""The delta rule in chunks: forms of the gates, exact strengths and scales, states cut and continued, second derivatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from tests.helpers.calls import as_tree, disagreement, error, judged
from tests.helpers.cases import BOTH, CONCAT, DELTA, ERASE

STEP = "    transition[key, key'] = scale * (eye[key, key'] - strength * k[key] * k[key'])\n"
KEY = "    k = l2norm(k)\n    strength = given()\n    scale = given()\n    source{} = given()\n" + STEP
BODIES = {
    "delta": DELTA,
    "gated": KEY.format("") + "    read after\n",
    "source on the key": KEY.format("[key]") + "    mark = given()\n",
    "source on the value": KEY.format("[value]") + "    mark[value] = given()\n    direct[value] = given()\n",
    "mark on the key": KEY.format("") + "    mark[key] = given()\n",
    "another vector": ERASE,
}


def chain(length: int, body: str, chunk: int | None, dtype: str = "float64", **sizes: int) -> Any:
    """The chain in chunks, or as the recurrence where there are none."""
    text = f"scan test on chain(t = {length}) {{\n{body}    stabilize none\n}}\n"
    strategy, config = ("recurrent", None) if chunk is None else ("delta", {"chunk": chunk})
    return stmlang.compile(text, strategy=strategy, config=config, dtype=dtype, **({"heads": 2, "key": 4, "value": 3} | sizes))


def close(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < tolerance


def agree(body: str, length: int, chunk: int) -> None:
    """Values, final states and gradients as the recurrence has them, `strength` of 0, 1 and 2 and `scale` of 0, 1 and -1."""
    op = chain(length, body, chunk)
    arguments = random_arguments(op, length, "exact")
    gates = dict(arguments.gates)
    if "strength" in gates:
        gates["strength"] = np.random.default_rng(0).choice([0.0, 1.0, 2.0], np.shape(gates["strength"]))
    assert max(disagreement(op, judged(op, replace(arguments, gates=gates))).values()) < 1e-10


@pytest.mark.parametrize("name", BODIES)
def test_forms(name: str) -> None:
    agree(BODIES[name] + BOTH, 17, 5)


@pytest.mark.parametrize(("length", "chunk"), [(1, 1), (2, 1), (64, 16), (64, 64), (129, 64)])
def test_lengths(length: int, chunk: int) -> None:
    agree(BODIES["gated"] + CONCAT, length, chunk)


@pytest.mark.parametrize("name", ["gated", pytest.param("another vector", marks=pytest.mark.slow)])
def test_second_derivatives(name: str) -> None:
    """Hessian times vector, forward over reverse, as default differentiation has it."""
    op, simple = chain(7, BODIES[name], 3), chain(7, BODIES[name], None)
    tree, along = as_tree(random_arguments(op, 1)), as_tree(random_arguments(op, 2))

    def slope(op: Any) -> Any:
        gradient = jax.grad(lambda tree: jnp.sum(op(*tree) ** 3))
        return jax.jit(lambda tree: jax.jvp(gradient, (tree,), (along,))[1])(tree)

    close(slope(op), slope(simple))


def test_cut_and_continued() -> None:
    whole, part = chain(12, BODIES["gated"], 5), chain(6, BODIES["gated"], 4)
    q, k, v, gates, initial = as_tree(random_arguments(whole, 0))
    first, second = (jax.tree.map(lambda array, at=at: array[at], (q, k, v, gates)) for at in (slice(6), slice(6, 12)))
    h, state = part(*first, initial, return_state=True)
    after, final = part(*second, state, return_state=True)
    close((jnp.concatenate([h, after]), final), whole(q, k, v, gates, initial, return_state=True))


@pytest.mark.parametrize("same", [False, True])
def test_reflections_in_single_precision(same: bool) -> None:
    """Strengths of two turn the state around and never let it fade; with one key for ever the powers of the system's matrix
    are as large as they get. Sixty-four reflections of four numbers at a time round worse than one by one (measured: up to
    six times, 1.2e-5 after 256), and no more than ten times."""
    op, simple = (chain(256, BODIES["gated"], chunk, "float32") for chunk in (64, None))
    exact = chain(256, BODIES["gated"], None)
    q, k, v, gates, _ = as_tree(random_arguments(op, 0))
    k = np.broadcast_to(k[:1], k.shape) if same else k
    gates |= {"strength": np.full_like(gates["strength"], 2), "scale": np.ones_like(gates["scale"])}
    single = jax.tree.map(lambda array: jnp.asarray(array, jnp.float32), (q, k, v, gates))
    wanted = exact(*jax.tree.map(lambda array: np.asarray(array, np.float64), single))
    assert error(op(*single), wanted) < 10 * error(simple(*single), wanted)


def test_no_matrix_is_made() -> None:
    """Not one number of the transitions: temporary memory is less than a tenth of theirs."""
    op = stmlang.compile("std:chain/deltanet", time=1024, heads=1, strategy="delta")
    q, k, v, gates = op.example()
    compiled = jax.jit(lambda *given: op(*given)).lower(q, k, v, gates).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 1024 * 64 * 64 * 4 // 10
