"""Which gates a program evaluates, and whether any of them needs the line edges of a ragged topology."""

from __future__ import annotations

from collections.abc import Iterable

from stmlang.lower.values import Site, finest
from stmlang.program.evaluate import leaf_site
from stmlang.scan.expression import Degree, Expr, GateRef, InputRef, LeafRef, LineMask, Normalize, Reduce, children
from stmlang.scan.scan import Scan

ENDS: tuple[Site, Site] = ("out", "in")


def needed(scan: Scan, names: Iterable[str], others: Iterable[Expr]) -> frozenset[str]:
    """The named gates, what some further expressions refer to, and everything that these refer to."""
    declared = {gate.name: gate for gate in scan.gates}
    found, stack = set[str](), list(others)
    waiting = [name for name in names if name in declared]
    while waiting or stack:
        for name in waiting:
            if name not in found:
                found.add(name)
                stack.extend(clause.value for clause in declared[name].clauses)
        waiting = []
        if stack:
            expr = stack.pop()
            stack.extend(children(expr))
            if isinstance(expr, GateRef):
                waiting = [expr.gate]
    return frozenset(found)


def meets_line_edges(scan: Scan, gates: frozenset[str], others: Iterable[Expr]) -> bool:
    """Whether evaluating these gates and expressions takes values to line edges, on a ragged topology."""
    sites: dict[str, Site] = {}
    seen = set[Site]()

    def site(expr: Expr) -> Site:
        parts: tuple[Site, ...] = tuple(site(part) for part in children(expr))
        at: Site
        match expr:
            case LineMask():
                at = "line"
            case LeafRef(leaf=name):
                at = leaf_site(scan.leaf(name))
            case GateRef(gate=name):
                at = sites[name]
            case InputRef() | Degree():
                at = "node"
            case Reduce(over=("out" | "in") as over) | Normalize(over=("out" | "in") as over):
                expanded: Site = over if parts[0] in ("constant", "node", over) else "line"
                seen.add(expanded)
                other: Site = "in" if over == "out" else "out"
                at = expanded if isinstance(expr, Normalize) else "node" if expanded == over else other
            case _:
                at = finest(parts)
        seen.add(at)
        return at

    for gate in scan.gates:
        if gate.name in gates:
            found: list[Site] = [site(clause.value) for clause in gate.clauses]
            if any(clause.ports for clause in gate.clauses):
                found.extend(end for end in ENDS if end in gate.indices)
            sites[gate.name] = finest(found)
            seen.add(sites[gate.name])
    for expr in others:
        site(expr)
    return "line" in seen
