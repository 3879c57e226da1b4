"""The plan as a person reads it: what was decided, every candidate with its costs, and why each one lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stmlang.cost import units
from stmlang.cost.roofline import Estimate
from stmlang.cost.target import Target
from stmlang.plan.plan import Circumstances, Plan, Ranked, Tuning
from stmlang.plan.store import plan_dict
from stmlang.source.columns import table, wrapped
from stmlang.source.drawing import printable
from stmlang.source.wording import count

HEADER = ("", "candidate", "flops", "bytes", "steps", "memory", "ops", "compile", "time", "why it lost")


def explain_text(plan: Plan, facts: str | None = None, width: int | None = None) -> str:
    """Several paragraphs, ending in a newline: the scan, the target, `facts` (as `stmlang.facts` words them), the candidates,
    the chosen one's stages, and the strategies that cannot be used. Lines have at most `width` characters, where it is given
    and what stands in them can be broken or left out."""
    heads = (_scan_text(plan.circumstances), _target_text(plan.target, plan.circumstances.dtype))
    paragraphs = ["\n".join(wrapped(text, width)) for text in heads]
    if facts:
        paragraphs.append(facts.rstrip("\n"))
    paragraphs += [_candidates_text(plan, width), *_tuning_text(plan.tuning, width), *_stages_text(plan.chosen, width)]
    if plan.rejections:
        lines = [line for entry in plan.rejections for line in wrapped(f"  {entry.strategy}: {entry.reason}", width)]
        paragraphs.append("\n".join(["cannot be used", *lines]))
    return "\n\n".join(paragraphs) + "\n"


def explain_json(plan: Plan, facts: Mapping[str, Any] | None = None) -> str:
    """The same for programs: the stored form of the plan, with `facts` beside it where they are given."""
    values = plan_dict(plan)
    if facts is not None:
        values["facts"] = facts
    return json.dumps(values, indent=2, sort_keys=True)


def _scan_text(circumstances: Circumstances) -> str:
    axes = circumstances.axes
    shape = f" ({' x '.join(map(str, axes))})" if axes is not None and len(axes) > 1 else ""
    several = {
        "track": circumstances.track,
        "writes": circumstances.writes,
        "reads": circumstances.reads,
        "steps": circumstances.steps,
    }
    sizes = f"{count(circumstances.heads, 'head')}, key {circumstances.key}, value {circumstances.value}" + "".join(
        f", {name} {size}" for name, size in several.items() if size > 1
    )
    own = f" with own {circumstances.own}" if circumstances.own else ""
    return (
        f"scan {circumstances.scan}: {count(circumstances.nodes, 'node')}{shape}, {count(circumstances.edges, 'edge')}, "
        f"{count(circumstances.line_edges, 'line edge')}, {count(circumstances.levels, 'level')}\n"
        f"  {sizes}, {count(circumstances.directions, 'direction')}{own}, {circumstances.dtype}, {circumstances.mode}, "
        f"batch {circumstances.batch}, memory limit {units.size(circumstances.memory_limit)}"
    )


def _target_text(target: Target, dtype: str) -> str:
    origin = "measured on this machine" if target.measured else "default record" if target.platform == "cpu" else "data sheet"
    costs = "" if target.coefficients.measured else f"; costs not measured: {target.coefficients.origin}"
    compute = "float64" if dtype == "float64" else "float32"
    return (
        f"target {target.name} ({origin}): {units.si(target.matmul[compute], 'flop/s')} in {compute} products, "
        f"{units.si(target.vector, 'flop/s')} elementwise, {units.si(target.bandwidth, 'B/s')}, "
        f"{units.seconds(target.step_overhead)} a step, {units.seconds(target.op_overhead)} an operation, "
        f"{units.seconds(target.product_overhead)} a product of a batch{costs}"
    )


def _candidates_text(plan: Plan, width: int | None) -> str:
    rows = [HEADER, *(_row(entry, plan) for entry in plan.ranked)]
    head = wrapped(f"plan: {plan.chosen.candidate.label} ({_choice(plan)})", width)
    return "\n".join([*head, *table(rows, {0, 1, 9}, width, spare=(6, 4, 3, 2, 7, 5))])


def _choice(plan: Plan) -> str:
    """Where the choice comes from."""
    tuning = plan.tuning
    if plan.forced:
        return "asked for"
    if not tuning.used:
        return "predicted: the fastest that fits"
    if tuning.speedup is None:
        return f"tuned: the numbers of the predicted choice, {tuning.predicted}, are wrong"
    if tuning.predicted == plan.chosen.candidate.label:
        return "tuned: the predicted choice is the fastest"
    return f"tuned: {tuning.speedup:.2f}x as fast as the predicted choice, {tuning.predicted}"


def _tuning_text(tuning: Tuning, width: int | None) -> list[str]:
    """What was measured, or why what was measured is not used."""
    paragraphs: list[str] = []
    if tuning.used:
        rows = [("", "candidate", "time", "of the predicted", "compile", "temporary", ""), *_measured_rows(tuning)]
        head = wrapped(f"measured on this machine ({tuning.checked})", width)
        paragraphs.append("\n".join([*head, *table(rows, {0, 1, 6}, width, spare=(5, 4))]))
    if tuning.notes:
        notes = [line for note in tuning.notes for line in wrapped(f"  {printable(note)}", width)]
        paragraphs.append("\n".join(["tuned results that are not used", *notes]))
    return paragraphs


def _measured_rows(tuning: Tuning) -> list[tuple[str, ...]]:
    entries = {entry.label: entry for entry in tuning.measured}
    base = entries[tuning.predicted]
    return [
        ("", entry.label, "", "", "", "", entry.fault)
        if entry.fault
        else (
            "",
            entry.label,
            units.seconds(entry.seconds),
            "" if base.fault else f"{entry.ratio / base.ratio:.2f}x",
            units.seconds(entry.compile_seconds),
            units.size(entry.temporary_bytes),
            "",
        )
        for entry in tuning.measured
    ]


def _row(entry: Ranked, plan: Plan) -> tuple[str, ...]:
    estimate = entry.estimate
    chosen = estimate.candidate == plan.chosen.candidate
    return (
        ">" if chosen else "",
        estimate.candidate.label,
        units.si(estimate.flops),
        units.size(estimate.bytes),
        f"{estimate.steps:,}",
        units.size(estimate.memory),
        f"{estimate.op_count:,}",
        units.seconds(estimate.compile_seconds),
        units.seconds(estimate.seconds),
        "chosen" if chosen else entry.why,
    )


def _stages_text(chosen: Estimate, width: int | None) -> list[str]:
    """The stages that take time, if any does."""
    rows = [("", "stage", "flops", "bytes", "steps", "time", "limited by")]
    for time in chosen.times:
        seconds = {"arithmetic": time.arithmetic, "memory traffic": time.traffic, "steps": time.steps, "dispatch": time.ops}
        seconds["small products"] = time.products
        stage, most = time.stage, max(seconds, key=lambda name: seconds[name])
        numbers = (units.si(stage.flops), units.size(stage.bytes), f"{stage.steps:,}", units.seconds(time.total))
        if time.total > 0:
            rows.append(("", stage.name, *numbers, most))
    head = f"where {chosen.candidate.label} spends its time"
    return ["\n".join([head, *table(rows, {0, 1, 6}, width, spare=(4, 3, 2))])] if len(rows) > 1 else []
