"""Each block is what the equations of its paper say, written out node by node in numpy and float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.special import erf, expit

import stmlang
from stmlang.models.blocks import GLA, MLSTM, RWKV6, DeltaNet, Mamba, Mamba2, Mamba2D, RWKV6Block, TwoDMamba
from tests.models.test_blocks import DIM, moved

Array = np.ndarray
TIME, HEADS, KEY, VALUE = 5, 2, 4, 4


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


# --- what the equations are made of


def silu(x: Array) -> Array:
    return x * expit(x)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


def linear(part: Any, x: Array) -> Array:
    bias = 0 if part.bias is None else np.asarray(part.bias, np.float64)
    return x @ np.asarray(part.weight, np.float64).T + bias


def convolved(part: Any, x: Array) -> Array:
    """`np.convolve` of each channel, cut where the inputs end."""
    weight = np.asarray(part.weight, np.float64)
    y = np.stack([np.convolve(x[:, c], weight[c, ::-1])[: len(x)] for c in range(x.shape[1])], axis=1)
    return y if part.bias is None else y + np.asarray(part.bias)


def rms(part: Any, x: Array) -> Array:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + part.eps) * np.asarray(part.scale)


def head_norm(part: Any, h: Array) -> Array:
    centred = h - h.mean(-1, keepdims=True)
    y = (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + part.norm.eps)).reshape(len(h), -1)
    return y * np.asarray(part.norm.weight) + np.asarray(part.norm.bias)


def per_head(x: Array) -> Array:
    return x.reshape(*x.shape[:-1], HEADS, -1)


def flat(h: Array) -> Array:
    return h.reshape(*h.shape[:-2], -1)


def wide_of(array: Any) -> Array:
    return np.asarray(array, np.float64)


# --- the blocks


def selected(part: Any, x: Array) -> tuple[Array, ...]:
    """u, z, the steps, B, C and A of Mamba, all channels in one head."""
    u, z = np.split(x, 2, axis=-1)
    u = silu(convolved(part.convolution, u.reshape(-1, u.shape[-1]))).reshape(z.shape)
    low, b, c = np.split(linear(part.select, u), [part.rank, part.rank + KEY], axis=-1)
    return u, z, softplus(linear(part.to_step, low)), b, c, -np.exp(wide_of(part.rate))[0]


def mamba(block: Mamba, x: Array) -> Array:
    u, z, step, b, c, a = selected(block.selective, linear(block.into, x))
    state, y = np.zeros(a.shape), np.zeros(u.shape)
    for t in range(len(x)):
        state = np.exp(step[t] * a) * state + b[t][:, None] * (step[t] * u[t])
        y[t] = c[t] @ state
    return linear(block.out, (y + wide_of(block.selective.skip) * u) * silu(z))


def two_d_mamba(block: TwoDMamba, x: Array) -> Array:
    u, z, step, b, c, a = selected(block.selective, linear(block.into, x))
    rows, cols, _ = x.shape
    along, down, y = np.zeros((rows, cols + 1, *a.shape)), np.zeros((rows + 1, cols, *a.shape)), np.zeros(u.shape)
    for i in range(rows):
        for j in range(cols):
            decay = np.exp(step[i, j] * a)
            along[i, j + 1] = decay * along[i, j] + b[i, j][:, None] * (step[i, j] * u[i, j])
            down[i + 1, j] = decay * down[i, j] + along[i, j + 1]
            y[i, j] = c[i, j] @ down[i + 1, j]
    return linear(block.out, (y + wide_of(block.selective.skip) * u) * silu(z))


def mamba2d(block: Mamba2D, x: Array) -> Array:
    u = gelu(linear(block.into, x))
    rows, cols, _ = x.shape
    rank = block.rank
    above, left, b, c = np.split(linear(block.select, u), [rank, 2 * rank, 2 * rank + KEY], axis=-1)
    steps = [softplus(linear(part, low)) for part, low in zip(block.to_steps, (above, left), strict=True)]
    decays = [-np.exp(wide_of(rate))[0] for rate in block.rates]
    state, y = np.zeros((rows, cols, *decays[0].shape)), np.zeros(u.shape)
    for i in range(rows):
        for j in range(cols):
            before = [None if i == 0 else state[i - 1, j], None if j == 0 else state[i, j - 1]]
            shares = [0.5, 0.5] if i > 0 and j > 0 else [1.0, 0.0] if i > 0 else [0.0, 1.0]
            for share, step, a, known in zip(shares, steps, decays, before, strict=True):
                kept = 0 if known is None else np.exp(step[i, j] * a) * known
                state[i, j] += share * (kept + b[i, j][:, None] * (step[i, j] * u[i, j]))
            y[i, j] = c[i, j] @ state[i, j]
    return linear(block.out, gelu(y + wide_of(block.skip) * u))


def mamba2(block: Mamba2, x: Array) -> Array:
    inner = HEADS * VALUE
    z, seen, step = np.split(linear(block.into, x), [inner, 2 * inner + 2 * KEY], axis=-1)
    u, b, c = np.split(silu(convolved(block.convolution, seen)), [inner, inner + KEY], axis=-1)
    u, step, a = per_head(u), softplus(step + wide_of(block.step_bias)), -np.exp(wide_of(block.rate))
    state, y = np.zeros((HEADS, KEY, VALUE)), np.zeros(u.shape)
    for t in range(TIME):
        written = step[t, :, None, None] * b[t][None, :, None] * u[t][:, None]
        state = np.exp(step[t] * a)[:, None, None] * state + written
        y[t] = np.einsum("k,hkv->hv", c[t], state) + wide_of(block.skip)[:, None] * u[t]
    return linear(block.out, rms(block.norm.norm, flat(y) * silu(z)))


def mlstm(block: MLSTM, x: Array) -> Array:
    def by_blocks(part: Any, x: Array) -> Array:
        weight = wide_of(part.weight)
        matrix = np.zeros((x.shape[-1], x.shape[-1]))
        for number, entries in enumerate(weight):
            own = slice(number * len(entries), (number + 1) * len(entries))
            matrix[own, own] = entries
        return x @ matrix.T

    u, z = np.split(linear(block.up, x), 2, axis=-1)
    c = silu(convolved(block.convolution, u))
    q, k, v = by_blocks(block.query, c), by_blocks(block.key, c), by_blocks(block.value, u)
    write, forget = np.split(linear(block.gates, np.concatenate([q, k, v], -1)), 2, axis=-1)
    q, k, v = per_head(q) / np.sqrt(KEY), per_head(k), per_head(v)
    state, total, scale, h = np.zeros((HEADS, KEY, VALUE)), np.zeros((HEADS, KEY)), np.full(HEADS, -np.inf), np.zeros(v.shape)
    for t in range(TIME):
        kept, written = expit(forget[t])[:, None], np.exp(write[t])[:, None]
        scale = np.maximum(np.log(kept[:, 0]) + scale, write[t])
        state = kept[..., None] * state + written[..., None] * k[t][..., None] * v[t][:, None]
        total = kept * total + written * k[t]
        divisor = np.maximum(np.abs((q[t] * total).sum(-1)), 1) + 1e-6 * np.exp(scale)
        h[t] = np.einsum("hk,hkv->hv", q[t], state) / divisor[:, None]
    return linear(block.down, (head_norm(block.norm, h) + wide_of(block.skip) * c) * silu(z))


def deltanet(block: DeltaNet, x: Array) -> Array:
    cuts = [HEADS * KEY, 2 * HEADS * KEY]
    q, k, v = (per_head(part) for part in np.split(silu(convolved(block.convolution, linear(block.into, x))), cuts, axis=-1))
    q, k = (part / np.sqrt((part**2).sum(-1, keepdims=True) + 1e-12) for part in (q, k))
    beta, alpha = expit(linear(block.beta, x)), np.ones((TIME, HEADS))
    if block.alpha is not None:
        alpha = np.exp(-np.exp(wide_of(block.rate)) * softplus(linear(block.alpha, x)))
    state, h = np.zeros((HEADS, KEY, VALUE)), np.zeros(v.shape)
    for t in range(TIME):
        state = alpha[t][:, None, None] * state
        missing = v[t] - np.einsum("hk,hkv->hv", k[t], state)
        state = state + beta[t][:, None, None] * k[t][..., None] * missing[:, None]
        h[t] = np.einsum("hk,hkv->hv", q[t], state) / np.sqrt(KEY)
    if block.gate is None:
        return linear(block.out, flat(rms(block.norm, h)))
    return linear(block.out, flat(rms(block.norm.norm, h)) * silu(linear(block.gate, x)))


def gla(block: GLA, x: Array) -> Array:
    q, k, v = (per_head(part) for part in np.split(linear(block.into, x), [HEADS * KEY, 2 * HEADS * KEY], axis=-1))
    alpha = per_head(expit(linear(block.alpha.up, linear(block.alpha.down, x))) ** (1 / 16))
    state, h = np.zeros((HEADS, KEY, VALUE)), np.zeros(v.shape)
    for t in range(TIME):
        state = alpha[t][..., None] * state + k[t][..., None] * v[t][:, None]
        h[t] = np.einsum("hk,hkv->hv", q[t], state) / np.sqrt(KEY)
    return linear(block.out, flat(rms(block.norm.norm, h)) * silu(linear(block.gate, x)))


def rwkv6(block: RWKV6, x: Array) -> Array:
    step = np.concatenate([np.zeros((1, DIM)), x[:-1]]) - x
    narrow = np.split(np.tanh(linear(block.narrow, x + step * wide_of(block.mix))), 5, axis=-1)
    shares = [wide_of(block.shift)[i] + narrow[i] @ wide_of(block.wide)[i].T for i in range(5)]
    of_r, of_k, of_v, of_gate, of_decay = (x + step * share for share in shares)
    r, k, v = (per_head(linear(p, m)) for p, m in ((block.receptance, of_r), (block.key, of_k), (block.value, of_v)))
    pace = linear(block.decay.up, np.tanh(linear(block.decay.down, of_decay)))
    decay = per_head(np.exp(-np.exp(pace)))
    state, h = np.zeros((HEADS, KEY, VALUE)), np.zeros(v.shape)
    for t in range(TIME):
        now = k[t][..., None] * v[t][:, None]
        h[t] = np.einsum("hk,hkv->hv", r[t], state + wide_of(block.bonus)[..., None] * now)
        state = decay[t][..., None] * state + now
    return linear(block.out, head_norm(block.norm, h) * silu(linear(block.gate, of_gate)))


def layer_norm(part: Any, x: Array) -> Array:
    return head_norm(part, x[:, None])


def rwkv6_block(block: RWKV6Block, x: Array) -> Array:
    z = x + rwkv6(block.time, layer_norm(block.before_time, x))
    seen, part = layer_norm(block.before_channels, z), block.channels
    before = np.concatenate([np.zeros((1, DIM)), seen[:-1]])
    of_r, of_k = (seen + (before - seen) * share for share in wide_of(part.shift))
    return z + expit(linear(part.receptance, of_r)) * linear(part.value, np.maximum(linear(part.key, of_k), 0) ** 2)


HEADED = {"heads": HEADS, "key": KEY, "value": VALUE}
CHANNELS = {"key": KEY, "value": 8}
CASES: dict[str, tuple[Callable[..., Any], str, dict[str, int], Callable[[Any, Array], Array]]] = {
    "mamba": (Mamba, "chain/mamba", CHANNELS, mamba),
    "mamba2": (Mamba2, "chain/mamba2", HEADED, mamba2),
    "mlstm": (MLSTM, "chain/mlstm", HEADED, mlstm),
    "deltanet": (DeltaNet, "chain/deltanet", HEADED, deltanet),
    "gated_deltanet": (DeltaNet, "chain/gated_deltanet", HEADED, deltanet),
    "gla": (GLA, "chain/gla", HEADED, gla),
    "rwkv6": (RWKV6, "chain/rwkv6", HEADED, rwkv6),
    "rwkv6_block": (RWKV6Block, "chain/rwkv6", HEADED, rwkv6_block),
    "two_d_mamba": (TwoDMamba, "grid/2dmamba", CHANNELS, two_d_mamba),
    "mamba2d": (Mamba2D, "grid/mamba2d", CHANNELS, mamba2d),
}


@pytest.mark.parametrize("name", CASES)
def test_block_is_its_equations(name: str) -> None:
    kind, spec, sizes, equations = CASES[name]
    block = moved(kind(stmlang.compile(f"std:{spec}", dtype="float64", **sizes), DIM, key=jax.random.key(0)))
    nodes = (TIME,) if spec.startswith("chain") else (3, 2)
    x = np.random.default_rng(1).standard_normal((*nodes, DIM))
    y = np.asarray(eqx.filter_jit(lambda block, x: block(x))(block, x))
    expected = equations(block, x)
    assert y.shape == expected.shape
    assert float(np.abs(expected).max()) > 0.1
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-11 * max(1.0, float(np.abs(expected).max())))
