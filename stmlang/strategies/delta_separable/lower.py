"""The delta rule on a grid of two axes on which paths turn once: short systems along lines, and attention between them.

Nodes are `(y, x)`, and a path goes along the axis of x first. With c the port along x, r the other one, a the scales, b the
strength, and products of decays strictly between two places `along[y0, x0, x]` of a_cc and `down[x, y0, y]` of a_rr, what is
written on the edges along x solves a system in each line,

    W_c(y, x)  =  S_c v  -  b a_cc sum over x0 < x of along[y, x0, x] (k . k0) W_c(y, x0)

and what is written on the others one in each column, whose right side is attention, since what moves along y never turns back:

    W_r(y, x)  =  S_r v  -  b R(y, x)  -  b a_rr sum over y0 < y of down[x, y0, y] (k . k0) W_r(y0, x)
    R(y, x)    =  sum over y0 <= y, x0 < x of turned[y0, x0, x] below[x, y0, y] (k . k0) W_c(y0, x0)

with `turned = along a_rc(y0, x)` and `below = down a_rr(y, x)`, one where y0 = y. What is read is the same with the marks in
the place of a_rc(y, x), where y0 = y, and of a_rr(y, x). So between lines there are two products of masked scores with W_c,
whose scores all directions share and whose masks are products of two tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.cost.lines import Lines, lines_of
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import matmul, times_transposed, transposed, transposed_times
from stmlang.lower.delta_inputs import delta_inputs
from stmlang.lower.delta_system import run_system, system_tables
from stmlang.lower.inverse import MANY, propagation
from stmlang.lower.no_fusion import apart
from stmlang.lower.operands import Operands, flip
from stmlang.lower.segment_products import paths
from stmlang.lower.strategy import Call, Lowering, LoweringContext, Result
from stmlang.strategies.delta_separable.settings import LineBlocks


class Gates(NamedTuple):
    """Gates by port, in declared coordinates and with x last; along and down, the scales of c and r, come with their products
    over stretches of lines, `[y, target, source]`, and of columns, `[x, target, source]`."""

    source_c: Float[Array, "head direction y x"]
    source_r: Float[Array, "head direction y x"]
    along: Float[Array, "head direction y x"]
    down: Float[Array, "head direction y x"]
    turn: Float[Array, "head direction y x"]
    mark_c: Float[Array, "head direction y x"]
    mark_r: Float[Array, "head direction y x"]
    strength: Float[Array, "head direction y x"]
    in_rows: Float[Array, "head direction y x x0"]
    in_columns: Float[Array, "head direction x y y0"]


class Nodes(NamedTuple):
    """Queries, keys and values, in declared coordinates, which are those of all directions."""

    query: Float[Array, "head y x key"]
    key: Float[Array, "head y x key"]
    value: Float[Array, "head y x value"]

    def columns(self) -> Nodes:
        """The same with y behind x."""
        return Nodes(*(jnp.swapaxes(part, 1, 2) for part in self))


Senses = Sequence[tuple[int, int]]
"""Of y and x, direction by direction."""


def _outputs(context: LoweringContext, operands: Operands) -> Float[Array, "direction head *axes value"]:
    """What nodes read of each other, in declared coordinates; all directions in one where they are summed. Arrays of the size
    of the inputs stay in these coordinates; only tables of lines are turned around."""
    lines, scan = _lines(context), context.problem.scan
    senses = [(direction.senses[1 - lines.first], direction.senses[lines.first]) for direction in scan.directions]
    gates, nodes = _gates(lines, operands, senses), _nodes(lines, operands, senses)
    columns, summed = nodes.columns(), scan.combine == "sum"
    first = _row_system(nodes, gates, senses)
    erased, read = _between(context, nodes, gates, first, senses)
    right = _by_column(gates.source_r)[..., None] * columns.value[:, None] - _by_column(gates.strength)[..., None] * erased
    last = _column_system(columns, gates, right, senses)
    scores = times_transposed(columns.query, columns.key)[:, None]
    own = matmul(scores * gates.in_columns * _by_column(gates.mark_r)[..., :, None], last)
    outputs = read + (own.sum(1, keepdims=True) if summed else own)
    outputs = jnp.swapaxes(outputs, 0, 1)
    return outputs if lines.first == 0 else jnp.swapaxes(outputs, 2, 3)


def _lines(context: LoweringContext) -> Lines:
    facts, axes = context.problem.facts, context.axes
    assert facts is not None
    assert axes is not None
    return lines_of(facts, axes)


def _gates(lines: Lines, operands: Operands, senses: Senses) -> Gates:
    deltas, inputs = operands.deltas, delta_inputs(operands)
    assert deltas is not None
    scale, source, mark = deltas.transition.scale, inputs.source, inputs.mark
    assert scale is not None
    assert source is not None
    assert mark is not None
    c, r = lines.first, 1 - lines.first

    def laid(gate: Array) -> Array:
        return gate if c == 1 else jnp.swapaxes(gate, 2, 3)

    along, down = laid(scale[..., c, c]), laid(scale[..., r, r])
    parts = (source[..., c], source[..., r], scale[..., c, c], scale[..., r, r], scale[..., r, c], mark[..., c], mark[..., r])
    gates = [_declared(laid(part), senses, "yx") for part in (*parts, deltas.transition.strength)]
    tables = (
        _declared(paths(along).inside, senses, "yxx"),
        _declared(paths(jnp.swapaxes(down, 2, 3)).inside, senses, "xyy"),
    )
    return Gates(*(jnp.swapaxes(array, 0, 1) for array in (*gates, *tables)))


def _nodes(lines: Lines, operands: Operands, senses: Senses) -> Nodes:
    """Those of one direction, turned back."""
    laid = (part[:1] if lines.first == 1 else jnp.swapaxes(part[:1], 2, 3) for part in operands.inputs)
    return Nodes(*(_declared(part, senses[:1], "yx")[0] for part in laid))


def _declared(array: Array, senses: Senses, axes: str) -> Array:
    """Arrays `(direction, head, *axes, ...)`, each turned around as its direction is: from own coordinates to declared ones,
    and back. `axes` says of each whether it is one of y or one of x."""
    return jnp.stack([flip(part, [sense[axis == "x"] for axis in axes], 1) for part, sense in zip(array, senses, strict=True)])


def _by_column(gate: Array) -> Array:
    return jnp.swapaxes(gate, 2, 3)


# --- along lines -----------------------------------------------------------------------------------------------------


def _row_system(nodes: Nodes, gates: Gates, senses: Senses) -> Array:
    """What is written on the edges along x, `(head, direction, y, x, value)`."""
    likeness = times_transposed(nodes.key, nodes.key)[:, None]
    passed = -transposed(gates.in_rows) * likeness * (gates.strength * gates.along)[..., None, :]
    return transposed_times(_inverse(passed, senses, "yxx"), gates.source_c[..., None] * nodes.value[:, None])


def _column_system(columns: Nodes, gates: Gates, right: Array, senses: Senses) -> Array:
    """What is written on the edges along y, `(head, direction, x, y, value)`."""
    likeness = times_transposed(columns.key, columns.key)[:, None]
    taken = _by_column(gates.strength * gates.down)
    passed = -transposed(gates.in_columns) * likeness * taken[..., None, :]
    return transposed_times(_inverse(passed, senses, "xyy"), right)


def _inverse(passed: Array, senses: Senses, axes: str) -> Array:
    """`(I - P)^-1` of lines `(head, direction, line, source, target)`, each triangular in its direction's own coordinates."""
    own = propagation(_declared(jnp.swapaxes(passed, 0, 1), senses, axes), None, MANY)
    return jnp.swapaxes(_declared(own, senses, axes), 0, 1)


# --- between lines ---------------------------------------------------------------------------------------------------


class Tables(NamedTuple):
    """Walks along a source's line, and those along a target's column: `turned` ends with the turn and `level` with the mark;
    `erased` ends with what is erased (and, of the source's own line, is one), `read` with what is read. `first` is what is
    written along x."""

    turned: Float[Array, "head direction y0 x0 x"]
    level: Float[Array, "head direction y0 x0 x"]
    erased: Float[Array, "head direction y0 x y"]
    read: Float[Array, "head direction y0 x y"]
    first: Float[Array, "head direction y0 x0 value"]


def _between(context: LoweringContext, nodes: Nodes, gates: Gates, first: Array, senses: Senses) -> tuple[Array, Array]:
    """What W_c holds under the keys of nodes that erase, `(head, direction, x, y, value)`, and what nodes read of it, all
    directions in one where they are summed."""
    whole = _between_tables(gates, first)
    lines, summed = _lines(context), context.problem.scan.combine == "sum"
    blocks = cast(LineBlocks, context.settings).blocks(lines)
    groups = [group for sign in (1, -1) if (group := [k for k, (y, _) in enumerate(senses) if y == sign])]
    if len(blocks) == 1:
        groups = [list(range(len(senses)))]  # which all meet all lines
    erased, read = list[Array](), list[Array]()
    for block in blocks:
        scores = [_scores(nodes.key, part[:, block]) for part in (nodes.key, nodes.query)]
        met = [_met(whole, scores, group, _before(block, lines, senses[group[0]][0]), block, summed) for group in groups]
        erased.append(jnp.concatenate([part for part, _ in met], axis=1))
        parts = [part for _, part in met]
        read.append(sum(parts[1:], start=parts[0]) if summed else jnp.concatenate(parts, axis=1))
    order = [k for group in groups for k in group]
    taken, seen = jnp.concatenate(erased, axis=3), jnp.concatenate(read, axis=3)
    return _in_order(taken, order), seen if summed else _in_order(seen, order)


def _in_order(array: Array, order: Sequence[int]) -> Array:
    """Directions that stand in an order, as they are numbered."""
    if list(order) == sorted(order):
        return array
    return jnp.stack([array[:, order.index(k)] for k in range(len(order))], axis=1)


def _between_tables(gates: Gates, first: Array) -> Tables:
    walks = transposed(gates.in_rows)
    below = jnp.moveaxis(gates.in_columns, 4, 2)
    own = jnp.eye(below.shape[2], dtype=below.dtype)[None, None, :, None, :]
    return Tables(
        walks * gates.turn[..., None, :],
        walks * gates.mark_c[..., None, :],
        below * _by_column(gates.down)[:, :, None] + own,
        below * _by_column(gates.mark_r)[:, :, None],
        first,
    )


def _before(block: slice, lines: Lines, sense: int) -> slice:
    """The lines of sources that a block of targets reads in a sense."""
    return slice(0, block.stop) if sense > 0 else slice(block.start, lines.count)


def _scores(key: Array, targets: Array) -> Array:
    """`(head, y0, x0, x, y)`."""
    heads, lines, size, width = key.shape
    behind = jnp.swapaxes(targets, 1, 2).reshape(heads, -1, width)
    return times_transposed(key.reshape(heads, -1, width), behind).reshape(heads, lines, size, size, -1)


def _met(
    whole: Tables, scores: Sequence[Array], group: Sequence[int], before: slice, block: slice, summed: bool
) -> tuple[Array, Array]:
    """What a block of targets erases and reads in the directions of a group, `(head, direction, x, y, value)`."""
    turned, level, erased, read, first = (jnp.stack([table[:, k, before] for k in group], axis=1) for table in whole)
    likeness, likeness_of_queries = (part[:, before] for part in scores)
    value = first.reshape(*first.shape[:2], -1, first.shape[-1])
    place = jnp.arange(whole.read.shape[2], dtype=jnp.int32)
    own = place[before, None] == place[None, block]
    shape = (likeness.shape[3], likeness.shape[4], value.shape[-1])

    taken = _weighed(likeness, turned, erased[..., block]).reshape(*value.shape[:3], -1)
    seen = _weighed_and_level(likeness_of_queries, turned, read[..., block], level, own).reshape(*value.shape[:3], -1)
    if summed:
        # Sources of all directions are one axis: a contraction over two would be carried out on a transposed copy.
        sums = transposed_times(*(array.reshape(array.shape[0], 1, -1, array.shape[-1]) for array in (seen, value)))
    else:
        sums = transposed_times(seen, value)
    taken = transposed_times(taken, value)
    return taken.reshape(*taken.shape[:2], *shape), sums.reshape(*sums.shape[:2], *shape)


@apart
def _weigh(scores: Array, turned: Array, across: Array) -> Array:
    return scores[:, None] * (turned[..., None] * across[:, :, :, None])


@apart
def _weigh_back(scores: Array, turned: Array, across: Array, cotangent: Array) -> tuple[Array, Array, Array]:
    met = cotangent * scores[:, None]
    mask = turned[..., None] * across[:, :, :, None]
    return (cotangent * mask).sum(1), (met * across[:, :, :, None]).sum(-1), (met * turned[..., None]).sum(3)


def _weigh_forward(*arguments: Array) -> tuple[Array, tuple[()]]:
    return _weigh(*arguments), ()


def _weigh_backward(arguments: tuple[Any, ...], saved: tuple[()], cotangent: Array) -> tuple[Array, ...]:
    del saved
    return _weigh_back(*arguments, cotangent)


_weighed = with_adjoint(_weigh, _weigh_forward, _weigh_backward)
"""Scores of pairs `(head, y0, x0, x, y)` times the masks of directions, `(head, direction, y0, x0, x, y)`. No mask is kept for
the adjoint: it is made again where it is met."""


@apart
def _weigh_level(scores: Array, turned: Array, across: Array, level: Array, own: Array) -> Array:
    masks = jnp.where(own[None, None, :, None, None], level[..., None], turned[..., None] * across[:, :, :, None])
    return scores[:, None] * masks


@apart
def _weigh_level_back(
    scores: Array, turned: Array, across: Array, level: Array, own: Array, cotangent: Array
) -> tuple[Array, Array, Array, Array]:
    same = own[None, None, :, None, None]
    met = cotangent * scores[:, None]
    beyond = jnp.where(same, 0, met)
    masks = jnp.where(same, level[..., None], turned[..., None] * across[:, :, :, None])
    return (
        (cotangent * masks).sum(1),
        (beyond * across[:, :, :, None]).sum(-1),
        (beyond * turned[..., None]).sum(3),
        jnp.where(same, met, 0).sum(-1),
    )


def _weigh_level_forward(*arguments: Array) -> tuple[Array, tuple[()]]:
    return _weigh_level(*arguments), ()


def _weigh_level_backward(arguments: tuple[Any, ...], saved: tuple[()], cotangent: Array) -> tuple[Array | None, ...]:
    del saved
    return *_weigh_level_back(*arguments, cotangent), None


_weighed_and_level = with_adjoint(_weigh_level, _weigh_level_forward, _weigh_level_backward)
"""The same with another mask for targets in the source's own line."""


def _run(call: Call) -> Result:
    """States that enter or leave are met by the one system of all edges."""
    if call.entering is not None or call.leaving:
        return run_system(call)
    (context,), (operands,) = call.contexts, call.operands
    return Result(_outputs(context, operands), ())


LOWERING = Lowering(system_tables, _run)
