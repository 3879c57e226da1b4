"""Targets by name; that of the CPU as it was measured on this machine, if it was."""

from __future__ import annotations

from stmlang.cost.calibration import load
from stmlang.cost.errors import plan_error
from stmlang.cost.target import CPU, TARGETS, Target

ALIASES = {"gpu": "h100", "cuda": "h100", "auto": "cpu"}


def target_names() -> tuple[str, ...]:
    """Every name that `target_of` knows."""
    return (*TARGETS, *ALIASES)


def target_of(name: str, *, calibrated: bool = True) -> Target:
    """The target of a name. `auto` is the CPU here (a caller that can see devices resolves it first), `gpu` an H100.

    The CPU's record is the one measured on this machine, if there is one and `calibrated` is left on. Raises SpecError
    (STM5009) for an unknown name.
    """
    known = ALIASES.get(name, name)
    if known not in TARGETS:
        raise plan_error("STM5009", f"unknown target `{name}`", help=f"choose one of {', '.join(target_names())}")
    if known == "cpu" and calibrated:
        return load() or CPU
    return TARGETS[known]
