"""The raster sweep beyond the common suite: odd sizes and many axes, second derivatives, what a backward pass keeps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from tests.equivalence.test_candidates import check
from tests.helpers.calls import as_tree, error
from tests.helpers.cases import GIVEN, NONE, RANK_ONE, Case


def compiled(axes: str, strategy: str, config: Any = None, body: str = GIVEN, tail: str = "", dtype: str = "float64") -> Any:
    text = f"scan test(heads = 2, key = 3, value = 2) on grid({axes}) {{\n{body}    stabilize none\n{tail}}}\n"
    return stmlang.compile(text, strategy=strategy, config=config, dtype=dtype)


def product(op: Any) -> Any:
    """A function of all arguments whose derivatives reach outputs and final states."""

    def total(tree: Any) -> Any:
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(op(*tree, return_state=True)))

    return total


def close(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < tolerance


@pytest.mark.parametrize(
    ("axes", "config"),
    [
        ("a = 1, b = 5", {"tile": (1, 2)}),
        ("a = 2, b = 1", {"tile": (1, 1), "segments": 2}),
        ("a = 7, b = 11", {"tile": (3, 4), "segments": 2}),
        ("a = 2, b = 1, c = 5", {"tile": (2, 1, 3)}),
        ("a = 3, b = 2, c = 2, d = 3", {"tile": (2, 2, 1, 2)}),
    ],
    ids=str,
)
def test_sizes(axes: str, config: Any) -> None:
    """Gates of 0, 1 and -1; value, final states and every gradient as by the recurrence."""
    way = ("raster", config)
    check(Case(axes, f"grid({axes})", GIVEN + NONE, (way,), exact=True), way, "float64", 1e-10)


PINS = {
    "volume": [("b", "a"), ("c", "a"), ("c", "b")],
    "straight first": [("b", "a"), ("c", "a")],
    "pure first": [("a", "b"), ("a", "c")],
    "straight": [(out, into) for out in "abc" for into in "abc" if out != into],
}


@pytest.mark.parametrize("name", PINS)
def test_structural_zeros(name: str) -> None:
    """Axes that are left or entered by no turn, or by neither: value, final states and every gradient."""
    body = GIVEN + "".join(f"    transition[out = {out}, in = {into}] = 0\n" for out, into in PINS[name])
    way = ("raster", {"tile": (2, 3, 2)})
    case = Case(name, "grid(a = 3, b = 4, c = 2)", body + "    directions +a +b +c, -a +b -c\n" + NONE, (way,))
    check(case, way, "float64", 1e-10)


def test_second_derivatives() -> None:
    """Forward over reverse, and reverse over reverse."""
    tail = "    directions all\n"
    found = compiled("a = 3, b = 4", "raster", {"tile": (2, 2), "segments": 2}, RANK_ONE, tail)
    simple = compiled("a = 3, b = 4", "parallel", None, RANK_ONE, tail)
    tree, along = (as_tree(random_arguments(found, seed)) for seed in (0, 1))

    def forward(op: Any) -> Any:
        return jax.jit(lambda: jax.jvp(jax.grad(product(op)), (tree,), (along,))[1])()

    def slope(tree: Any) -> Any:
        return sum(jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), jax.grad(product(found))(tree), along)))

    expected = forward(simple)
    close(forward(found), expected)
    close(jax.jit(jax.grad(slope))(tree), expected)


def test_a_normalizer_is_carried_along() -> None:
    body = GIVEN.replace("mark[in] = given()", "mark[in] = given(0.1, 1)") + "    normalize sum\n"
    found, simple = (
        compiled("a = 5, b = 6", name, cut, body) for name, cut in (("raster", {"tile": (2, 3)}), ("recurrent", None))
    )
    q, k, v, gates, _ = as_tree(random_arguments(found, 0))
    positive = jax.tree.map(jnp.abs, (q, k, v, gates))
    close(found(*positive), simple(*positive))


def test_training_keeps_no_state_of_a_node() -> None:
    """A backward pass holds less than one state for each node of a direction, and segments make it less."""
    spec, sizes = "std:plstm/image_p", {"rows": 64, "cols": 16, "heads": 1, "key": 32, "value": 32}
    states = 4 * 64 * 16 * 32 * 32 * 4
    held: list[int] = []
    for segments in (1, 4):
        op = stmlang.compile(spec, strategy="raster", config={"tile": (4, 4), "segments": segments}, **sizes)
        q, k, v, gates = op.example()
        gradient = jax.jit(jax.grad(lambda q, gates, op=op, k=k, v=v: op(q, k, v, gates).sum(), (0, 1)))
        held.append(int(gradient.lower(q, gates).compile().memory_analysis().temp_size_in_bytes))
    assert held[1] < held[0] < states


def test_bfloat16_accumulates_in_single_precision() -> None:
    op = compiled("a = 40, b = 40", "raster", {"tile": (8, 8)}, dtype="bfloat16")
    inputs = [np.ones(shape) for shape in op.signature.inputs.values()]
    gates = {name: np.full(shape, 0.5 if name == "transition" else 1.0) for name, shape in op.signature.gates.items()}
    tree = jax.tree.map(lambda array: jnp.asarray(array, jnp.bfloat16), (*inputs, gates))
    wide = jax.tree.map(lambda array: np.asarray(array, np.float64), tree)
    assert error(op(*tree), op.reference(*wide)) < 1e-2
