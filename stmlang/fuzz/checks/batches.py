"""A batch of scans against each scan alone: gates that all share among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stmlang.fuzz.checks.judgement import Comparison, judge
from stmlang.fuzz.checks.point import Array, Point, Tree, as_tree, leaf_name, point, points_at, projected
from stmlang.fuzz.checks.programs import execute, product
from stmlang.fuzz.memory import remembered
from stmlang.fuzz.trial import Finding, Trial, Way
from stmlang.oracle.derivative import Arguments
from stmlang.runtime.compiled import CompiledScan


def vmap(trial: Trial, way: Way) -> Finding | None:
    """Two scans mapped over, without states: both results and the gradient of the sum of both products. Constants (`param`) and
    every other leaf are shared, `in_axes = None`."""
    first, op = point(trial, "float64", False), trial.compiled(way, "float64")
    second = _second(trial)
    batch = jax.tree.map(_stacked, _axes(op), *(as_tree(drawn.at) for drawn in (first, second)), is_leaf=_is_none)
    cotangent = jnp.asarray(np.stack([drawn.cotangent[0] for drawn in (first, second)]), op.dtype)
    h, gradient = execute(_both, op, batch, cotangent)
    return judge("vmap", way, [*_results(h, first, second), *_gradients(gradient, _shared(op), first, second)])


def _both(op: CompiledScan, tree: Tree, cotangent: Tree) -> tuple[Tree, Tree]:
    def total(tree: Tree) -> tuple[jax.Array, Tree]:
        def single(arguments: Tree, cotangent: jax.Array) -> tuple[jax.Array, Tree]:
            return product(op, arguments, (cotangent, None))

        products, (h, _) = jax.vmap(single, in_axes=(_axes(op), 0))(tree, cotangent)
        return jnp.sum(products), h

    (_, h), gradient = jax.value_and_grad(total, has_aux=True)(tree)
    return h, gradient


def _shared(op: CompiledScan) -> set[str]:
    """The leaves that both scans share."""
    return {leaf.name for number, leaf in enumerate(op.scan.leaves) if leaf.kind == "param" or number % 2}


def _axes(op: CompiledScan) -> Tree:
    shared = _shared(op)
    return (0, 0, 0, {leaf.name: None if leaf.name in shared else 0 for leaf in op.scan.leaves}, None)


def _second(trial: Trial) -> Point:
    """The second scan's point: drawn anew, but for what is shared; with the same changes."""
    draws = trial.together
    points = _seconds(replace(trial, draw=draws.start, beside=None), len(draws))
    return points[trial.draw - draws.start]


@remembered(2)
def _seconds(first: Trial, count: int) -> list[Point]:
    op = first.compiled(None, "float64")
    shared, draws = _shared(op), first.draws(count)

    def beside(draw: Trial) -> Arguments:
        mine, other = draw.arguments(op), draw.another().arguments(op)
        gates = {name: mine.gates[name] if name in shared else array for name, array in other.gates.items()}
        return replace(other, gates=gates)

    return points_at(op.scan, op, "float64", [beside(draw) for draw in draws], False, draws)


def _is_none(entry: Any) -> bool:
    return entry is None


def _stacked(axis: int | None, first: Any, second: Any) -> Any:
    if first is None or axis is None:
        return first
    return jnp.asarray(np.stack([first, second]))


def _results(h: np.ndarray[Any, Any], *points: Point) -> Iterator[Comparison]:
    for number, (computed, sample) in enumerate(zip(h, points, strict=True)):
        yield Comparison(f"result {number} of a batch", computed, sample.result.h, sample.allowed.h)


def _gradients(gradient: Tree, shared: set[str], *points: Point) -> Iterator[Comparison]:
    """Each scan's slopes; their sum where what moves is shared."""
    arrays: list[Array] = [np.asarray(array) for array in jax.tree.leaves(gradient)]
    names = points[0].arrays[1]
    summed = [name in {leaf_name(leaf) for leaf in shared} for name in names]
    for slopes in zip(*(sample.slopes for sample in points), strict=True):
        changes = slopes[0].changes
        own = {number: change for number, change in changes.items() if not summed[number]}
        each = [projected(_member(arrays, summed, place), own, "float64") for place in range(len(points))]
        if len(own) == len(changes):
            ends = zip(each, slopes, strict=True)
            comparisons = [(inner, slope.expected, slope.allowed + slack) for (inner, slack), slope in ends]
        else:
            both = {number: change for number, change in changes.items() if summed[number]}
            products, slacks = zip(projected(arrays, both, "float64"), *each, strict=True)
            allowed = sum(slope.allowed for slope in slopes) + sum(slacks)
            comparisons = [(sum(products), sum(slope.expected for slope in slopes), allowed)]
        for inner, expected, allowed in comparisons:
            yield Comparison(f"gradient by {slopes[0].name} of a batch", inner, expected, allowed)


def _member(arrays: list[Array], summed: list[bool], place: int) -> list[Array]:
    return [array if shared else array[place] for array, shared in zip(arrays, summed, strict=True)]
