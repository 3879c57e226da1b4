"""Gradients and derivatives against those of the recurrence, along a random change of every argument array and of single
entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from stmlang.fuzz.checks.evaluation import types
from stmlang.fuzz.checks.judgement import Comparison, judge, of_results
from stmlang.fuzz.checks.point import Point, Slope, Tree, as_tree, point, projected
from stmlang.fuzz.checks.programs import (
    arguments_of,
    as_dtype,
    cotangent_of,
    differentiated,
    evaluated,
    execute,
    product,
)
from stmlang.fuzz.trial import Finding, Trial, Way
from stmlang.runtime.compiled import CompiledScan


def of_gradient(sample: Point, gradient: Tree) -> Iterator[Comparison]:
    """The product of each argument's gradient with each of the point's changes of it."""
    arrays = [np.asarray(array, np.float64) for array in jax.tree.leaves(gradient)]
    for slope in sample.slopes:
        misshapen = [number for number, change in slope.changes.items() if arrays[number].shape != change.shape]
        if misshapen:
            number = misshapen[0]
            yield Comparison(f"gradient by {sample.arrays[1][number]}", arrays[number], slope.changes[number], 0.0)
            continue
        product, slack = projected(arrays, slope.changes, sample.dtype)
        yield Comparison(f"gradient by {slope.name} {_along(slope)}", product, slope.expected, slope.allowed + slack)


def _along(slope: Slope) -> str:
    change, *others = slope.changes.values()
    if others or np.count_nonzero(change) > 1:
        return "along a random change"
    return f"at {_place(change)}"


def _place(change: np.ndarray[Any, Any]) -> tuple[int, ...]:
    return tuple(int(axis[0]) for axis in np.nonzero(change)) if change.any() else ()


def _reverse(check: str, trial: Trial, way: Way, dtype: str, stateful: bool) -> Finding | None:
    """Value and gradient by one program."""
    sample, op = point(trial, dtype, stateful), trial.compiled(way, dtype)
    computed, gradient = execute(differentiated, op, arguments_of(sample, op), cotangent_of(sample, op))
    if fault := types(op, computed):
        return Finding(check, way.label, fault, float("inf"), 0.0)
    return judge(check, way, [*of_results(computed, sample.result, sample.allowed), *of_gradient(sample, gradient)])


def grad(trial: Trial, way: Way) -> Finding | None:
    """Reverse mode: result, final states and the gradient by everything, initial states included."""
    return _reverse("grad", trial, way, "float64", True)


def float32(trial: Trial, way: Way) -> Finding | None:
    """The same in single precision; every other trial without states."""
    return _reverse("float32", trial, way, "float32", trial.seed % 2 == 0)


def bfloat16(trial: Trial, way: Way) -> Finding | None:
    """The same in bfloat16, which must be single precision but for the rounding of arguments and results."""
    return _reverse("bfloat16", trial, way, "bfloat16", trial.seed % 2 == 1)


def remat(trial: Trial, way: Way) -> Finding | None:
    """The gradient without states, where the caller has the scan evaluated again on the way back."""
    sample, op = point(trial, "float64", False), trial.compiled(way, "float64")

    _, gradient = execute(_twice, op, arguments_of(sample, op), cotangent_of(sample, op))
    return judge("remat", way, of_gradient(sample, gradient))


def _twice(op: CompiledScan, tree: Tree, cotangent: Tree) -> tuple[jax.Array, Tree]:
    def again(tree: Tree) -> jax.Array:
        return product(op, tree, cotangent)[0]

    return jax.value_and_grad(jax.checkpoint(again))(tree)


def jvp(trial: Trial, way: Way) -> Finding | None:
    """Forward mode, along all arguments at once: every number of the derivative."""
    sample, op = point(trial, "float64", True), trial.compiled(way, "float64")
    tangent = as_dtype(as_tree(sample.along(None)), op)
    computed, change = execute(_forward, op, arguments_of(sample, op), tangent)
    derivative, allowed = sample.derivatives[-1]
    names = (
        Comparison(f"change of {comparison.name}", comparison.computed, comparison.expected, comparison.allowed)
        for comparison in of_results(change, derivative, allowed)
    )
    return judge("jvp", way, [*of_results(computed, sample.result, sample.allowed), *names])


def _forward(op: CompiledScan, tree: Tree, tangent: Tree) -> tuple[Tree, Tree]:
    def at(tree: Tree) -> Tree:
        return evaluated(op, tree)

    return jax.jvp(at, (tree,), (tangent,))
