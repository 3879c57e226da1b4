"""Relations about chains and grids: their axes, their margins, their parts."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from stmlang.cost.settings import settings_dict
from stmlang.fuzz.relations.compare import same
from stmlang.fuzz.relations.grids import (
    Window,
    axes_of,
    embedded,
    inner,
    others,
    transposed,
    transposed_outcome,
    windowed,
)
from stmlang.fuzz.relations.instance import Instance, Outcome, State, compiled, reads, refuse_borders
from stmlang.fuzz.relations.subject import Subject, evaluate, kept, random, rounding, subject
from stmlang.fuzz.trial import Finding, NotApplicable, Trial, Way
from stmlang.strategies.registry import stored_settings

MARGIN = 2
"""Nodes on each side of an axis, at most."""
LARGEST = 256
"""Nodes of a grid with its margins, where it has not as many itself: by margins of four axes it would be a hundred times as
large, and compile for minutes where all its pairs of nodes are held."""


def transposed_grid(trial: Trial, way: Way) -> Finding | None:
    """A grid whose last two axes change places, its gates with them, gives the same with those axes changed."""
    original = subject(trial, way)
    dag = original.op.dag
    around = transposed(original.instance)
    settings = stored_settings(way.strategy, way.config).transposed(len(dag.node_shape))
    computed = evaluate(around, Way(way.strategy, settings_dict(settings)))
    expected, allowed = (transposed_outcome(dag, outcome) for outcome in (original.outcome, original.rounding))
    return same("transpose", way, computed, expected, allowed)


def embedded_grid(trial: Trial, way: Way) -> Finding | None:
    """A grid in a larger one whose other nodes write nothing."""
    larger, window = _in_margin(trial, way)
    return _same_within("embed in a larger grid", trial, way, larger.outcome, window)


def padding_of_nan(trial: Trial, way: Way) -> Finding | None:
    """The same with queries of NaN in the margin: what is read there is nobody else's."""
    larger, window = _in_margin(trial, way)
    if reads(larger.op.scan, "q") - {"q"}:
        raise NotApplicable("its gates depend on the query")
    inputs = larger.instance.given.inputs
    query = np.full_like(inputs["q"], np.nan)
    query[window] = inputs["q"][window]
    computed = larger.call(replace(larger.instance.given, inputs=inputs | {"q": query}))
    return _same_within("padding of NaN", trial, way, computed, window)


@kept
def _in_margin(trial: Trial, way: Way) -> tuple[Subject, Window]:
    """A grid in a larger one, and where it lies."""
    instance = subject(trial, way).instance
    refuse_borders(instance.scan)
    axes, generator = axes_of(instance.dag), random(trial, "embed")
    before, after = (tuple(int(n) for n in generator.integers(0, MARGIN + 1, len(axes))) for _ in range(2))
    if not any((*before, *after)):
        after = (*after[:-1], 1)
    before, after = _narrowed(axes, before, after)
    larger = embedded(instance, before, after)
    return Subject(compiled(larger.scan, larger.dag, way), larger), inner(instance, before)


def _narrowed(
    axes: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Margins without those of the first axes, as many as make the grid too large; the last that there is stays."""
    for axis in range(len(axes)):
        size = prod(first + own + last for first, own, last in zip(before, axes, after, strict=True))
        if size <= LARGEST or not any((*before[axis + 1 :], *after[axis + 1 :])):
            break
        before = (*before[:axis], 0, *before[axis + 1 :])
        after = (*after[:axis], 0, *after[axis + 1 :])
    return before, after


def _same_within(relation: str, trial: Trial, way: Way, computed: Outcome, window: Window) -> Finding | None:
    """Whether the nodes in the window read what they read where nothing enters."""
    expected = subject(trial, way).call(_entered_by_nothing(trial, way).given)
    allowed = rounding("entered by nothing", trial, lambda draw: _entered_by_nothing(draw, way))
    return same(relation, way, Outcome(computed.h[window], ()), Outcome(expected.h, ()), Outcome(allowed.h, ()))


def _entered_by_nothing(trial: Trial, way: Way) -> Instance:
    instance = subject(trial, way).instance
    initial: State = tuple({port: np.zeros_like(array) for port, array in ports.items()} for ports in instance.given.initial)
    return replace(instance, given=replace(instance.given, initial=initial))


def cut_grid(instance: Instance, way: Way, generator: np.random.Generator) -> Outcome:
    """What one direction gives on two parts of a grid, the second resumed from the first."""
    axes, (direction,) = axes_of(instance.dag), instance.scan.directions
    axis = int(generator.integers(len(axes)))
    place = int(generator.integers(0, axes[axis] + 1))
    halves = [slice(0, place), slice(place, axes[axis])]
    forward = direction.senses[axis] > 0
    states, ports = dict(instance.given.initial[0]), instance.dag.ports
    results, leaving = list[np.ndarray](), {port: list[np.ndarray]() for port in ports}
    for half in halves if forward else halves[::-1]:
        window = tuple(half if number == axis else slice(None) for number in range(len(axes)))
        entering = {port: array[others(window, ports.index(port))] for port, array in states.items()}
        computed = evaluate(windowed(instance, window, (entering,)), way)
        results.append(computed.h)
        for number, port in enumerate(ports):
            if number == axis:
                states[port] = computed.state[0][port]
            else:
                leaving[port].append(computed.state[0][port])
    order = slice(None) if forward else slice(None, None, -1)
    final = {ports[axis]: states[ports[axis]]}
    for number, port in enumerate(ports):
        if number != axis:
            final[port] = np.concatenate(leaving[port][order], axis=axis - (axis > number))
    return Outcome(np.concatenate(results[order], axis=axis), (final,))


def prefix(instance: Instance, generator: np.random.Generator) -> tuple[Instance, Window]:
    """A grid cut off behind some place of each axis, in the sense of its one direction; and where it lies."""
    axes, (direction,), ports = axes_of(instance.dag), instance.scan.directions, instance.dag.ports
    lengths = [int(generator.integers(1, size + 1)) for size in axes]
    window = tuple(
        slice(0, length) if sense > 0 else slice(size - length, size)
        for length, size, sense in zip(lengths, axes, direction.senses, strict=True)
    )
    entering = {port: array[others(window, ports.index(port))] for port, array in instance.given.initial[0].items()}
    return windowed(instance, window, (entering,)), window
