"""Grids of two axes on which paths turn once, line by line: what strategies share that have their gating matrix as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array

from stmlang.cost.lines import Lines, lines_of
from stmlang.lower.adapters import by_block
from stmlang.lower.merge_tree import whole_block
from stmlang.lower.one_turn import PortGates, Walks, partings, walks
from stmlang.lower.operands import Operands, flip, scalars
from stmlang.lower.strategy import Lowering, LoweringContext, Tables
from stmlang.lower.summary import Summary

Attend = Callable[[LoweringContext, Array, Array, Array, Walks], Array]
"""`h[n] = sum over m of G[m, n] (q[n] . k[m]) v[m]`: inputs `(head, node, index)`, nodes line by line, and G as its tables."""


def by_lines(attend: Attend) -> Lowering:
    """A strategy that is attention with the tables of a grid, for one direction or the sum of all of them."""

    def outputs(context: LoweringContext, tables: Tables, operands: Operands) -> Array:
        return _outputs(attend, context, tables, operands)

    return by_block(_tables, _block, outputs)


def _outputs(attend: Attend, context: LoweringContext, tables: Tables, operands: Operands) -> Array:
    scan, lines = context.problem.scan, _grid_lines(context)
    first = lines.first
    senses = [(direction.senses[1 - first], direction.senses[first]) for direction in scan.directions]
    direct = operands.direct if operands.direct is None or first == 1 else jnp.swapaxes(operands.direct, 2, 3)
    gates = _port_gates(context, operands, first)
    together = [range(len(senses))] if scan.combine == "sum" else [[number] for number in range(len(senses))]

    def group_walks(number: int, group: Sequence[int]) -> Walks:
        joined = PortGates(*(jnp.concatenate([_taken(gate, 0)[index][None] for index in group]) for gate in gates))
        return walks(joined, None if direct is None else direct[number], [senses[index] for index in group], tables)

    query, key, value = (_lines(flip(array[0], scan.directions[0].senses, 1), first) for array in operands.inputs)
    h = jnp.stack([attend(context, query, key, value, group_walks(number, group)) for number, group in enumerate(together)])
    h = h.reshape(*h.shape[:2], lines.count, lines.size, h.shape[-1])
    return h if first == 1 else jnp.swapaxes(h, 2, 3)


def _grid_lines(context: LoweringContext) -> Lines:
    facts, axes = context.problem.facts, context.axes
    assert facts is not None
    assert axes is not None
    return lines_of(facts, axes)


def _lines(array: Array, first: int) -> Array:
    """`(head, *axes, index)` as `(head, node, index)`, nodes line by line."""
    array = array if first == 1 else jnp.swapaxes(array, 1, 2)
    return array.reshape(array.shape[0], -1, array.shape[-1])


def _port_gates(context: LoweringContext, operands: Operands, first: int) -> PortGates:
    """Gates by port in declared coordinates, as `(direction, head, y, x)`."""
    gates, last, directions = scalars(operands), 1 - first, context.problem.scan.directions

    def by_port(gate: Array) -> list[Array]:
        """Taken apart by one split: its transpose is one concatenation."""
        ports = gate.reshape(*gate.shape[:4], -1)
        gates = jnp.moveaxis(ports, -1, 0)
        gates = jnp.stack(
            [flip(lane, direction.senses, 2) for lane, direction in zip(_taken(gates, 1), directions, strict=True)], 1
        )
        return _taken(gates if first == 1 else jnp.swapaxes(gates, 3, 4), 0)

    source, transition, mark = (by_port(gate) for gate in gates)
    return PortGates(
        source_first=source[first],
        source_last=source[last],
        first=transition[3 * first],
        last=transition[3 * last],
        turn=transition[2 * last + first],
        mark_first=mark[first],
        mark_last=mark[last],
    )


def _taken(array: Array, axis: int) -> list[Array]:
    """The entries along an axis."""
    return [jnp.squeeze(piece, axis) for piece in jnp.split(array, array.shape[axis], axis)]


def _block(context: LoweringContext, tables: Tables, operands: Operands) -> Summary:
    """What crosses the border, and the gating matrix of each direction for those who ask for it, by merging."""
    del tables
    return whole_block(context, (), operands)


def _tables(context: LoweringContext) -> Tables:
    """The levels at which lines, and places in a line, part."""
    lines = _grid_lines(context)
    return partings(lines.count), partings(lines.size)
