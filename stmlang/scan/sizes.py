"""Binding the sizes that a checked scan left open: the axes of a chain or grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from stmlang.scan.expression import Index
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Axis, Product, Regular
from stmlang.source.diagnostic import Diagnostic, SpecError

SIZE_LIMIT = 2**31
"""Sizes, and the number of nodes, are below this."""


def dense_size(scan: Scan, index: Index) -> int:
    """How many values an index takes that is none of ports."""
    match index:
        case "key" | "key'" | "key''":
            return scan.key
        case "value" | "value'":
            return scan.value
        case "track" | "track'" | "track''":
            return scan.track
        case "write":
            return scan.writes
        case "read":
            return scan.reads
        case _:
            raise ValueError(f"how many edges the index '{index}' ranges over is a matter of the topology")


def regular_part(scan: Scan) -> Regular | None:
    """The chain or grid that a topology is or has as a factor; there is at most one, regular factors being merged."""
    match scan.topology:
        case Regular():
            return scan.topology
        case Product(factors=factors):
            return next((factor for factor in factors if isinstance(factor, Regular)), None)
        case _:
            return None


def unbound(scan: Scan) -> tuple[str, ...]:
    """The axes without a size, in order."""
    regular = regular_part(scan)
    return () if regular is None else tuple(axis.name for axis in regular.axes if axis.size is None)


def bind(scan: Scan, sizes: Mapping[str, int]) -> Scan:
    """The scan with sizes given to axes that have none; others stay as they are.

    Raises SpecError for a name that is no axis, an axis that has another size already, and a size that is not a whole number
    from 0 to 2^31 - 1.
    """
    regular = regular_part(scan)
    axes = {} if regular is None else {axis.name: axis for axis in regular.axes}
    problems = [problem for name, size in sizes.items() if (problem := _refuse(axes, name, size)) is not None]
    if not problems and regular is not None:
        regular = replace(regular, axes=tuple(replace(axis, size=sizes.get(axis.name, axis.size)) for axis in regular.axes))
        if prod(axis.size or 1 for axis in regular.axes) >= SIZE_LIMIT:
            problems.append(Diagnostic("STM3303", f"this {_times(regular)} has more than 2^31 - 1 nodes", None))
    if problems:
        raise SpecError(problems)
    if regular is None or not sizes:
        return scan
    match scan.topology:
        case Product(factors=factors):
            merged = tuple(regular if isinstance(factor, Regular) else factor for factor in factors)
            return replace(scan, topology=replace(scan.topology, factors=merged))
        case _:
            return replace(scan, topology=regular)


def _times(regular: Regular) -> str:
    return " x ".join("?" if axis.size is None else str(axis.size) for axis in regular.axes) + " grid"


def _refuse(axes: Mapping[str, Axis], name: str, size: object) -> Diagnostic | None:
    """Why a size cannot be given to an axis, if it cannot."""
    if name not in axes:
        listed = ", ".join(f"`{axis}`" for axis in axes) or "none"
        return Diagnostic("STM2041", f"`{name}` is no axis of this scan's topology", None, (f"its axes: {listed}",))
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < SIZE_LIMIT:
        rule = "the size of an axis is a whole number from 0 to 2^31 - 1"
        return Diagnostic("STM2029", f"`{name}` cannot be {size!r}", None, (rule,))
    bound = axes[name].size
    if bound is not None and bound != size:
        rule = "a size that is bound stays: check the spec again with the other size"
        return Diagnostic("STM2041", f"`{name}` is {bound} already and cannot become {size}", None, (rule,))
    return None
