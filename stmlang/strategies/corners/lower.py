"""Corners: attention on grids of two axes on which paths turn once, whose decays are one for each entry of the key (or value).

In a direction's own coordinates `(y, x)` a path from `(y0, x0)` goes along its line to the corner `(y0, x)`, turns, and goes on
to `(y, x)`. With c the port along x and r the other one, per entry i of the key

    E[y0, x, x0]  =  S_c(y0, x0) k(y0, x0) (prod of T_cc(y0, u) over x0 < u < x)            x0 < x, else 0
    A[y0, x, x0]  =  T_rc(y0, x) E[y0, x, x0]                                               keys at the corner
    B[y0, x, y]   =  (prod of T_rr(w, x) over y0 < w < y) q(y, x) M_r(y, x)                 y > y0, else 0

    h[y, x]  =  sum over y0, x0 of (A[y0, x, x0] . B[y0, x, y]) v[y0, x0]
              + sum over x0 of (q M_c . E[y, x, x0]) v[y, x0]  +  sum over y0 of (S_r k . B[y0, x, y]) v[y0, x]

so that the scores of a corner are a product of matrices over the key, and no larger than those of attention. Decays of the
value weigh values at the corner and results behind it instead.

All this is done in declared coordinates. Directions that differ in the sense along x alone share `A`, those that differ in the
sense along y alone `B` (see `stretches`), and the values are weighed once for all that are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from stmlang.cost.lines import Lines, lines_of
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.contractions import contract, times_transposed, transposed_times
from stmlang.lower.mesh_axes import alike
from stmlang.lower.node_gates import AtPort, Erasure, LocalGates, NodeGates, Values
from stmlang.lower.node_walk import walked
from stmlang.lower.one_turn import partings
from stmlang.lower.operands import STATE_AXES, Operands, flip
from stmlang.lower.remade import remade
from stmlang.lower.strategy import Call, Lowering, LoweringContext, Result, Tables, no_tables
from stmlang.strategies.corners.senses import scores_of_senses
from stmlang.strategies.corners.settings import Columns
from stmlang.strategies.corners.stretches import Merged, Numbers, pairs_in_columns, pairs_in_lines, stretches

KEPT = 1
"""Where states are asked for, the grid is walked; then they are kept at every line."""


class PortGates(NamedTuple):
    """Gates by port in declared coordinates, one number for each entry of the key or of the value, or one for all."""

    source_first: Numbers
    source_last: Numbers
    first: Numbers
    last: Numbers
    turn: Numbers
    mark_first: Numbers
    mark_last: Numbers
    direct: Numbers


class Inputs(NamedTuple):
    """Query, key and value in declared coordinates."""

    query: Float[Array, "head y x key"]
    key: Float[Array, "head y x key"]
    value: Float[Array, "head y x value"]


class Senses(NamedTuple):
    """The senses of y and of x in which directions run that are summed: forward first, where there are both."""

    down: Sequence[int]
    along: Sequence[int]


class Partings(NamedTuple):
    """At which levels places in a column, and in a line, part: positive where the target lies behind the source."""

    down: Array
    along: Array


def _run(call: Call) -> Result:
    if call.entering is not None or call.leaving:
        return _WALK.run(call)
    outputs = [_outputs(*bundle) for bundle in zip(call.contexts, call.tables, call.operands, strict=True)]
    return Result(jnp.concatenate(outputs), ())


def _walk(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    assert context.axes is not None
    return walked(operands, initial, context.axes, KEPT)


def _grid_lines(context: LoweringContext) -> Lines:
    facts, axes = context.problem.facts, context.axes
    assert facts is not None
    assert axes is not None
    return lines_of(facts, axes)


def _tables(context: LoweringContext) -> Tables:
    lines = _grid_lines(context)
    return tuple(-partings(places) for places in (lines.count, lines.size))


def _outputs(context: LoweringContext, tables: Tables, operands: Operands) -> Float[Array, "direction head *axes value"]:
    """What nodes read, all directions in one where they are summed."""
    scan, first = context.problem.scan, _grid_lines(context).first
    senses = [(direction.senses[1 - first], direction.senses[first]) for direction in scan.directions]
    own = scan.directions[0].senses

    def laid(array: Array) -> Array:
        """`(direction, head, *axes, index)` of the first direction as `(head, y, x, index)`."""
        array = flip(array[0], own, 1)
        return array if first == 1 else jnp.swapaxes(array, 1, 2)

    inputs = Inputs(*(laid(array) for array in operands.inputs))
    gates = _everywhere(operands, [direction.senses for direction in scan.directions], first)
    by_value = any("value" in scan.gate(name).indices for name in ("source", "transition", "mark", "direct"))
    columns = cast(Columns, context.settings).columns

    def of_directions(numbers: range) -> Array:
        ours = [lax.slice_in_dim(gate, numbers[0], numbers[-1] + 1, axis=3) for gate in gates]
        group, spread = _spread([senses[number] for number in numbers], ours)
        return _attended(columns, by_value, group, Partings(*tables), spread, inputs)

    every = range(len(senses))
    together = [every] if scan.combine == "sum" else [every[number : number + 1] for number in every]
    outputs = jnp.stack([of_directions(numbers) for numbers in together])
    return outputs if first == 1 else jnp.swapaxes(outputs, 2, 3)


# --- gates -----------------------------------------------------------------------------------------------------------


def _everywhere(
    operands: Operands, senses: Sequence[Sequence[int]], first: int
) -> list[Float[Array, "head y x direction index"]]:
    """The gates of all nodes, in the order of `PortGates`."""
    local = operands.local
    assert local is not None
    directions, heads = operands.value.shape[:2]
    sizes = operands.value.shape[2:4]
    nodes = {name: _declared(array, senses) for name, array in local.nodes.items()}
    gates = _at_all(local, nodes, jnp.moveaxis(operands.key, (0, 1), (-2, -3)))

    def laid(gate: AtPort) -> Array:
        assert not isinstance(gate, Erasure)  # no gate is a matrix here
        if gate is None:
            gate = alike(jnp.zeros((*sizes, 1, 1, *(1,) * STATE_AXES), operands.value.dtype), operands)
        numbers = gate.reshape(*gate.shape[: gate.ndim - STATE_AXES], -1)
        numbers = jnp.broadcast_to(numbers, (*sizes, heads, directions, numbers.shape[-1]))
        numbers = jnp.moveaxis(numbers, 2, 0)
        return numbers if first == 1 else jnp.swapaxes(numbers, 1, 2)

    last = 1 - first
    ports = (gates.source[first], gates.source[last], gates.transition[first][first], gates.transition[last][last])
    others = (gates.transition[last][first], gates.mark[first], gates.mark[last], gates.direct)
    return [laid(gate) for gate in (*ports, *others)]


def _at_all(local: LocalGates, nodes: Values, places: Array) -> NodeGates:
    """The gates of all nodes, of values that may have no node axes: `places` is there for its own."""

    def at(values: tuple[Values, Array]) -> NodeGates:
        return local.at(values[0], local.shared)

    return jax.vmap(jax.vmap(at))((nodes, places))


def _declared(array: Array, senses: Sequence[Sequence[int]]) -> Array:
    """A value of nodes `(*axes, head, direction, ...)`, each direction turned from its own coordinates to declared ones."""
    if all(sense > 0 for direction in senses for sense in direction):
        return array
    turned = [
        flip(lax.slice_in_dim(array, number, number + 1, axis=3), direction, 0) for number, direction in enumerate(senses)
    ]
    return jnp.concatenate(turned, 3)


def _spread(senses: Sequence[tuple[int, int]], gates: Sequence[Array]) -> tuple[Senses, PortGates]:
    """The axis of directions as one for each sense of y and one for each of x. Nothing is written in a direction that there
    is not."""
    down, along = (sorted({sense[axis] for sense in senses}, reverse=True) for axis in (0, 1))
    order = list(product(down, along))
    present = jnp.asarray([pair in senses for pair in order]).reshape(len(down), len(along), 1)
    numbers = jnp.asarray([senses.index(pair) if pair in senses else 0 for pair in order])

    def spread(gate: Array) -> Array:
        gate = gate if order == list(senses) else jnp.take(gate, numbers, 3)
        return gate.reshape(*gate.shape[:3], len(down), len(along), gate.shape[-1])

    whole = PortGates(*(spread(gate) for gate in gates))
    if len(order) == len(senses):
        return Senses(down, along), whole
    written = {name: jnp.where(present, getattr(whole, name), 0) for name in ("source_first", "source_last", "direct")}
    return Senses(down, along), whole._replace(**written)


# --- attention -------------------------------------------------------------------------------------------------------


class Corners(NamedTuple):
    """Of the corners of some columns: A for each sense of y, B for each sense of x, the queries behind them, and which targets
    lie further down than a corner, and which corners further along than a source."""

    turned: Float[Array, "head y0 x down x0 index"]
    behind: Float[Array, "head y0 x along y index"]
    query: Float[Array, "head y x key"]
    below: Bool[Array, "y0 y"]
    ahead: Bool[Array, "x x0"]


def _attended(
    columns: int, by_value: bool, senses: Senses, partings: Partings, gates: PortGates, inputs: Inputs
) -> Float[Array, "head y x value"]:
    """What nodes read of each other, and of themselves, in all directions together."""
    query, key, value = (array[..., None, None, :] for array in inputs)
    weighed, asking = (value, jnp.ones((), value.dtype)) if by_value else (key, query)
    walks = remade(partial(_walks, senses))(gates, weighed, asking)
    own = jnp.sum(query * gates.direct * key, (-3, -2, -1), keepdims=True) * value
    if by_value:
        own = jnp.sum(query * key, -1, keepdims=True) * jnp.sum(gates.direct, (-3, -2), keepdims=True) * value
    outputs = own[..., 0, 0, :]
    in_lines = _in_lines_by_value if by_value else _in_lines_by_key
    if walks.leaving:
        outputs += in_lines(partings.along, walks.met, walks.leaving, inputs)
    if walks.read:
        turned = Inputs(*_transposed(inputs))
        outputs += jnp.swapaxes(in_lines(partings.down, _transposed(walks.read), _transposed(walks.staying), turned), 1, 2)
    if walks.leaving and walks.read:
        outputs += _behind_corners(columns, by_value, senses, partings, walks, inputs)
    return outputs


class Walks(NamedTuple):
    """What sources and targets in lines and in columns, and the entries of A and of B, are made of, level by level: sources and
    targets of a line, sources and targets at corners, sources and targets of a column. A is made of those that leave and that
    turn, B of those that go on and that are read."""

    leaving: Sequence[Float[Array, "head y0 x0 down index"]]
    met: Sequence[Float[Array, "head y x down index"]]
    turning: Sequence[Float[Array, "head y0 x down #index"]]
    going: Sequence[Float[Array, "head y0 x along #index"]]
    staying: Sequence[Float[Array, "head y0 x along index"]]
    read: Sequence[Float[Array, "head y x along index"]]


def _walks(senses: Senses, gates: PortGates, weighed: Array, asking: Array) -> Walks:
    along, down = stretches(gates.first, 2, senses.along), stretches(gates.last, 1, senses.down)
    return Walks(
        along.sources(gates.source_first * weighed),
        along.targets(gates.mark_first * asking),
        along.targets(gates.turn),
        down.sources(jnp.ones_like(gates.last)),
        down.sources(gates.source_last * weighed),
        down.targets(gates.mark_last * asking),
    )


def _transposed(arrays: Sequence[Array]) -> list[Array]:
    """Arrays `(head, y, x, ...)` with y behind x."""
    return [jnp.swapaxes(array, 1, 2) for array in arrays]


def _in_lines_by_key(parting: Array, targets: Sequence[Merged], sources: Sequence[Merged], inputs: Inputs) -> Array:
    """What nodes read of their own lines, whose places lie on the third axis."""
    levels = enumerate(zip(targets, sources, strict=True))
    scores = [
        _parted(times_transposed(_one_index(target), _one_index(source)), parting, level) for level, (target, source) in levels
    ]
    return contract("hlts,hlsv->hltv", sum(scores[1:], start=scores[0]), inputs.value)


def _in_lines_by_value(parting: Array, targets: Sequence[Merged], sources: Sequence[Merged], inputs: Inputs) -> Array:
    scores = contract("hltk,hlsk->hlts", inputs.query, inputs.key)
    levels = enumerate(zip(targets, sources, strict=True))
    read = [
        target * contract("hlts,hlsdi->hltdi", _parted(scores, parting, level), source) for level, (target, source) in levels
    ]
    return jnp.sum(sum(read[1:], start=read[0]), -2)


def _one_index(array: Array) -> Array:
    """`(..., sense, index)` with both as one, over which products sum."""
    return array.reshape(*array.shape[:-2], -1)


def _parted(scores: Array, parting: Array, level: int) -> Array:
    """The scores of pairs that part at a level."""
    return jnp.where(jnp.abs(parting) == level + 1, scores, 0)


def _behind_corners(
    columns: int, by_value: bool, senses: Senses, partings: Partings, walks: Walks, inputs: Inputs
) -> Float[Array, "head y x value"]:
    """What nodes read of others that are neither in their line nor in their column, so many columns at a time. Where that is
    not all of them, training makes again what it had of each."""
    size, read = inputs.query.shape[2], partial(_behind_by_value, senses) if by_value else _behind_by_key

    def behind(block: tuple[Sequence[Array], Sequence[Array], Sequence[Array], Array, Array]) -> Array:
        turning, going, targets, query, along = block
        turned = pairs_in_lines(walks.leaving, turning, jnp.abs(along)[:, None, :, None])
        passed = pairs_in_columns(targets, going, jnp.abs(partings.down).T[:, None, None, :, None])
        return read(Corners(turned, passed, query, partings.down.T > 0, along > 0), inputs)

    whole = (walks.turning, walks.going, walks.read, inputs.query)
    if columns >= size:
        return behind((*whole, partings.along))
    blocks = -(-size // columns)

    def split(array: Array) -> Array:
        """`(head, y, x, ...)` as `(block, head, y, x, ...)`, the last block filled up: a place that parts nowhere is in no
        pair."""
        filled = jnp.pad(array, [(0, blocks * columns - size if axis == 2 else 0) for axis in range(array.ndim)])
        return jnp.moveaxis(filled.reshape(*array.shape[:2], blocks, columns, *array.shape[3:]), 2, 0)

    again = cast("Callable[[Any], Array]", jax.checkpoint(behind, prevent_cse=False))
    along = split(partings.along[None, None])[:, 0, 0]
    outputs = cast(Array, lax.map(again, (*jax.tree.map(split, whole), along)))
    outputs = jnp.moveaxis(outputs, 0, 2)
    return lax.slice_in_dim(outputs.reshape(*outputs.shape[:2], -1, outputs.shape[-1]), 0, size, axis=2)


def _behind_by_key(corners: Corners, inputs: Inputs) -> Float[Array, "head y x value"]:
    sources, targets = (array.reshape(*array.shape[:3], -1, array.shape[-1]) for array in (corners.turned, corners.behind))
    met = times_transposed(sources, targets).reshape(*corners.turned.shape[:-1], *corners.behind.shape[3:-1])
    scores = scores_of_senses(met, corners.below, corners.ahead)
    heads, lines, places, columns, targets_of_column = scores.shape
    scores = scores.reshape(heads, lines * places, columns * targets_of_column)
    read = transposed_times(scores, inputs.value.reshape(heads, lines * places, -1))
    return jnp.swapaxes(read.reshape(heads, columns, targets_of_column, -1), 1, 2)


def _behind_by_value(senses: Senses, corners: Corners, inputs: Inputs) -> Float[Array, "head y x value"]:
    scores = contract("htxk,hysk->hyxts", corners.query, inputs.key)
    ahead = corners.ahead[:, None]
    split = [jnp.where(ahead if sense > 0 else ~ahead, scores, 0) for sense in senses.along]
    met = contract("hyxats,hyxdsi->hyxatdi", jnp.stack(split, 3), corners.turned)
    met = _of_sense(senses.down, corners.below[:, None, None, :, None], met, 5)
    return jnp.moveaxis(jnp.sum(met * corners.behind, (1, 3)), 1, 2)


def _of_sense(senses: Sequence[int], forward: Bool[Array, "..."], array: Array, axis: int) -> Array:
    """The entries of the forward sense where a pair is one of its, else those of the backward one; where there is but one, it
    has zeros elsewhere."""
    first, last = (lax.index_in_dim(array, number, axis, keepdims=False) for number in (0, len(senses) - 1))
    return first if len(senses) == 1 else jnp.where(forward, first, last)


_WALK = direction_by_direction(no_tables, _walk)
LOWERING = Lowering(_tables, _run)
