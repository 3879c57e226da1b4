"""Few lengths for many: what is filled up gives what it gives alone, and few programs are compiled."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.nn import ScanLayer

SPEC = """
scan both(heads = 2, key = 3, value = 2) on chain(time) {
    directions both
    source     = sigmoid(linear(x))
    transition = sigmoid(linear(x)) * given(0, 1)
    direct     = param(1)
}
"""
DIM = 4
OPTIONS: dict[str, Any] = {"tuned": False, "strategy": "recurrent"}


@pytest.fixture(scope="module")
def op() -> stmlang.OpenScan:
    return stmlang.compile(SPEC, time=stmlang.Lengths(up_to=100), **OPTIONS)


@pytest.fixture(scope="module")
def exact() -> stmlang.OpenScan:
    return stmlang.compile(SPEC, **OPTIONS)


@pytest.mark.parametrize("length", [0, 1, 2, 13, 17])
def test_any_length_gives_what_it_gives_alone(op: stmlang.OpenScan, exact: stmlang.OpenScan, length: int) -> None:
    alone = exact.bind(time=length)
    q, k, v, gates = alone.example()
    initial = jax.tree.map(jnp.ones_like, alone.zero_state())
    h, state = op(q, k, v, gates, initial, return_state=True)
    expected, after = alone(q, k, v, gates, initial, return_state=True)
    np.testing.assert_allclose(h, expected, atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), state, after)


def test_layer_fills_up_what_it_is_given(op: stmlang.OpenScan, exact: stmlang.OpenScan) -> None:
    layer = ScanLayer(op, DIM, key=jax.random.key(0))
    plain = eqx.tree_at(lambda layer: layer.op, layer, exact)
    x = np.random.default_rng(0).standard_normal((13, DIM)).astype(np.float32)
    given = {"transition.2": np.full((13, 2, 2), 0.5, np.float32)}
    np.testing.assert_allclose(layer(x, given=given), plain(x, given=given), atol=1e-5)
    mask = np.arange(13) != 5
    np.testing.assert_allclose(layer(x, given=given, mask=mask), plain(x, given=given, mask=mask), atol=1e-5)


def test_thirty_two_lengths_are_as_many_programs_as_sizes() -> None:
    op = stmlang.compile("std:plstm/chain", heads=1, key=2, value=2, time=stmlang.Lengths(), **OPTIONS)
    layer, traced = ScanLayer(op, DIM, key=jax.random.key(0)), list[int]()

    @jax.jit
    def step(layer: ScanLayer, x: Any, mask: Any) -> Any:
        traced.append(len(x))
        return layer(x, mask=mask)

    for length in range(3, 99, 3):
        x = np.ones((length, DIM), np.float32)
        padded, mask = op.pad(x)
        assert isinstance(padded, np.ndarray)
        assert mask.sum() == length
        assert step(layer, padded, mask)[:length].shape == x.shape
        assert op.pad(padded)[0].shape == padded.shape
    assert traced == [16, 32, 48, 80, 128]
    assert sorted(op.compiled) == [(size,) for size in traced]


def test_several_sequences_make_a_batch(op: stmlang.OpenScan) -> None:
    xs = [np.full((length, DIM), length, np.float32) for length in (3, 20, 7)]
    padded, masks = op.pad_all(xs)
    assert padded.shape == (3, 32, DIM)
    for x, row, mask in zip(xs, padded, masks, strict=True):
        np.testing.assert_array_equal(row[mask], x)
        assert not row[~mask].any()


def test_images_of_any_size() -> None:
    spec = "scan s(heads = 1, key = 2, value = 2) on grid(rows, cols = 3) { source = linear(x); transition[out, in] = 0.3 }\n"
    op = stmlang.compile(spec, rows=stmlang.Lengths(), **OPTIONS)
    alone = stmlang.compile(spec, rows=5, **OPTIONS)
    np.testing.assert_allclose(op(*alone.example()), alone(*alone.example()), atol=1e-5)


def test_what_cannot_be_filled_up_is_refused(op: stmlang.OpenScan, exact: stmlang.OpenScan) -> None:
    q, k, v, gates = exact.bind(time=3).example()
    dag = "scan s on dag { a -> b } { source = 1; transition = 1 }\n"
    refused: list[tuple[Any, str, str]] = [
        (lambda: stmlang.Lengths(up_to=0), "STM5010", "`up_to` must be a positive whole number"),
        (lambda: stmlang.Lengths(ratio=1), "STM5010", "`ratio` must be a number from 1.01 to 16"),
        (lambda: stmlang.compile(dag, nodes=stmlang.Lengths()), "STM5010", "`nodes` cannot have several lengths"),
        (lambda: exact.pad(np.ones((3, DIM))), "STM5010", "without lengths to fill up to"),
        (lambda: op.pad(np.ones((101, DIM))), "STM5201", "lengths up to 100 are taken"),
        (lambda: op.pad(np.ones((3, DIM)), np.ones(4, bool)), "STM5210", "`mask` must be an array of truth values"),
        (lambda: op.pad(3), "STM5201", "begins with the axes"),
        (lambda: op.pad_all([]), "STM5203", "needs an array"),
        (lambda: op(q, k[:2], v, gates), "STM5201", r"`k` must begin with the axes \(3,\), not \(2,\)"),
    ]
    for call, code, text in refused:
        with pytest.raises(stmlang.SpecError, match=text) as error:
            call()
        assert error.value.diagnostics[0].code == code
