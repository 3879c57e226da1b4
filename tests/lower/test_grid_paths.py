"""Paths between the nodes of grids, and what nodes read of those before them, against matrices in numpy."""

from __future__ import annotations

from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.lower.grid_paths import SHORT, grid_paths, read_before

SIZES = [(1,), (2,), (7,), (SHORT + 1,), (1, 1), (1, 5), (5, 1), (2, 3), (7, 5), (3, SHORT + 3), (2, 3, 4), (3, 1, 2)]


def edges(axes: tuple[int, ...], axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes that the edges along an axis leave and enter."""
    nodes = np.arange(prod(axes)).reshape(axes)
    return np.delete(nodes, -1, axis).ravel(), np.delete(nodes, 0, axis).ravel()


def numbers(rng: np.random.Generator, axes: tuple[int, ...]) -> list[np.ndarray]:
    """A number for each node that is entered along an axis, exact ones among them, and zeros where none is."""
    arrays = []
    for axis in range(len(axes)):
        array = rng.choice([0, 1, -1, 0.5], (2, *axes)) * rng.choice([1, rng.uniform(0.2, 1)], (2, *axes))
        np.moveaxis(array, 1 + axis, 0)[0] = 0
        arrays.append(array)
    return arrays


def matrix(steps: list[np.ndarray], axes: tuple[int, ...]) -> np.ndarray:
    whole = np.zeros((2, prod(axes), prod(axes)))
    for axis, step in enumerate(steps):
        tails, heads = edges(axes, axis)
        whole[:, tails, heads] = step.reshape(2, -1)[:, heads]
    return whole


def at_edges(whole: np.ndarray, axes: tuple[int, ...], axis: int) -> np.ndarray:
    tails, heads = edges(axes, axis)
    numbers = np.zeros((2, prod(axes)))
    numbers[:, heads] = whole[:, tails, heads]
    return numbers.reshape(2, *axes)


@pytest.mark.parametrize("axes", SIZES)
def test_paths_and_gradient(axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(prod(axes))
    steps = numbers(rng, axes)
    expected = np.linalg.inv(np.eye(prod(axes)) - matrix(steps, axes))
    cotangent = rng.normal(size=expected.shape)
    whole, pulled = jax.jit(_with_gradient)(steps, cotangent)
    np.testing.assert_allclose(whole, expected, rtol=0, atol=1e-12)
    along = expected.swapaxes(-1, -2) @ cotangent @ expected.swapaxes(-1, -2)
    for axis, back in enumerate(pulled):
        np.testing.assert_allclose(back, at_edges(along, axes, axis), rtol=0, atol=1e-11)


def _with_gradient(steps: list[jax.Array], cotangent: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
    whole, pull = jax.vjp(grid_paths, steps)
    return whole, pull(cotangent)[0]


@pytest.mark.parametrize("axes", SIZES)
def test_reading_and_gradient(axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(prod(axes))
    marks = numbers(rng, axes)
    rows, cotangent = rng.normal(size=(2, 2, 3, prod(axes)))
    read, pull = jax.vjp(read_before, jnp.asarray(rows), [jnp.asarray(mark) for mark in marks])
    by_rows, by_marks = pull(jnp.asarray(cotangent))
    np.testing.assert_allclose(read, rows @ matrix(marks, axes), rtol=0, atol=1e-13)
    np.testing.assert_allclose(by_rows, cotangent @ matrix(marks, axes).swapaxes(-1, -2), rtol=0, atol=1e-13)
    for axis, back in enumerate(by_marks):
        tails, heads = edges(axes, axis)
        expected = (rows[..., tails] * cotangent[..., heads]).sum(-2)
        np.testing.assert_allclose(np.asarray(back).reshape(2, -1)[:, heads], expected, rtol=0, atol=1e-13)
