"""Following measurements: when the winner of `stmlang tune` takes the place of the predicted choice."""

from __future__ import annotations

from collections.abc import Sequence

from stmlang.cost import units
from stmlang.cost.roofline import Estimate
from stmlang.plan.plan import Tuning
from stmlang.plan.tuned import TIE, Found, Record


def follow(
    tuned: Found, predicted: Estimate, estimates: Sequence[Estimate], limit: int, forced: bool
) -> tuple[Estimate, Tuning]:
    """The choice and what measurements had to do with it.

    They decide if they are about this very problem, if the predicted choice is among what was measured (so that they only
    ever make things faster), and if the winner still is a candidate that fits the memory limit.
    """
    record = tuned.record
    if record is None:
        return predicted, Tuning(notes=tuned.notes)
    label = predicted.candidate.label
    before = record.of(label)
    won = next((entry for entry in estimates if entry.candidate.label == record.winner), None)
    if forced:
        return predicted, _unused(f"`{predicted.candidate.strategy}` was asked for", record)
    if before is None:
        return predicted, _unused(f"the predicted choice, `{label}`, was not measured: tune again", record)
    if won is None:
        return predicted, _unused(f"the fastest, `{record.winner}`, is no candidate any more: tune again", record)
    if won.memory > limit:
        needs = f"needs {units.size(won.memory)} of {units.size(limit)}"
        return predicted, _unused(f"the fastest, `{record.winner}`, does not fit the memory limit: it {needs}", record)
    speedup = None if before.fault else before.ratio / _ratio(record, record.winner)
    return won, Tuning(True, label, speedup, record.measured, record.checked)


def _unused(reason: str, record: Record) -> Tuning:
    return Tuning(measured=record.measured, checked=record.checked, notes=(reason,))


def _ratio(record: Record, label: str) -> float:
    entry = record.of(label)
    assert entry is not None
    return entry.ratio


def why_measured(label: str, chosen: str, tuning: Tuning) -> str:
    """Why a candidate was not chosen where measurements decided."""
    entries = {entry.label: entry for entry in tuning.measured}
    if label not in entries:
        return "not measured"
    entry = entries[label]
    if entry.fault:
        return f"measured: {entry.fault}"
    ratio = entry.ratio / entries[chosen].ratio
    if ratio <= 1 + TIE:
        return "measured: as fast, within the noise"
    return f"measured: {units.excess(ratio)} slower"
