"""A batch of scans against each scan alone: gates that all share among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stmlang.fuzz.checks.judgement import Comparison, judge
from stmlang.fuzz.checks.point import Array, Point, Tree, as_tree, leaf_name, point, point_at, slope_slack
from stmlang.fuzz.checks.programs import execute, product
from stmlang.fuzz.trial import Finding, Trial, Way
from stmlang.runtime.compiled import CompiledScan


def vmap(trial: Trial, way: Way) -> Finding | None:
    """Two scans mapped over, without states: both results and the gradient of the sum of both products. Constants (`param`) and
    every other leaf are shared, `in_axes = None`."""
    first, op = point(trial, "float64", False), trial.compiled(way, "float64")
    shared = {leaf.name for number, leaf in enumerate(op.scan.leaves) if leaf.kind == "param" or number % 2}
    second = _beside(trial, op, first, shared)
    axes = (0, 0, 0, {leaf.name: None if leaf.name in shared else 0 for leaf in op.scan.leaves}, None)
    batch = jax.tree.map(_stacked, axes, *(as_tree(one.at) for one in (first, second)), is_leaf=_is_none)
    cotangent = jnp.asarray(np.stack([one.cotangent[0] for one in (first, second)]), op.dtype)

    def both(op: CompiledScan, tree: Tree, cotangent: Tree) -> tuple[Tree, Tree]:
        def total(tree: Tree) -> tuple[jax.Array, Tree]:
            def single(part: Tree, cotangent: jax.Array) -> tuple[jax.Array, Tree]:
                return product(op, part, (cotangent, None))

            products, (h, _) = jax.vmap(single, in_axes=(axes, 0))(tree, cotangent)
            return jnp.sum(products), h

        (_, h), gradient = jax.value_and_grad(total, has_aux=True)(tree)
        return h, gradient

    h, gradient = execute(both, op, batch, cotangent)
    return judge("vmap", way, [*_results(h, first, second), *_gradients(gradient, shared, first, second)])


def _beside(trial: Trial, op: CompiledScan, first: Point, shared: set[str]) -> Point:
    """A second scan's point: drawn anew, but for what is shared; with the same changes."""
    other = replace(trial, seed=trial.seed + 1).arguments(op)
    gates = {name: first.at.gates[name] if name in shared else array for name, array in other.gates.items()}
    return point_at(op, "float64", replace(other, gates=gates), False, trial)


def _is_none(entry: Any) -> bool:
    return entry is None


def _stacked(axis: int | None, first: Any, second: Any) -> Any:
    if first is None or axis is None:
        return first
    return jnp.asarray(np.stack([first, second]))


def _results(h: np.ndarray[Any, Any], *points: Point) -> Iterator[Comparison]:
    for number, (found, here) in enumerate(zip(h, points, strict=True)):
        yield Comparison(f"result {number} of a batch", found, here.result.h, here.allowed.h)


def _gradients(gradient: Tree, shared: set[str], *points: Point) -> Iterator[Comparison]:
    """Each scan's slopes; of what is shared, their sum."""
    arrays: list[Array] = jax.tree.leaves(gradient)
    summed = {leaf_name(name) for name in shared}
    for slopes in zip(*(here.slopes for here in points), strict=True):
        one, change = slopes[0], slopes[0].change
        parts: list[Array] = [arrays[one.array]] if one.name in summed else [*arrays[one.array]]
        wanted = [sum(slope.wanted for slope in slopes)] if one.name in summed else [slope.wanted for slope in slopes]
        allowed = [sum(slope.allowed for slope in slopes)] if one.name in summed else [slope.allowed for slope in slopes]
        for part, value, bound in zip(parts, wanted, allowed, strict=True):
            slack = slope_slack(part, change, "float64")
            yield Comparison(f"gradient by {one.name} of a batch", float(np.sum(part * change)), value, bound + slack)
