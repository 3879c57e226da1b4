"""Results and final states against the recurrence."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from stmlang.fuzz.checks.judgement import Comparison, judge, of_results
from stmlang.fuzz.checks.point import Tree, point
from stmlang.fuzz.checks.programs import arguments_of, evaluated, execute
from stmlang.fuzz.trial import Finding, Trial, Way
from stmlang.runtime.compiled import CompiledScan


def value(trial: Trial, way: Way) -> Finding | None:
    """Result and final states, from initial ones."""
    sample, op = point(trial, "float64", True), trial.compiled(way, "float64")
    computed = execute(evaluated, op, arguments_of(sample, op))
    return judge("value", way, of_results(computed, sample.result, sample.allowed))


def jit(trial: Trial, way: Way) -> Finding | None:
    """Without states: called as it is, and within a function that the caller compiles, which closes over the scan. Both must be
    the reference's numbers."""
    sample, op = point(trial, "float64", False), trial.compiled(way, "float64")
    tree = arguments_of(sample, op)
    within = execute(partial(_called, op), tree)
    results: dict[str, Any] = {"result": op(*tree), "result within a compiled function": within}
    comparisons = [Comparison(name, array, sample.result.h, sample.allowed.h) for name, array in results.items()]
    return judge("jit", way, comparisons)


def _called(op: CompiledScan, tree: Tree) -> jax.Array:
    return op(*tree)


def types(op: CompiledScan, outputs: tuple[jax.Array, object]) -> str:
    """What is wrong with the data types of a result and its states; empty if nothing is."""
    h, state = outputs
    if h.dtype != jnp.dtype(op.dtype):
        return f"result is {h.dtype}, should be {op.dtype}"
    wide = {str(array.dtype) for array in jax.tree.leaves(state)} - {"float64" if op.dtype == "float64" else "float32"}
    return f"final states are {', '.join(sorted(wide))}" if wide else ""
