"""Facts as text, for explanations, and as plain data, for programs."""

from __future__ import annotations

from typing import Any

from stmlang.facts.analyse import Facts
from stmlang.facts.bounds import Bounds
from stmlang.facts.dependence import Depends
from stmlang.facts.reason import bounded, listed, show_bound
from stmlang.scan.expression import Expr, Number, ordered
from stmlang.scan.show import show_expr, spoken
from stmlang.scan.topology import Port, ports
from stmlang.source.columns import table, wrapped


def show_facts(facts: Facts, width: int | None = None) -> str:
    """Several lines, ending in a newline: the verdict and its steps, the form of the transition, and a line for each gate. They
    are broken where they are longer than `width`."""
    verdict = facts.verdict
    lines = [f"stability: {verdict.kind}{' (the other mode holds too)' if verdict.also and not verdict.inserted else ''}"]
    lines += [f"    {step}" for step in verdict.reason]
    lines += [f"transition: {text}" for text in show_transition(facts)]
    lines.append("gates, with the interval they lie in and what they depend on:")
    rows = [
        ("", gate.name, interval_of(facts.bounds, gate.name), show_depends(facts.bounds, gate.name))
        for gate in facts.scan.gates
    ]
    shown = [*wrapped("\n".join(lines), width), *(f"  {line}" for line in table(rows, range(4), width and width - 2))]
    return "\n".join(shown) + "\n"


def _spoken(facts: Facts, expr: Expr) -> str:
    """An expression as its author would write it."""
    return spoken(show_expr(expr), facts.scan)


def show_transition(facts: Facts) -> list[str]:
    """What is known of the transition's form, a sentence each."""
    lines: list[str] = []
    if facts.rank_one is not None and not facts.bounds.classes.single:
        out_factor, in_factor = facts.rank_one.out_factor, facts.rank_one.in_factor
        if isinstance(in_factor, Number) and in_factor.value == 1:
            lines.append("the same for all incoming edges (rank one): one state for each node is enough")
        else:
            factors = f"({_spoken(facts, out_factor)}) * ({_spoken(facts, in_factor)})"
            lines.append(f"rank one, {factors}: one state for each node is enough")
    for form in facts.factored:
        if form is not None:
            plain = isinstance(form.scale, Number) and form.scale.value == 1
            scale = "" if plain else f"{_spoken(facts, form.scale)} * "
            lines.append(
                f"{scale}(identity - u u^T * strength) on the axis {form.pair[0]}, with "
                f"u = {_spoken(facts, form.u)}, strength = {_spoken(facts, form.strength)}"
            )
    zeros = [f"[out = {out}, in = {into}]" for out, into in _zeros(facts.bounds)]
    if zeros:
        lines.append(f"zero at {listed(zeros)}")
    if facts.constant:
        lines.append("source, transition and mark are the same at every node: one impulse response tells everything")
    return lines or ["no special form"]


def _zeros(bounds: Bounds) -> list[tuple[str, str]]:
    """The structural zeros of the transition, as pairs of ports."""
    names = bounds.classes.names
    return [
        (names[out], names[into]) for out in range(len(names)) for into in range(len(names)) if not bounds.allowed[out, into]
    ]


def interval_of(bounds: Bounds, name: str) -> str:
    """The interval of a gate at all ports together."""
    interval = bounds.intervals.gates[name]
    low, high = float(interval.low.min()), float(interval.high.max())
    left = f"[{show_bound(low)}" if bounded(low) else "(-inf"
    right = f"{show_bound(high)}]" if bounded(high) else "inf)"
    return f"{left}, {right}{' or undefined' if interval.nan.any() else ''}"


def show_depends(bounds: Bounds, name: str) -> str:
    """`varies along out; on x; from source, decay; same at every node`."""
    depends = bounds.dependence.gates[name]
    words: list[str] = []
    if depends.varies:
        words.append(f"varies along {', '.join(ordered(set(depends.varies)))}")
    if depends.inputs:
        words.append(f"reads {', '.join(sorted(depends.inputs))}")
    leaves = [leaf.name for leaf in bounds.dependence.leaves(depends)]
    if leaves:
        words.append(f"from {listed(leaves)}")
    if depends.graph:
        words.append("depends on the graph")
    if not depends.nodes:
        words.append("the same at every node")
    return "; ".join(words)


# --- plain data ------------------------------------------------------------------------------------------------------


def facts_json(facts: Facts) -> dict[str, Any]:
    """The same for programs: strings, numbers, booleans, lists and dictionaries. An infinite bound is None."""
    verdict, bounds = facts.verdict, facts.bounds
    rank_one = facts.rank_one
    return {
        "stability": {
            "verdict": verdict.kind,
            "mode": verdict.mode,
            "other_mode_holds": verdict.also,
            "reason": list(verdict.reason),
        },
        "ports": [_port(port) for port in ports(facts.scan.topology)],
        "transition": {
            "zeros": [{"out": out, "in": into} for out, into in _zeros(bounds)],
            "column_sums": {name: _bound(total) for name, total in zip(bounds.classes.names, bounds.columns, strict=True)},
            "rank_one": None
            if rank_one is None
            else {"out": _spoken(facts, rank_one.out_factor), "in": _spoken(facts, rank_one.in_factor)},
            "factored": [
                None
                if form is None
                else {
                    "axis": form.pair[0],
                    "scale": _spoken(facts, form.scale),
                    "strength": _spoken(facts, form.strength),
                    "direction": _spoken(facts, form.u),
                }
                for form in facts.factored
            ],
        },
        "constant_over_nodes": facts.constant,
        "gates": {gate.name: _gate(bounds, gate.name) for gate in facts.scan.gates},
    }


def _port(port: Port) -> dict[str, Any]:
    return {"name": port.name, "ragged": port.ragged}


def _gate(bounds: Bounds, name: str) -> dict[str, Any]:
    depends: Depends = bounds.dependence.gates[name]
    interval, column = bounds.intervals.gates[name], bounds.simplex.gates[name]
    return {
        "varies": list(ordered(set(depends.varies))),
        "inputs": sorted(depends.inputs),
        "leaves": [leaf.name for leaf in bounds.dependence.leaves(depends)],
        "directional": bounds.dependence.directional(depends),
        "depends_on_graph": depends.graph,
        "constant_over_nodes": not depends.nodes,
        "low": _bound(float(interval.low.min())),
        "high": _bound(float(interval.high.max())),
        "may_be_undefined": bool(interval.nan.any()),
        "zero": bool(bounds.zeros.gates[name].all()),
        "sum_over_out": _bound(float(column.total.max())),
        "simplex_over_out": bool(column.simplex.all()),
    }


def _bound(value: float) -> float | None:
    return float(value) if bounded(value) else None
