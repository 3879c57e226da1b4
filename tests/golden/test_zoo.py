"""The specs of the library give the numbers of the authors of each architecture: outputs, states and gradients.

A case is a function from a file's inputs to its outputs, with a spec of the library inside. Outputs are compared, and the
gradient of the sum of all outputs times the file's cotangents. Where a spec normalizes keys and the authors' function takes
them as they are, gradients are those of the spec without that line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import stmlang
from stmlang.check import open_spec
from tests.helpers.data import data_folder

Arrays = dict[str, Array]
TOLERANCE = 1e-10


def without(name: str, line: str) -> str:
    """A spec of the library without one of its lines."""
    lines = open_spec(f"std:{name}").source.text.split("\n")
    assert sum(entry.strip() == line for entry in lines) == 1
    return "\n".join(entry for entry in lines if entry.strip() != line)


def read(name: str) -> Arrays:
    with np.load(data_folder("golden/zoo") / f"{name}.npz", allow_pickle=False) as file:
        return {key: jnp.asarray(file[key]) for key in file.files}


def by_head(array: Array) -> Array:
    """`[1, head, node, ...]` as `(node, head, ...)`."""
    return jnp.moveaxis(array[0], 0, 1)


@cache
def compiled(spec: str, **sizes: int) -> stmlang.CompiledScan:
    op = stmlang.compile(spec, dtype="float64", tuned=False, **sizes)
    assert isinstance(op, stmlang.CompiledScan)
    return op


def mlstm(given: Arrays) -> Arrays:
    op = compiled("std:chain/mlstm", heads=2, key=8, value=6, time=24)
    gates = {"source": by_head(given["i"]), "transition": by_head(given["f"])}
    h = op(by_head(given["q"]) * 8**-0.5, by_head(given["k"]), by_head(given["v"]), gates)
    return {"h": jnp.moveaxis(h, 0, 1)[None]}


def mlstm_from_a_state(given: Arrays) -> Arrays:
    """The scale of the state that is given counts as a term: one of a first node that writes a key of zero."""
    op = compiled("std:chain/mlstm", heads=2, key=8, value=6, time=25)

    def behind(first: Array, rest: Array) -> Array:
        return jnp.concatenate([first, rest])

    q, k, v = (behind(jnp.zeros((1, *given[name].shape[1:2], given[name].shape[-1])), by_head(given[name])) for name in "qkv")
    m = given["m0"][0, :, 0]
    gates = {"source": behind(m[None], by_head(given["i"])), "transition": behind(jnp.full((1, 2), 40.0), by_head(given["f"]))}
    state = jnp.concatenate([given["c0"], given["n0"][..., None]], axis=-1)[0] * jnp.exp(m)[:, None, None]
    h, (final,) = op(q * 8**-0.5, k, v, gates, initial=({"time": state},), return_state=True)
    scale = jnp.exp(-largest(given))[:, None, None]
    return {
        "h": jnp.moveaxis(h[1:], 0, 1)[None],
        "c": (final["time"][..., :-1] * scale)[None],
        "n": (final["time"][..., -1] * scale[..., 0])[None],
    }


def largest(given: Arrays) -> Array:
    """The stabiliser that the authors return beside the state that they divide by it."""
    m = given["m0"][0, :, 0]
    for t in range(given["i"].shape[-1]):
        m = jnp.maximum(jax.nn.log_sigmoid(given["f"][0, :, t]) + m, given["i"][0, :, t])
    return m


CASES: Mapping[str, Callable[[Arrays], Arrays]] = {
    "mlstm": mlstm,
    "mlstm_init": mlstm_from_a_state,
    "mlstm_extreme": mlstm,
}


@pytest.mark.parametrize("name", CASES)
def test_architecture(name: str) -> None:
    arrays, function = read(name), CASES[name]
    given = {key.removeprefix("in_"): array for key, array in arrays.items() if key.startswith("in_")}
    cotangents = {key.removeprefix("ct_"): array for key, array in arrays.items() if key.startswith("ct_")}

    def loss(given: Arrays) -> tuple[Array, Arrays]:
        outputs = function(given)
        return sum((jnp.sum(cotangents[key] * outputs[key]) for key in cotangents), jnp.zeros(())), outputs

    gradients, outputs = jax.jit(jax.grad(loss, has_aux=True))(given)
    errors = {key: distance(outputs[key], arrays[f"out_{key}"]) for key in outputs}
    errors |= {f"gradient {key}": distance(gradients[key], arrays[f"grad_{key}"]) for key in given}
    assert set(cotangents) <= set(outputs)
    assert {key: error for key, error in errors.items() if not error <= TOLERANCE} == {}


def distance(array: Array, expected: Array) -> float:
    """The largest difference, relative to the largest number."""
    assert array.shape == expected.shape
    return float(jnp.abs(array - expected).max() / jnp.maximum(1.0, jnp.abs(expected).max()))
