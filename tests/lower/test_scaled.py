"""Exponential gates of normalized chains: the same numbers where nothing overflows, finite ones where everything would."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.runtime.compiled import CompiledScan
from tests.helpers.data import data_folder

TEXT = """
scan m(heads = 2, key = 3, value = 2) on chain(t) {{
    source     = exp(linear(x))
    transition = sigmoid(linear(x))
    {directions}
    read after
    normalize {normalize}
}}
"""


def compiled(normalize: str, directions: str = "", length: int = 13, **options: Any) -> CompiledScan:
    text = TEXT.format(normalize=normalize, directions=directions)
    return stmlang.compile(text, t=length, **{"dtype": "float64", **options})


@pytest.mark.parametrize("normalize", ["mlstm", "sum"])
@pytest.mark.parametrize("directions", ["", "directions both", "directions both concat", "directions backward"])
def test_the_scale_changes_nothing(normalize: str, directions: str) -> None:
    op = compiled(normalize, directions, strategy="chunkwise", config={"tile": (4,)})
    q, k, v, gates = op.example(1)
    if normalize == "sum":
        q, k = jnp.abs(q), jnp.abs(k)
    initial = jax.tree.map(lambda array: array + 0.3, op.zero_state())
    h, state = op(q, k, v, gates, initial, True)
    expected = op.reference_result(q, k, v, gates, initial)
    np.testing.assert_allclose(h, expected.h, atol=1e-12)
    for ours, theirs in zip(state, expected.state, strict=True):
        np.testing.assert_allclose(ours["t"], theirs["t"], atol=1e-12)


def test_no_gradient_is_lost_with_the_scale() -> None:
    op = compiled("mlstm")
    q, k, v, gates = op.example(2)
    rng = np.random.default_rng(0)
    toward = {name: rng.normal(size=array.shape) for name, array in gates.items()}

    def loss(step: float) -> float:
        moved = {name: np.asarray(array) + step * toward[name] for name, array in gates.items()}
        return float((op.reference(q, k, v, moved) ** 2).sum())

    gradient = jax.grad(lambda gates: (op(q, k, v, gates) ** 2).sum())(gates)
    ours = sum(float((gradient[name] * toward[name]).sum()) for name in gates)
    assert ours == pytest.approx((loss(1e-5) - loss(-1e-5)) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("strategy", ["recurrent", "parallel"])
def test_gates_far_out_of_range_stay_finite(dtype: str, strategy: str) -> None:
    """Sources from exp(-300) to exp(300), in steps of fifteen: float32 ends at exp(88)."""
    op = compiled("mlstm", length=40, dtype=dtype, strategy=strategy)
    q, k, v, gates = op.example()
    ramp = jnp.linspace(-300, 300, 40)[:, None] * jnp.ones((1, 2))
    gates = {**gates, "source": ramp.astype(op.signature.dtype)}
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    np.testing.assert_allclose(op(q, k, v, gates).astype(jnp.float32), op.reference(q, k, v, gates), atol=tolerance)
    gradients = jax.grad(lambda q, gates: op(q, k, v, gates).astype(jnp.float32).sum(), argnums=(0, 1))(q, gates)
    assert all(bool(jnp.isfinite(array).all()) for array in jax.tree.leaves(gradients))


def test_transitions_of_exactly_zero_and_one() -> None:
    gates = "source = exp(given()); transition = given(0, 1); read after; normalize mlstm"
    text = f"scan m(key = 3, value = 2) on chain(t) {{ {gates} }}"
    op = stmlang.compile(text, t=9, dtype="float64")
    q, k, v, gates = op.example()
    gates = {**gates, "transition": jnp.asarray([1.0, 0, 1, 1, 0, 0, 1, 1, 1])[:, None]}
    np.testing.assert_allclose(op(q, k, v, gates), op.reference(q, k, v, gates), atol=1e-12)
    gradient = jax.grad(lambda gates: op(q, k, v, gates).sum())(gates)
    assert all(bool(jnp.isfinite(array).all()) for array in jax.tree.leaves(gradient))


@pytest.mark.parametrize("name", ["mlstm", "mlstm_extreme"])
def test_the_authors_vectors(name: str) -> None:
    """mLSTM's parallel form with its stabilizer: gates of e^i and sigmoid(f), 1/sqrt(key) on the query."""
    found = np.load(data_folder("golden") / "zoo" / f"{name}.npz", allow_pickle=False)
    q, k, v = (np.moveaxis(found[f"in_{part}"][0], 0, 1) for part in "qkv")
    gates = {"source": found["in_i"][0].T, "transition": found["in_f"][0].T}
    length, heads, key = q.shape
    text = TEXT.format(normalize="mlstm", directions="").replace("heads = 2, key = 3, value = 2", "heads, key, value")
    op = stmlang.compile(
        text.replace("(heads, key, value)", f"(heads = {heads}, key = {key}, value = {v.shape[-1]})"), t=length, dtype="float64"
    )
    h = op(q / np.sqrt(key), k, v, {name: jnp.asarray(array) for name, array in gates.items()})
    np.testing.assert_allclose(np.moveaxis(np.asarray(h), 0, 1), found["out_h_eps0"][0], rtol=1e-8, atol=1e-10)
