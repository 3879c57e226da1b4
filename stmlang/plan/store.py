"""Plans as JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from stmlang.cost.candidate import Candidate, Rejection, Stage
from stmlang.cost.coefficients import Coefficients, Weights
from stmlang.cost.errors import plan_error
from stmlang.cost.roofline import Estimate, stage_time
from stmlang.cost.settings import settings_dict
from stmlang.cost.target import Target
from stmlang.plan.plan import Circumstances, Plan, Ranked, Tuning
from stmlang.plan.tuned import Measured
from stmlang.strategies.registry import stored_settings

SCHEMA = 3


def plan_dict(plan: Plan) -> dict[str, Any]:
    """A plan as JSON values."""
    chosen = next(at for at, entry in enumerate(plan.ranked) if entry.estimate.candidate == plan.chosen.candidate)
    return {
        "schema": SCHEMA,
        "strategy": plan.strategy,
        "config": plan.config,
        "forced": plan.forced,
        "chosen": chosen,
        "circumstances": asdict(plan.circumstances),
        "target": _target_dict(plan.target),
        "candidates": [_ranked_dict(entry) for entry in plan.ranked],
        "rejections": [asdict(rejection) for rejection in plan.rejections],
        "tuning": asdict(plan.tuning),
    }


def plan_json(plan: Plan, indent: int | None = None) -> str:
    """A plan as text, the same for equal plans."""
    return json.dumps(plan_dict(plan), indent=indent, sort_keys=True)


def plan_from_json(text: str) -> Plan:
    """The plan that `plan_json` wrote. Raises SpecError (STM5008) for anything else."""
    try:
        return _plan(json.loads(text))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise plan_error("STM5008", f"this is not a stored plan of schema {SCHEMA}: {type(error).__name__}: {error}") from None


def _ranked_dict(entry: Ranked) -> dict[str, Any]:
    estimate, candidate = entry.estimate, entry.estimate.candidate
    return {
        "strategy": candidate.strategy,
        "config": settings_dict(candidate.settings),
        "label": candidate.label,
        "fits": entry.fits,
        "why": entry.why,
        "seconds": estimate.seconds,
        "forward_seconds": estimate.forward_seconds,
        "compile_seconds": estimate.compile_seconds,
        "flops": estimate.flops,
        "bytes": estimate.bytes,
        "steps": estimate.steps,
        "memory": estimate.memory,
        "memory_forward": candidate.memory_forward,
        "memory_backward": candidate.memory_backward,
        "op_count": candidate.op_count,
        "op_count_backward": candidate.op_count_backward,
        "forward": [asdict(stage) for stage in candidate.forward],
        "backward": [asdict(stage) for stage in candidate.backward],
    }


def _plan(stored: dict[str, Any]) -> Plan:
    if stored["schema"] != SCHEMA:
        raise ValueError(f"schema {stored['schema']}")
    target = _target(stored["target"])
    fields: dict[str, Any] = dict(stored["circumstances"])
    axes = fields.pop("axes")
    circumstances = Circumstances(axes=None if axes is None else tuple(axes), **fields)
    entries: list[dict[str, Any]] = stored["candidates"]
    ranked = tuple(_ranked(entry, circumstances, target) for entry in entries)
    rejections = tuple(Rejection(**entry) for entry in stored["rejections"])
    chosen = ranked[int(stored["chosen"])].estimate
    return Plan(chosen, ranked, rejections, circumstances, target, bool(stored["forced"]), _tuning(stored["tuning"]))


def _target_dict(target: Target) -> dict[str, Any]:
    """A target's rates, and of its coefficients where they come from: the stages of a plan carry those that they are weighed
    by."""
    rates = {entry.name: getattr(target, entry.name) for entry in fields(target) if entry.name != "coefficients"}
    record = target.coefficients
    return {**rates, "matmul": dict(target.matmul), "costs": {"measured": record.measured, "origin": record.origin}}


def _target(stored: Mapping[str, Any]) -> Target:
    rates = dict(stored)
    costs = rates.pop("costs")
    return Target(coefficients=Coefficients(bool(costs["measured"]), str(costs["origin"]), cache=0, fresh=0), **rates)


def _stage(stored: Mapping[str, Any]) -> Stage:
    counts = dict(stored)
    return Stage(weights=Weights(**counts.pop("weights")), **counts)


def _tuning(stored: dict[str, Any]) -> Tuning:
    fields = dict(stored)
    measured = tuple(Measured(**entry) for entry in fields.pop("measured"))
    return Tuning(measured=measured, notes=tuple(fields.pop("notes")), **fields)


def _ranked(entry: dict[str, Any], circumstances: Circumstances, target: Target) -> Ranked:
    candidate = Candidate(
        entry["strategy"],
        stored_settings(entry["strategy"], entry["config"]),
        tuple(_stage(stage) for stage in entry["forward"]),
        tuple(_stage(stage) for stage in entry["backward"]),
        memory_forward=entry["memory_forward"],
        memory_backward=entry["memory_backward"],
        op_count=entry["op_count"],
        op_count_backward=entry["op_count_backward"],
    )
    training = circumstances.mode == "training"
    estimate = Estimate(
        candidate,
        tuple(stage_time(stage, circumstances.dtype, target) for stage in candidate.stages(training)),
        seconds=entry["seconds"],
        forward_seconds=entry["forward_seconds"],
        memory=entry["memory"],
        op_count=candidate.ops(training),
        compile_seconds=entry["compile_seconds"],
    )
    return Ranked(estimate, entry["fits"], entry["why"])
