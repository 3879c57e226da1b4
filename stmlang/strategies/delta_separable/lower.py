"""The delta rule on a grid of two axes on which paths turn once: short systems along lines, and attention between them.

Nodes are `(y, x)`, and a path goes along the axis of x first. With c the port along x, r the other one, a the scales, b the
strength, and products of decays strictly between two places `along[y0, x0, x]` of a_cc and `down[x, y0, y]` of a_rr, what is
written on the edges along x solves a system in each line,

    W_c(y, x)  =  S_c v  -  b a_cc sum over x0 < x of along[y, x0, x] (k . k0) W_c(y, x0)

and what is written on the others one in each column, whose right side is attention, since what moves along y never turns back:

    W_r(y, x)  =  S_r v  -  b R(y, x)  -  b a_rr sum over y0 < y of down[x, y0, y] (k . k0) W_r(y0, x)
    R(y, x)    =  sum over y0 <= y, x0 < x of turned[y0, x0, x] below[x, y0, y] (k . k0) W_c(y0, x0)

with `turned = along a_rc(y0, x)` and `below = down a_rr(y, x)`, one where y0 = y. What is read is the same with the marks in the
place of a_rc(y, x) and a_rr(y, x). So between lines there are two products of masked scores with W_c, whose scores all
directions share and whose masks are products of two tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.cost.lines import Lines, lines_of
from stmlang.lower.contractions import contract, matmul, times_transposed, transposed, transposed_times
from stmlang.lower.delta_inputs import DeltaInputs, delta_inputs
from stmlang.lower.delta_system import run_system, system_tables
from stmlang.lower.no_fusion import apart
from stmlang.lower.operands import Operands, flip
from stmlang.lower.segment_products import paths
from stmlang.lower.strategy import Call, Lowering, LoweringContext, Needs, Result
from stmlang.lower.triangular import propagated
from stmlang.strategies.delta_separable.settings import LineBlocks


class Gates(NamedTuple):
    """Gates by port in the own coordinates of directions, with x last."""

    source_c: Float[Array, "direction head y x"]
    source_r: Float[Array, "direction head y x"]
    along: Float[Array, "direction head y x"]
    down: Float[Array, "direction head y x"]
    turn: Float[Array, "direction head y x"]
    mark_c: Float[Array, "direction head y x"]
    mark_r: Float[Array, "direction head y x"]
    strength: Float[Array, "direction head y x"]


class Nodes(NamedTuple):
    """Queries, keys and values of nodes, with x behind y: the same for all directions, in declared coordinates."""

    query: Float[Array, "head y x key"]
    key: Float[Array, "head y x key"]
    value: Float[Array, "head y x value"]


def _outputs(context: LoweringContext, operands: Operands) -> Float[Array, "direction head *axes value"]:
    """What nodes read of each other, in declared coordinates; all directions in one where they are summed."""
    lines, scan = _lines(context), context.problem.scan
    senses = [(direction.senses[1 - lines.first], direction.senses[lines.first]) for direction in scan.directions]
    gates, nodes = _gates(lines, operands), _nodes(lines, operands, senses)
    along, down = paths(gates.along).inside, paths(jnp.swapaxes(gates.down, 2, 3)).inside
    value, strength = _own(nodes.value, senses, "yx"), gates.strength[..., None]

    first = _row_system(nodes, gates, along, value, senses)
    erased, read = _between(context, nodes, gates, along, down, first, senses)
    right = gates.source_r[..., None] * value - strength * erased
    last = _column_system(nodes, gates, down, right, senses)
    local = _read_in_rows(nodes, gates, along, first, senses) + _read_in_columns(nodes, gates, down, last, senses)
    local = _declared(local, senses, "yx")
    outputs = local.sum(0, keepdims=True) + read if scan.combine == "sum" else local + read
    return outputs if lines.first == 1 else jnp.swapaxes(outputs, 2, 3)


def _lines(context: LoweringContext) -> Lines:
    facts, axes = context.problem.facts, context.axes
    assert facts is not None
    assert axes is not None
    return lines_of(facts, axes)


def _gates(lines: Lines, operands: Operands) -> Gates:
    deltas, inputs = operands.deltas, delta_inputs(operands)
    assert deltas is not None
    scale, source, mark = deltas.transition.scale, inputs.source, inputs.mark
    assert scale is not None
    assert source is not None
    assert mark is not None
    c, r = lines.first, 1 - lines.first

    def laid(gate: Array) -> Array:
        return gate if c == 1 else jnp.swapaxes(gate, 2, 3)

    return Gates(
        source_c=laid(source[..., c]),
        source_r=laid(source[..., r]),
        along=laid(scale[..., c, c]),
        down=laid(scale[..., r, r]),
        turn=laid(scale[..., r, c]),
        mark_c=laid(mark[..., c]),
        mark_r=laid(mark[..., r]),
        strength=laid(deltas.transition.strength),
    )


Senses = Sequence[tuple[int, int]]
"""Of y and x, direction by direction."""


def _nodes(lines: Lines, operands: Operands, senses: Senses) -> Nodes:
    """Those of one direction, turned back."""
    laid = (part[:1] if lines.first == 1 else jnp.swapaxes(part[:1], 2, 3) for part in operands.inputs)
    return Nodes(*(_declared(part, senses[:1], "yx")[0] for part in laid))


def _own(array: Array, senses: Senses, axes: str) -> Array:
    """`(head, *axes, ...)` in declared coordinates in the own ones of every direction, `(direction, head, ...)`; `axes` says of
    each whether it is one of y or one of x."""
    return jnp.stack([flip(array, _turns(sense, axes), 1) for sense in senses])


def _declared(array: Array, senses: Senses, axes: str) -> Array:
    """The converse, of arrays that differ between directions."""
    return jnp.stack([flip(part, _turns(sense, axes), 1) for part, sense in zip(array, senses, strict=True)])


def _turns(sense: tuple[int, int], axes: str) -> list[int]:
    return [sense[axis == "x"] for axis in axes]


# --- along lines -----------------------------------------------------------------------------------------------------


def _row_system(nodes: Nodes, gates: Gates, along: Array, value: Array, senses: Senses) -> Array:
    """What is written on the edges along x, `(direction, head, y, x, value)`."""
    likeness = _own(times_transposed(nodes.key, nodes.key), senses, "yxx")
    taken = gates.strength * gates.along
    return propagated(-transposed(along) * likeness * taken[..., None, :], gates.source_c[..., None] * value)


def _column_system(nodes: Nodes, gates: Gates, down: Array, right: Array, senses: Senses) -> Array:
    """What is written on the edges along y, `(direction, head, x, y, value)`."""
    key = jnp.swapaxes(nodes.key, 1, 2)
    likeness = _own(times_transposed(key, key), senses, "xyy")
    taken = jnp.swapaxes(gates.strength * gates.down, 2, 3)
    return propagated(-transposed(down) * likeness * taken[..., None, :], jnp.swapaxes(right, 2, 3))


def _read_in_rows(nodes: Nodes, gates: Gates, along: Array, first: Array, senses: Senses) -> Array:
    """What nodes read of the edges along x that enter them, `(direction, head, y, x, value)`."""
    scores = _own(times_transposed(nodes.query, nodes.key), senses, "yxx")
    return matmul(scores * along * gates.mark_c[..., :, None], first)


def _read_in_columns(nodes: Nodes, gates: Gates, down: Array, last: Array, senses: Senses) -> Array:
    """What they read of what was written on the edges along y."""
    query, key = (jnp.swapaxes(part, 1, 2) for part in (nodes.query, nodes.key))
    scores = _own(times_transposed(query, key), senses, "xyy")
    mark = jnp.swapaxes(gates.mark_r, 2, 3)
    return jnp.swapaxes(matmul(scores * down * mark[..., :, None], last), 2, 3)


# --- between lines ---------------------------------------------------------------------------------------------------


class Tables(NamedTuple):
    """Of directions of one sense along y, in declared coordinates: walks along the source's line and the turn, walks along the
    target's column to what is erased (and, of the source's own line, one) and to what is read, and what is written first."""

    turned: Float[Array, "head direction y0 x0 x"]
    erased: Float[Array, "head direction y0 y x"]
    read: Float[Array, "head direction y0 y x"]
    first: Float[Array, "head direction y0 x0 value"]


def _between(
    context: LoweringContext, nodes: Nodes, gates: Gates, along: Array, down: Array, first: Array, senses: Senses
) -> tuple[Array, Array]:
    """What W_c holds under the keys of nodes that erase, `(direction, head, y, x, value)` in own coordinates, and what nodes in
    other lines read of it, in declared ones, all directions in one where they are summed."""
    whole = _between_tables(gates, along, down, first, senses)
    lines, summed = _lines(context), context.problem.scan.combine == "sum"
    groups = [group for sign in (1, -1) if (group := [k for k, (y, _) in enumerate(senses) if y == sign])]
    erased, read = list[Array](), list[Array]()
    for block in cast(LineBlocks, context.settings).blocks(lines):
        scores = [_scores(nodes.key, part[:, block]) for part in (nodes.key, nodes.query)]
        found = [_met(whole, scores, group, _before(block, lines, senses[group[0]][0]), block, summed) for group in groups]
        erased.append(jnp.concatenate([part for part, _ in found], axis=1))
        parts = [part for _, part in found]
        read.append(sum(parts[1:], start=parts[0]) if summed else jnp.concatenate(parts, axis=1))
    order = [k for group in groups for k in group]
    back = [order.index(k) for k in range(len(order))]
    by_direction = jnp.swapaxes(jnp.concatenate(erased, axis=2), 0, 1)[jnp.asarray(back)]
    together = jnp.swapaxes(jnp.concatenate(read, axis=2), 0, 1)
    return _declared(by_direction, senses, "yx"), together if summed else together[jnp.asarray(back)]


def _between_tables(gates: Gates, along: Array, down: Array, first: Array, senses: Senses) -> Tables:
    below = jnp.moveaxis(down, 2, 4)  # y, y0, x
    below = jnp.swapaxes(below, 2, 3)
    own = jnp.eye(below.shape[2], dtype=below.dtype)[..., None]
    tables = (
        _declared(transposed(along) * gates.turn[..., None, :], senses, "yxx"),
        _declared(below * gates.down[:, :, None] + own, senses, "yyx"),
        _declared(below * gates.mark_r[:, :, None], senses, "yyx"),
        _declared(first, senses, "yx"),
    )
    return Tables(*(jnp.swapaxes(table, 0, 1) for table in tables))


def _before(block: slice, lines: Lines, sense: int) -> slice:
    """The lines of sources that a block of targets reads in a sense."""
    return slice(0, block.stop) if sense > 0 else slice(block.start, lines.count)


def _scores(key: Array, targets: Array) -> Array:
    """`(head, y0, x0, y, x)`."""
    heads, lines, size, width = key.shape
    scores = times_transposed(key.reshape(heads, -1, width), targets.reshape(heads, -1, width))
    return scores.reshape(heads, lines, size, -1, size)


def _met(
    whole: Tables, scores: Sequence[Array], group: Sequence[int], before: slice, block: slice, summed: bool
) -> tuple[Array, Array]:
    """What a block of targets erases and reads in the directions of a group, `(head, direction, y, x, value)`."""
    chosen = Tables(*(jnp.stack([table[:, k] for k in group], axis=1)[:, :, before] for table in whole))
    value = chosen.first.reshape(*chosen.first.shape[:2], -1, chosen.first.shape[-1])
    found = list[Array]()
    for part, across, added in zip(scores, (chosen.erased, chosen.read), (False, summed), strict=True):
        weights = _weighed(part[:, before], chosen.turned, across[:, :, :, block])
        weights = weights.reshape(*value.shape[:3], -1)
        sums = contract("hdst,hdsv->htv", weights, value)[:, None] if added else transposed_times(weights, value)
        found.append(sums.reshape(*sums.shape[:2], *part.shape[3:], -1))
    return found[0], found[1]


@apart
def _weighed(scores: Array, turned: Array, across: Array) -> Array:
    """Scores of pairs `(head, y0, x0, y, x)` times the masks of directions, `(head, direction, y0, x0, y, x)`."""
    return scores[:, None] * (turned[..., None, :] * across[..., None, :, :])


def _run(call: Call) -> Result:
    """States that enter or leave are met by the one system of all edges."""
    if call.entering is not None or call.leaving:
        return run_system(call)
    (context,), (operands,) = call.contexts, call.operands
    return Result(_outputs(context, operands), ())


LOWERING = Lowering(system_tables, _run, needs=Needs(deltas=True))
