"""The table of SPEC.md about the library: what is known of each spec, which way it is evaluated, and what that costs."""

from __future__ import annotations

from stmlang.check import library_specs, load, open_spec
from stmlang.cli.listing import headline
from stmlang.compiler import Call, prepare
from stmlang.cost.target import CPU
from stmlang.facts.analyse import Facts
from stmlang.plan.choose import make_plan
from stmlang.scan.sizes import bind, regular_part, unbound
from stmlang.scan.topology import Runtime

LENGTHS = {1: 1024, 2: 32, 3: 8}
"""Nodes along each open axis, by the number of axes."""

MEMORY = 2**34


def architectures_section() -> str:
    """One row for each spec with a scan, at its own sizes, for a machine of the kind `cpu`."""
    rows = [_row(name) for name in library_specs() if name != "gates"]
    return "\n".join(["| architecture | spec | facts | path | cost |", "|---|---|---|---|---|", *rows])


def _row(name: str) -> str:
    scan = load(f"std:{name}")
    what = headline(open_spec(f"std:{name}").source.text).partition(": ")[0]
    if isinstance(scan.topology, Runtime):
        return f"| {what} | `{name}` | as of its graph | for each bucket | |"
    regular = regular_part(scan)
    lengths = {} if regular is None else dict.fromkeys(unbound(scan), LENGTHS[len(regular.axes)])
    prepared = prepare(bind(scan, lengths), Call("float32", memory_limit=MEMORY))
    best = make_plan(prepared.problem, CPU).ranked[0].estimate
    nodes = prepared.dag.node_count
    cost = f"{best.flops / nodes / 1000:.3g}"
    return f"| {what} | `{name}` | {_facts(prepared.facts)} | `{best.candidate.strategy}` | {cost} |"


def _facts(facts: Facts) -> str:
    """The verdict, and what the transition acts on."""
    indices = [index for index in facts.scan.gate("transition").indices if index not in ("out", "in")]
    acts = "one number" if not indices else "delta rule" if any(facts.factored) else f"`[{', '.join(indices)}]`"
    forms = ["constant"] if facts.constant else []
    if facts.rank_one is not None and not facts.bounds.classes.single:
        forms.append("rank one")
    return ", ".join([facts.verdict.kind, acts, *forms])
