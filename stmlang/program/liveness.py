"""Which gates a program evaluates, and whether any of them needs the line edges of a ragged topology."""

from __future__ import annotations

from collections.abc import Iterable

from stmlang.lower.sites import finest, grouped_sites, leaf_site, port_site
from stmlang.lower.values import Site
from stmlang.scan.expression import Degree, Expr, GateRef, InputRef, LeafRef, LineMask, Neighbour, Normalize, Reduce, children
from stmlang.scan.scan import Scan


def needed(scan: Scan, names: Iterable[str], others: Iterable[Expr]) -> frozenset[str]:
    """The named gates, what some further expressions refer to, and everything that these refer to."""
    declared = {gate.name: gate for gate in scan.gates}
    reached, stack = set[str](), list(others)
    waiting = [name for name in names if name in declared]
    while waiting or stack:
        for name in waiting:
            if name not in reached:
                reached.add(name)
                stack.extend(clause.value for clause in declared[name].clauses)
        waiting = []
        if stack:
            expr = stack.pop()
            stack.extend(children(expr))
            if isinstance(expr, GateRef):
                waiting = [expr.gate]
    return frozenset(reached)


def meets_line_edges(scan: Scan, gates: frozenset[str], others: Iterable[Expr]) -> bool:
    """Whether evaluating these gates and expressions takes values to line edges, on a ragged topology."""
    sites: dict[str, Site] = {}
    visited = set[Site]()

    def site(expr: Expr) -> Site:
        inner: tuple[Site, ...] = tuple(site(child) for child in children(expr))
        at: Site
        match expr:
            case LineMask():
                at = "line"
            case LeafRef(leaf=name):
                at = leaf_site(scan.leaf(name))
            case GateRef(gate=name):
                at = sites[name]
            case Neighbour(over=over):
                at = over
            case InputRef() | Degree():
                at = "node"
            case Reduce(over=("out" | "in") as over) | Normalize(over=("out" | "in") as over):
                expanded, groups = grouped_sites(inner[0], over)
                visited.add(expanded)
                at = expanded if isinstance(expr, Normalize) else groups
            case _:
                at = finest(inner)
        visited.add(at)
        return at

    for gate in scan.gates:
        if gate.name in gates:
            of_clauses: list[Site] = [site(clause.value) for clause in gate.clauses]
            if any(clause.ports for clause in gate.clauses):
                of_clauses.append(port_site(gate.indices))
            sites[gate.name] = finest(of_clauses)
            visited.add(sites[gate.name])
    for expr in others:
        site(expr)
    return "line" in visited
