"""A grid as a chain of rows, and of runs of rows that are doubled: what strategies share that go by these.

A row (all nodes at one place along the axis that is cut; of a volume a slab) is a block whose entering and leaving edges are
those along that axis, `width` of each. So a run of rows has matrices `T (width, width)`, `S (node, width)`, `M (width, node)`,
and what the nodes of a later run b read of those of an earlier run a is `S_a M_b`, a product over `width` numbers, of states
with tracks over so many for each. Two neighbours become one run,

    T = T_a T_b,      S = [S_a T_b; S_b],      M = [M_a, T_a M_b].

Directions of one sense along the cut axis add up inside of one product, and of two neighbours each reads the other in one
sense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.cost.runs import Cut, targets_at_a_time
from stmlang.lower.adapters import by_block
from stmlang.lower.attention import masked_attention, streamed_attention
from stmlang.lower.contractions import matmul
from stmlang.lower.merge_tree import whole_block
from stmlang.lower.one_turn import partings
from stmlang.lower.operands import Operands, flip, scalars
from stmlang.lower.slabs import (
    Joined,
    cut_first,
    joined,
    pad_rows,
    rows_of,
    taken_apart,
    with_declared_nodes,
)
from stmlang.lower.strategy import Lowering, LoweringContext, Tables
from stmlang.lower.summary import Summary


class Runs(NamedTuple):
    """Neighbouring runs of rows, all of one size, in declared order; `sense` counts the directions that add up."""

    through: Float[Array, "lane sense run edge edge"]
    source: Float[Array, "lane sense run node edge"]
    mark: Float[Array, "lane sense run edge node"]


class Inputs(NamedTuple):
    query: Float[Array, "lane run node key"]
    key: Float[Array, "lane run node key"]
    value: Float[Array, "lane run node value"]


Attend = Callable[[LoweringContext, Inputs, Array, Runs | None, Runs | None], Array]
"""What all nodes read, `(lane, run, node, value)` or with one axis of nodes: inputs; what the nodes of each first run see of
themselves, `(lane, run, source, target)`; and the first runs of the forward and of the backward sense."""


def by_runs(cut: Callable[[LoweringContext], Cut], attend: Attend) -> Lowering:
    """A strategy that goes by runs of rows, for one direction or the sum of all of them."""

    def tables(context: LoweringContext) -> Tables:
        """The levels at which places in a row of one axis part, where rows are made by these."""
        others = cut(context).others
        return partings(others[0]) if len(others) == 1 and context.problem.track == 1 else ()

    def outputs(context: LoweringContext, tables: Tables, operands: Operands) -> Array:
        return _outputs(cut(context), attend, context, tables, operands)

    return by_block(tables, _block, outputs)


# --- two neighbours ----------------------------------------------------------------------------------------------------


def neighbours(runs: Runs | None) -> tuple[Runs, Runs] | None:
    """The first and the second runs of all pairs."""
    if runs is None:
        return None
    through, source, mark = (taken_apart(gate, 2) for gate in runs)
    return Runs(through[0], source[0], mark[0]), Runs(through[1], source[1], mark[1])


def doubled(pair: tuple[Runs, Runs] | None, sense: int) -> Runs | None:
    """Every pair of neighbours as one run; in the backward sense the second comes first."""
    if pair is None:
        return None
    before, after = pair[::sense]
    width = before.through.shape[-1]
    through, passed = jnp.split(
        matmul(jnp.concatenate([before.through, before.source], axis=-2), after.through), [width], axis=-2
    )
    source, mark = [passed, after.source], [before.mark, matmul(before.through, after.mark)]
    return Runs(
        through,
        jnp.concatenate(source[::sense], axis=-2),
        jnp.concatenate(mark[::sense], axis=-1),
    )


def attended(query: Array, key: Array, value: Array, source: Array, mark: Array, targets: int) -> Array:
    """`((Q K^T) o (S M)^T) V`, all targets at once, or, where they are more than `targets`, part by part."""
    size = targets_at_a_time(query.shape[-2], targets)
    if size == query.shape[-2]:
        return masked_attention(query, key, value, matmul(source, mark))

    def cut(array: Array, axis: int) -> Array:
        axis += array.ndim
        return jnp.moveaxis(array.reshape(*array.shape[:axis], -1, size, *array.shape[axis + 1 :]), axis, 0)

    def weigh(mark: Array, scores: Array) -> Array:
        return scores * matmul(source, mark)

    outputs = streamed_attention(cut(query, -2), key, value, cut(mark, -1), weigh)
    return jnp.moveaxis(outputs, 0, -3).reshape(*query.shape[:-1], value.shape[-1])


# --- a grid ------------------------------------------------------------------------------------------------------------


def _rows(grid: Cut, context: LoweringContext, tables: Tables, operands: Operands) -> list[Joined]:
    """The first runs of every direction, `(head, run, ., .)`: rows and runs in the direction's own order, nodes of a row in
    declared order."""
    directions, tracks = context.problem.scan.directions, context.problem.track
    gates = cut_first(scalars(operands, tracks), grid.axis, 1 + len(grid.others), tracks)
    missing = grid.missing
    before = [missing if direction.senses[grid.axis] < 0 else 0 for direction in directions]
    senses = [grid.cut_first(direction.senses)[1:] for direction in directions]
    runs = joined(with_declared_nodes(rows_of(pad_rows(gates, before, missing), tables), senses, grid.others), grid.rows)
    split: list[Any] = [jnp.split(leaf, len(directions)) for leaf in jax.tree.leaves(runs)]
    structure = cast(Any, jax.tree.structure(runs))
    return [jax.tree.unflatten(structure, [jnp.squeeze(leaf, 0) for leaf in row]) for row in zip(*split, strict=True)]


def _one_sense(rows: Sequence[Joined], sense: int) -> tuple[Runs, list[list[Array]]] | None:
    """Directions of one sense as runs in declared order, and what their nodes see of each other, `(head, run, width, width)` by
    pairs of rows, target and source: summed, in the order of the directions."""
    if not rows:
        return None

    def together(arrays: Sequence[Array]) -> Array:
        return flip(jnp.stack(arrays, axis=1), [sense], 2)

    def in_order(arrays: Iterable[Sequence[Array]], axis: int) -> Array:
        return jnp.concatenate([together(row) for row in zip(*arrays, strict=True)][::sense], axis)

    source, mark = in_order([row.source for row in rows], -2), in_order([row.mark for row in rows], -1)
    lines = [
        [flip(_total(terms), [sense], 1) for terms in zip(*line, strict=True)]
        for line in zip(*(row.seen for row in rows), strict=True)
    ]
    return Runs(together([row.through for row in rows]), source, mark), lines


def _total(terms: Sequence[Array]) -> Array:
    """The sum of arrays of one shape."""
    return reduce(jnp.add, terms)


def _seen(forward: list[list[Array]] | None, backward: list[list[Array]] | None) -> Array:
    """What the nodes of the first runs see of each other, `(head, run, node, node)`, the source first."""
    triangles = [lines for lines in (forward, backward) if lines is not None]
    count, nothing = len(triangles[0]), jnp.zeros_like(triangles[0][0][0])

    def block(target: int, source: int) -> Array:
        if target == source:
            own = [lines[row][row] for lines, row in ((forward, target), (backward, count - 1 - target)) if lines is not None]
            return _total(own)
        if target > source:
            return nothing if forward is None else forward[target][source]
        return nothing if backward is None else backward[count - 1 - target][count - 1 - source]

    columns = [jnp.concatenate([block(target, source) for source in range(count)], axis=-2) for target in range(count)]
    return jnp.concatenate(columns, axis=-1)


def _inputs(grid: Cut, operands: Operands, senses: Sequence[int]) -> Inputs:
    """Queries, keys and values in declared order, `(head, run, node, index)`."""

    return Inputs(*(_laid(grid, flip(array[0], senses, 1)) for array in operands.inputs))


def _laid(grid: Cut, array: Array) -> Array:
    """`(head, *axes, index)` as `(head, run, node, index)`."""
    array = jnp.moveaxis(array, 1 + grid.axis, 1)
    missing = grid.missing
    array = jnp.pad(array, [(0, 0), (0, missing), *((0, 0) for _ in range(array.ndim - 2))])
    return array.reshape(array.shape[0], grid.runs, -1, array.shape[-1])


def _outputs(grid: Cut, attend: Attend, context: LoweringContext, tables: Tables, operands: Operands) -> Array:
    scan = context.problem.scan
    rows, senses = _rows(grid, context, tables, operands), [direction.senses[grid.axis] for direction in scan.directions]
    inputs = _inputs(grid, operands, scan.directions[0].senses)
    pairs = list(zip(rows, senses, strict=True))
    outputs: list[Array] = []
    for number, group in enumerate([pairs] if scan.combine == "sum" else [[pair] for pair in pairs]):
        ahead, back = (_one_sense([row for row, sense in group if sense == side], side) for side in (1, -1))
        mask = _seen(*(None if runs is None else runs[1] for runs in (ahead, back)))
        if operands.direct is not None:
            own = _laid(grid, operands.direct[number][..., None])
            eye = jnp.eye(mask.shape[-1], dtype=mask.dtype)
            mask = mask + own * jnp.expand_dims(eye, tuple(range(mask.ndim - 2)))
        forward, backward = (None if runs is None else runs[0] for runs in (ahead, back))
        outputs.append(attend(context, inputs, mask, forward, backward))
    return jnp.stack([_unlaid(grid, output) for output in outputs])


def _unlaid(grid: Cut, array: Array) -> Array:
    """`(head, node, value)` as `(head, *axes, value)`."""
    array = array.reshape(array.shape[0], -1, *grid.others, array.shape[-1])[:, : grid.size]
    return jnp.moveaxis(array, 1, 1 + grid.axis)


def _block(context: LoweringContext, tables: Tables, operands: Operands) -> Summary:
    del tables
    return whole_block(context, (), operands)
