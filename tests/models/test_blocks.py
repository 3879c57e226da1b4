"""Blocks of chains: step by step they give what they give at once, under every transformation and in every data type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.models.blocks import GLA, MLSTM, RWKV6, DeltaNet, Mamba, Mamba2, RWKV6Block
from stmlang.nn import ScanLayer

DIM = 6
BLOCKS: dict[str, tuple[Callable[..., Any], str, dict[str, int]]] = {
    "mamba": (Mamba, "mamba", {"key": 3, "value": 8}),
    "mamba2": (Mamba2, "mamba2", {"heads": 2, "key": 3, "value": 4}),
    "mlstm": (MLSTM, "mlstm", {"heads": 2, "key": 4, "value": 4}),
    "deltanet": (DeltaNet, "deltanet", {"heads": 2, "key": 3, "value": 4}),
    "gated_deltanet": (DeltaNet, "gated_deltanet", {"heads": 2, "key": 3, "value": 4}),
    "gla": (GLA, "gla", {"heads": 2, "key": 3, "value": 4}),
    "rwkv6": (RWKV6, "rwkv6", {"heads": 2, "key": 3, "value": 4}),
    "rwkv6_block": (RWKV6Block, "rwkv6", {"heads": 2, "key": 3, "value": 4}),
}
each = pytest.mark.parametrize("name", BLOCKS)


@pytest.fixture
def wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@cache
def made(name: str, dtype: str = "float32") -> Any:
    kind, spec, sizes = BLOCKS[name]
    op = stmlang.compile(f"std:chain/{spec}", dtype=dtype, **sizes)
    return moved(kind(op, DIM, key=jax.random.key(0)))


def moved(module: Any, seed: int = 2) -> Any:
    """With all parameters somewhat away from where they start, so that none is without effect."""
    generator = np.random.default_rng(seed)

    def move(leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf):
            return leaf
        return jnp.asarray(np.asarray(leaf) + generator.normal(0, 0.2, leaf.shape).astype(leaf.dtype))

    return jax.tree.map(move, module)


def features(time: int, dtype: str = "float32", seed: int = 1, batch: tuple[int, ...] = ()) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal((*batch, time, DIM)), dtype)


@eqx.filter_jit
def call(block: Any, x: jax.Array) -> jax.Array:
    return block(x)


@eqx.filter_jit
def in_parts(block: Any, x: jax.Array, prompt: int) -> jax.Array:
    """A prompt at once, the nodes behind it one by one."""
    y, state = block.prefill(block.init_state(), x[:prompt])

    def step(state: Any, x: jax.Array) -> tuple[Any, jax.Array]:
        y, state = block.step(state, x)
        return state, y

    return jnp.concatenate([y, jax.lax.scan(step, state, x[prompt:])[1]])


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(("name", "time"), [*((name, 7) for name in BLOCKS), ("mamba", 1), ("rwkv6", 1)])
def test_steps_are_the_whole_sequence(name: str, time: int) -> None:
    block, x = made(name, "float64"), features(time, "float64")
    y = call(block, x)
    assert y.dtype == jnp.float64
    np.testing.assert_allclose(in_parts(block, x, time // 2), y, atol=1e-12)


@pytest.mark.parametrize("name", [name if name == "mlstm" else pytest.param(name, marks=pytest.mark.slow) for name in BLOCKS])
def test_steps_in_float32(name: str) -> None:
    block, x = made(name), features(5)
    np.testing.assert_allclose(in_parts(block, x, 2), call(block, x), atol=1e-5)


@each
def test_nothing_reaches_the_past(name: str) -> None:
    block, x = made(name), features(5)
    before, behind = call(block, x), call(block, x.at[3, ::2].add(1.0))
    np.testing.assert_allclose(before[:3], behind[:3], atol=1e-6)
    assert all(float(jnp.abs(before[t] - behind[t]).max()) > 1e-4 for t in (3, 4))


@each
def test_gradient_reaches_every_parameter_under_vmap(name: str) -> None:
    block, x = made(name), features(5, batch=(2,))

    def loss(block: Any) -> tuple[jax.Array, jax.Array]:
        y = jax.vmap(block)(x)
        return jnp.sum(y**2), y

    gradients, y = eqx.filter_jit(eqx.filter_grad(loss, has_aux=True))(block)
    np.testing.assert_allclose(y[1], call(block, x[1]), atol=1e-5)
    for path, gradient in jax.tree_util.tree_leaves_with_path(gradients):
        assert np.isfinite(gradient).all(), path
        assert np.abs(gradient).max() > 0, path


@each
def test_bfloat16_keeps_float32_parameters(name: str) -> None:
    exact, block, x = made(name), made(name, "bfloat16"), features(5)
    assert {leaf.dtype for leaf in jax.tree.leaves(eqx.filter(block, eqx.is_inexact_array))} == {jnp.dtype(jnp.float32)}
    y, whole = call(block, x.astype(jnp.bfloat16)), call(exact, x)
    assert y.dtype == jnp.bfloat16
    np.testing.assert_allclose(y.astype(jnp.float32), whole, atol=0.1 * float(jnp.abs(whole).max()))


@each
def test_strict_ranks_and_types(name: str) -> None:
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        assert eqx.filter_eval_shape(made(name), features(2)).shape == (2, DIM)


def test_a_scan_with_other_leaves_is_refused() -> None:
    op = stmlang.compile("std:plstm/chain", heads=2, key=4, value=4)
    with pytest.raises(stmlang.SpecError, match=r"fills the leaves \['dt', 'rate'\].*has \['direct', 'mark'") as error:
        Mamba(op, DIM, key=jax.random.key(0))
    assert error.value.diagnostics[0].code == "STM5208"
    assert ScanLayer(op, DIM, key=jax.random.key(0)).dim == DIM
    with pytest.raises(stmlang.SpecError, match="of a chain; scan `mamba_2d`"):
        Mamba(stmlang.compile("std:grid/2dmamba"), DIM, key=jax.random.key(0))
    for kind in {kind for kind, _, _ in BLOCKS.values()}:
        with pytest.raises(stmlang.SpecError, match="must be a compiled scan"):
            kind("std:chain/mamba", DIM, key=jax.random.key(0))
    with pytest.raises(stmlang.SpecError, match="equally wide"):
        MLSTM(stmlang.compile("std:chain/mlstm", heads=2, key=4, value=2), DIM, key=jax.random.key(0))
