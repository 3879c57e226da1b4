"""Nodes that take several steps: where they may, and gates of a step without its index."""

from __future__ import annotations

from dataclasses import replace

from stmlang.check.modes import Modes
from stmlang.check.problems import Problems
from stmlang.scan.expression import STEP, Expr, GateRef, InputRef, LeafRef
from stmlang.scan.fold import fold, rebuilt
from stmlang.scan.scan import Leaf
from stmlang.scan.topology import Regular, Topology, kind_of
from stmlang.source.span import Span


def check_steps(problems: Problems, topology: Topology, modes: Modes, place: Span) -> None:
    """Several steps need a chain and one direction."""
    note = "a node with several steps is as many nodes in a row, the last of which is read"
    if not (isinstance(topology, Regular) and len(topology.axes) == 1):
        message = f"nodes of a {kind_of(topology)} take one step"
        problems.error("STM2053", message, place, note, help="leave `steps` away, or use `writes`, which adds up")
    elif len(modes.directions) > 1:
        help = "write a scan for each direction, and add their results"
        problems.error("STM2053", "a scan whose nodes take several steps runs in one direction", place, note, help=help)


def without_steps(expr: Expr, known: dict[int, tuple[Expr, Expr]]) -> Expr:
    """An expression of one step: what has the index `step` is that of the step at hand."""
    return fold(expr, _without, known)


def _without(expr: Expr, operands: tuple[Expr, ...]) -> Expr:
    match expr:
        case LeafRef(indices=indices):
            return replace(expr, indices=tuple(index for index in indices if index != STEP))
        case InputRef(bind=bind) | GateRef(bind=bind):
            return replace(expr, bind=tuple(entry for entry in bind if entry.declared != STEP))
        case _:
            return rebuilt(expr, operands)


def stepped_leaf(leaf: Leaf, steps: int) -> Leaf:
    """A leaf without the index, which then says whether it has an axis of steps."""
    if STEP not in leaf.indices:
        return leaf
    return replace(leaf, indices=tuple(index for index in leaf.indices if index != STEP), stepped=steps > 1)
