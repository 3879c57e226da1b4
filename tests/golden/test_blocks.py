"""The blocks of Vim and V2M give the numbers of their authors' layers: results, and gradients of inputs and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array

import stmlang
from stmlang.models.blocks import V2M, Vim
from stmlang.models.blocks.selective import Selective
from tests.golden.test_zoo import TOLERANCE, Arrays, distance, read

SIZES = {"heads": 1, "key": 4, "value": 8}


def selective(given: Arrays, behind: str, rate: str, skip: str) -> list[Array]:
    """The parameters of one direction or stage, in the order of `parameters`."""
    return [
        given[f"conv1d{behind}__weight"][:, 0],
        given[f"conv1d{behind}__bias"],
        given[f"x_proj{behind}__weight"],
        given[f"dt_proj{behind}__weight"],
        given[f"dt_proj{behind}__bias"],
        given[rate].T[None],
        given[skip],
    ]


def parameters(part: Selective) -> list[Array | None]:
    step, convolution = part.to_step, part.convolution
    return [convolution.weight, convolution.bias, part.select.weight, step.weight, step.bias, part.rate, part.skip]


def vim(given: Arrays) -> Array:
    block = Vim(stmlang.compile("std:chain/mamba", dtype="float64", time=24, **SIZES), 4, rank=1, key=jax.random.key(0))

    def where(block: Vim) -> list[Array | None]:
        forward, backward = block.directions.layers
        return [block.into.weight, block.out.weight, *parameters(forward), *parameters(backward.layer)]

    outer = [given["in_proj__weight"], given["out_proj__weight"]]
    directions = [*selective(given, "", "A_log", "D"), *selective(given, "_b", "A_b_log", "D_b")]
    return eqx.tree_at(where, block, [*outer, *directions])(given["x"][0])[None]


def v2m(given: Arrays) -> Array:
    along, across = (stmlang.compile(f"std:chain/v2m{which}", dtype="float64", **SIZES) for which in (":v2m_rows", ""))
    block = V2M(along, across, 4, rank=1, mirrored=True, key=jax.random.key(0))

    def where(block: V2M) -> list[Array | None]:
        return [block.into.weight, block.out.weight, *parameters(block.along), *parameters(block.across)]

    outer = [given["in_proj__weight"], given["out_proj__weight"]]
    stages = [*selective(given, "", "A_log", "D"), *selective(given, "_2", "A_2_log", "D_2")]
    y = eqx.tree_at(where, block, [*outer, *stages])(given["x"].reshape(5, 5, 4))
    return jnp.swapaxes(y, 0, 1).reshape(1, 25, 4)  # theirs comes column by column


LAYERS: Mapping[str, Callable[[Arrays], Array]] = {"vim_layer": vim, "v2m_layer": v2m}


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str) -> None:
    arrays, function = read(name), LAYERS[name]
    given = {key.removeprefix("in_"): array for key, array in arrays.items() if key.startswith("in_")}

    def loss(given: Arrays) -> tuple[Array, Array]:
        y = function(given)
        return jnp.sum(arrays["ct_y"] * y), y

    gradients, y = jax.jit(jax.grad(loss, has_aux=True))(given)
    errors = {"y": distance(y, arrays["out_y"])}
    errors |= {f"gradient {key}": distance(gradients[key], arrays[f"grad_{key}"]) for key in given}
    assert {key: error for key, error in errors.items() if not error <= TOLERANCE} == {}
