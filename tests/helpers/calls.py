"""A case compiled, called and differentiated, and what the oracles say it must give."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.recurrence import ReferenceResult, reference
from tests.helpers.cases import Case, Way
from tests.helpers.data import data_folder

Tree = Any


def source_of(case: Case) -> str:
    """What to compile: the text, or a file beside the graph files that it reads."""
    if not case.files:
        return case.text
    folder = Path(tempfile.gettempdir()) / "stmlang-cases" / case.name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    for file in case.files:
        shutil.copy(data_folder("data") / file, folder)
    path = folder / "case.stm"
    path.write_text(case.text)
    return str(path)


def compiled(case: Case, way: Way | None = None, dtype: str = "float64") -> Any:
    """The case compiled for one strategy, or for the one that the planner likes."""
    strategy, config = way or (None, None)
    return stmlang.compile(source_of(case), dtype=dtype, strategy=strategy, config=config)


def as_tree(arguments: Arguments) -> Tree:
    """The arguments as a pytree, for `op(*tree)`."""
    return (arguments.q, arguments.k, arguments.v, dict(arguments.gates), arguments.initial)


@dataclass(frozen=True, eq=False)
class Expected:
    """Arguments, a cotangent for result and final states, what the reference gives, and for every argument array (flattened as
    `as_tree`) a random change of it with the derivative along it: of result and states, and of the cotangent's product."""

    arguments: Arguments
    cotangent: Tree
    result: ReferenceResult
    changes: tuple[np.ndarray, ...]
    tangents: tuple[ReferenceResult, ...]
    slopes: tuple[float, ...]


@cache
def expected(case: Case) -> Expected:
    """What the oracles say of a case; the same numbers for every strategy."""
    op = compiled(case)
    return judged(op, random_arguments(op, len(case.name), case.values))


def judged(op: Any, arguments: Arguments) -> Expected:
    """What the oracles say of a scan at some arguments."""
    result = reference(op.scan, op.dag, *as_tree(arguments))
    rng = np.random.default_rng(1)
    cotangent = jax.tree.map(lambda array: rng.normal(size=array.shape), (result.h, result.state))
    leaves, structure = jax.tree.flatten(as_tree(arguments))
    changes = tuple(rng.normal(size=leaf.shape) for leaf in leaves)

    def tangent(number: int) -> ReferenceResult:
        along = [change if place == number else np.zeros_like(change) for place, change in enumerate(changes)]
        return derivative(op.scan, op.dag, arguments, Arguments(*jax.tree.unflatten(structure, along)))

    tangents = tuple(tangent(number) for number in range(len(leaves)))
    slopes = tuple(dot(cotangent, (tangent.h, tangent.state)) for tangent in tangents)
    return Expected(arguments, cotangent, result, changes, tangents, slopes)


def dot(first: Tree, second: Tree) -> float:
    """The inner product of two trees of arrays."""
    products = jax.tree.map(lambda a, b: float(np.sum(np.asarray(a, np.float64) * np.asarray(b, np.float64))), first, second)
    return sum(jax.tree.leaves(products))


def differentiated(op: Any, cotangent: Tree) -> Callable[[Tree], tuple[Tree, Tree]]:
    """The function from arguments to (result and final states, gradient of the cotangent's product)."""

    def product(tree: Tree) -> tuple[jax.Array, Tree]:
        found = op(*tree, return_state=True)
        terms = jax.tree.map(lambda a, b: jnp.sum(a * b.astype(a.dtype)), cotangent_like(found), found)
        return sum(jax.tree.leaves(terms)), found

    def cotangent_like(found: Tree) -> Tree:
        leaves = jax.tree.leaves(cotangent)
        return jax.tree.unflatten(jax.tree.structure(found), [jnp.asarray(leaf) for leaf in leaves])

    def call(tree: Tree) -> tuple[Tree, Tree]:
        (_, found), gradient = jax.value_and_grad(product, has_aux=True)(tree)
        return found, gradient

    return call


def error(found: Any, wanted: Any) -> float:
    """The largest difference, relative to the largest number wanted; shapes must agree."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    assert found.shape == wanted.shape, f"shape {found.shape}, should be {wanted.shape}"
    scale = float(np.abs(wanted).max(initial=0.0)) or 1.0
    return float(np.abs(found - wanted).max(initial=0.0)) / scale


def errors(found: Tree, result: ReferenceResult) -> dict[str, float]:
    """The errors of an output and of every final state."""
    h, state = found
    table = {"h": error(h, result.h)}
    for number, (ports, wanted) in enumerate(zip(state, result.state, strict=True)):
        assert set(ports) == set(wanted)
        table |= {f"state {number} {name}": error(ports[name], wanted[name]) for name in wanted}
    return table


def disagreement(op: Any, known: Expected, dtype: str = "float64") -> dict[str, float]:
    """The errors of value and states, and of each argument's gradient along a change of its own; by one program."""
    arguments = jax.tree.map(lambda array: jnp.asarray(array, dtype), as_tree(known.arguments))
    outputs, gradient = jax.jit(differentiated(op, known.cotangent))(arguments)
    assert outputs[0].dtype == jnp.dtype(dtype)
    table = errors(outputs, known.result)
    for number, (slope, change) in enumerate(zip(known.slopes, known.changes, strict=True)):
        array = np.asarray(jax.tree.leaves(gradient)[number], np.float64)
        scale = max(abs(slope), float(np.sqrt(np.sum((array * change) ** 2))), 1e-3)
        table[f"gradient {number}"] = abs(float(np.sum(array * change)) - slope) / scale
    return table
