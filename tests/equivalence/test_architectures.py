"""Specs of the library against the equations of their papers, written out with loops over nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stmlang
from stmlang.check import open_spec
from stmlang.fuzz.generators import random_arguments
from tests.helpers.calls import as_tree

Arrays = dict[str, np.ndarray]
TIME, SIZES = 7, {"heads": 2, "key": 3, "value": 2}


def run(name: str, scan: str | None = None, **sizes: int) -> tuple[Any, ...]:
    """A spec of the library on random arguments: q, k, v, the leaves, and the result; all float64."""
    text = open_spec(f"std:{name}").source.text
    op = stmlang.compile(text, dtype="float64", scan=scan, tuned=False, **{**SIZES, **sizes})
    assert isinstance(op, stmlang.CompiledScan)
    q, k, v, gates, *_ = as_tree(random_arguments(op, 3))
    h = op(q, k, v, gates)
    return (
        *(np.asarray(array) for array in (q, k, v)),
        {name: np.asarray(array) for name, array in gates.items()},
        np.asarray(h),
    )


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x))


def close(h: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(h, expected, rtol=1e-10, atol=1e-12)


def test_mamba2() -> None:
    q, k, v, gates, h = run("chain/mamba2", time=TIME)
    state, rows = np.zeros((2, 3, 2)), list[np.ndarray]()
    for t in range(TIME):
        dt = softplus(gates["dt"][t])[:, None, None]
        state = np.exp(-dt * np.exp(gates["rate"])[:, None, None]) * state + dt * k[t, :, :, None] * v[t, :, None]
        rows.append(np.einsum("hk,hkv->hv", q[t], state))
    close(h, np.stack(rows))


def test_gated_deltanet() -> None:
    q, k, v, gates, h = run("chain/gated_deltanet", time=TIME)
    k = k / np.sqrt(np.sum(k**2, axis=-1, keepdims=True) + 1e-12)
    state, rows = np.zeros((2, 3, 2)), list[np.ndarray]()
    for t in range(TIME):
        alpha = np.exp(-np.exp(gates["alpha"]) * softplus(gates["alpha.2"][t]))[:, None, None]
        beta = sigmoid(gates["beta"][t])[:, None]
        state = alpha * state
        seen = np.einsum("hk,hkv->hv", k[t], state)
        state = state + k[t, :, :, None] * (beta * (v[t] - seen))[:, None]
        rows.append(np.einsum("hk,hkv->hv", q[t], state))
    close(h, np.stack(rows))


def test_lru() -> None:
    _, _, _, gates, h = run("chain/lru", time=TIME)
    turn = np.exp(-np.exp(gates["nu"]) + 1j * np.exp(gates["theta"]))
    gamma = np.sqrt(1 - np.abs(turn) ** 2) * np.exp(gates["gamma"])
    out = gates["c"] + 1j * gates["c.2"]
    state, rows = np.zeros((2, 3), complex), list[np.ndarray]()
    for t in range(TIME):
        state = turn * state + gamma * (gates["input"][t] + 1j * gates["input.2"][t])
        rows.append(np.einsum("hkv,hk->hv", out, state).real)
    close(h, np.stack(rows))


def test_hgrn() -> None:
    _, _, v, gates, h = run("chain/hgrn", time=TIME, key=1, lower=0.3)
    state, rows = np.zeros((2, 2)), list[np.ndarray]()
    for t in range(TIME):
        forget = 0.3 + 0.7 * sigmoid(gates["forget"][t])
        state = forget * state + (1 - forget) * v[t]
        rows.append(state)
    close(h, np.stack(rows))


def test_rwkv6() -> None:
    q, k, v, gates, h = run("chain/rwkv6", time=TIME)
    state, rows = np.zeros((2, 3, 2)), list[np.ndarray]()
    for t in range(TIME):
        added = k[t, :, :, None] * v[t, :, None]
        rows.append(np.einsum("hk,hkv->hv", q[t], state + gates["direct"][:, :, None] * added))
        state = np.exp(-np.exp(gates["transition"][t]))[:, :, None] * state + added
    close(h, np.stack(rows))


def test_s4d() -> None:
    _, _, v, gates, h = run("chain/s4d", time=TIME)
    A = -np.exp(gates["p"]) + 1j * gates["w"]
    dt = np.exp(gates["dt"])[:, None, :]
    through, write = np.exp(dt * A), (np.exp(dt * A) - 1) / A
    out = gates["c"] + 1j * gates["c.2"]
    state, rows = np.zeros((2, 3, 2), complex), list[np.ndarray]()
    for t in range(TIME):
        state = through * state + write * v[t, :, None]
        rows.append(2 * np.sum(out * state, axis=1).real)
    close(h, np.stack(rows))


@pytest.mark.parametrize("scan", ["vil", "vil_backward"])
def test_vil(scan: str) -> None:
    q, k, v, gates, h = run("chain/vil", scan, patches=TIME)
    state, total, m, rows = np.zeros((2, 3, 2)), np.zeros((2, 3)), np.full(2, -np.inf), dict[int, np.ndarray]()
    for t in range(TIME) if scan == "vil" else range(TIME - 1, -1, -1):
        keep, write = np.log(sigmoid(gates["transition"][t])), gates["source"][t]
        m = np.maximum(keep + m, write)
        keep, write = np.exp(keep)[:, None], np.exp(write)[:, None]
        state = keep[..., None] * state + write[..., None] * k[t, :, :, None] * v[t, :, None]
        total = keep * total + write * k[t]
        divisor = np.maximum(np.abs(np.sum(q[t] * total, axis=-1)), 1) + 1e-6 * np.exp(m)
        rows[t] = np.einsum("hk,hkv->hv", q[t], state) / divisor[:, None]
    close(h, np.stack([rows[t] for t in range(TIME)]))


def test_mamba_nd() -> None:
    q, k, v, gates, h = run("chain/mamba_nd", patches=TIME)
    state, rows = np.zeros((2, 3, 2)), list[np.ndarray]()
    for t in range(TIME):
        dt = softplus(gates["dt"][t])[:, None]
        state = np.exp(-dt * np.exp(gates["rate"])) * state + k[t, :, :, None] * (dt * v[t][:, None])
        rows.append(np.einsum("hk,hkv->hv", q[t], state))
    close(h, np.stack(rows))


def test_vim() -> None:
    q, k, v, gates, h = run("chain/vim", patches=TIME)
    rows = np.zeros(h.shape)
    for way, order in enumerate((range(TIME), range(TIME - 1, -1, -1))):
        state = np.zeros((2, 3, 2))
        for t in order:
            dt = softplus(gates["dt"][t, :, way])[:, None]
            written = k[t, :, way, :, None] * (dt * v[t, :, way][:, None])
            state = np.exp(-dt * np.exp(gates["rate"][:, way])) * state + written
            rows[t] += np.einsum("hk,hkv->hv", q[t, :, way], state)
    close(h, rows)


def test_mamba2d() -> None:
    """The authors' cases: the first pixel, the first row, the first column, and the others."""
    q, _, v, gates, h = run("grid/mamba2d", rows=4, cols=3)
    states = dict[tuple[int, int], np.ndarray]()
    rows = np.zeros(h.shape)
    for i in range(4):
        for j in range(3):
            terms = dict[str, np.ndarray]()
            for side, before in (("above", (i - 1, j)), ("left", (i, j - 1))):
                dt = softplus(gates[f"dt_{side}"][i, j])[:, None]
                added = gates[f"b_{side}"][i, j][..., None] * dt * v[i, j][:, None]
                terms[side] = np.exp(-dt * np.exp(gates[f"rate_{side}"])) * states.get(before, np.zeros(())) + added
            match (i > 0, j > 0):
                case (True, True):
                    states[i, j] = (terms["above"] + terms["left"]) / 2
                case (True, False):
                    states[i, j] = terms["above"]
                case _:
                    states[i, j] = terms["left"]
            rows[i, j] = np.einsum("hk,hkv->hv", q[i, j], states[i, j])
    close(h, rows)


def test_ssm2d() -> None:
    _, _, v, gates, h = run("grid/ssm2d", rows=4, cols=3)
    expected = np.zeros(h.shape)
    for number in range(4):
        flip = tuple(slice(None, None, -1) if number >> axis & 1 else slice(None) for axis in range(2))
        A = sigmoid(gates["transition"][:, number]) / 2
        B, C = sigmoid(gates["source"][:, number]), gates["mark"][:, number]
        u, y = v[flip], np.zeros(h.shape)
        along, down = (np.zeros((5, 4, 2, 3, 2)) for _ in range(2))
        for i in range(4):
            for j in range(3):
                xh, xv = along[i, j], down[i, j]
                y[i, j] = np.sum(C[:, 1] * xh + C[:, 0] * xv, axis=1)
                along[i, j + 1] = A[:, 1, 1] * xh + A[:, 1, 0] * xv + B[:, 1] * u[i, j][:, None]
                down[i + 1, j] = A[:, 0, 1] * xh + A[:, 0, 0] * xv + B[:, 0] * u[i, j][:, None]
        expected += y[flip]
    close(h, expected)
