"""What programs take on a platform, as multiples of its machine's rates: one record for each platform, in `coefficients.json`.

    {"schema": 1,
     "cpu": {"measured": true, "origin": "...", "cache": BYTES, "fresh": BYTES,
             "stages": {STRATEGY: {STAGE: {"arithmetic": ..., "traffic": ..., ...}}},
             "instructions": {STRATEGY: {"inference": {TERM: ...}, "training": {TERM: ...}}}},
     "cuda": {...}}

A stage counts exactly what there is to do, from a problem's sizes; a coefficient says how often the machine does it, or how
much worse than at its best: `traffic` is how many times the stage's bytes are read or written, `arithmetic` by how much its
products fall behind large ones. What is not in the record counts once. `python -m benchmarks.fit` writes it from measured runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, cast, get_args

Platform = Literal["cpu", "cuda"]

PATH = Path(__file__).with_name("coefficients.json")
SCHEMA = 1
MODES = ("inference", "training")
MOST = 1e6
"""No coefficient is as large."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What multiplies the counts of a stage, see `stmlang.cost.candidate.Stage`; each is a number that is not negative."""

    arithmetic: float = 1.0
    traffic: float = 1.0
    spilled: float = 1.0
    fresh: float = 1.0
    steps: float = 1.0
    ops: float = 1.0
    products: float = 1.0


ONCE = Weights()
TERMS = tuple(entry.name for entry in fields(Weights))


@dataclass(frozen=True, slots=True)
class Coefficients:
    """A platform's record. Arrays of more than `cache` bytes leave the cache before they are read again, those of more than
    `fresh` bytes are taken from the system anew in every call. `origin` says where the numbers come from, and `measured`
    whether they were fitted to runs on this platform."""

    measured: bool
    origin: str
    cache: int
    fresh: int
    stages: Mapping[str, Mapping[str, Weights]] = field(default_factory=dict[str, Mapping[str, Weights]])
    instructions: Mapping[str, Mapping[str, Mapping[str, float]]] = field(
        default_factory=dict[str, Mapping[str, Mapping[str, float]]]
    )

    def weights(self, strategy: str, stage: str) -> Weights:
        """Those of a stage; ones for what was never fitted, such as a strategy that is new."""
        return self.stages.get(strategy, {}).get(stage, ONCE)

    def instruction_count(self, strategy: str, mode: str, terms: Mapping[str, int]) -> int:
        """Instructions of a strategy's program before XLA: so many for each of what `terms` counts."""
        each = self.instructions.get(strategy, {}).get(mode, {})
        return round(sum(each.get(term, 1.0) * count for term, count in terms.items()))


def read_records(path: Path = PATH) -> dict[Platform, Coefficients]:
    """Every platform's record. Raises ValueError, KeyError or TypeError for a file that `write_records` did not write."""
    values: dict[str, Any] = json.loads(path.read_bytes())
    if values.pop("schema") != SCHEMA:
        raise ValueError(f"{path} has another schema")
    if set(values) != set(get_args(Platform)):
        raise ValueError(f"{path} has records for {', '.join(values)}")
    return {cast(Platform, platform): _record(entry) for platform, entry in values.items()}


def write_records(records: Mapping[Platform, Coefficients], path: Path = PATH) -> None:
    """The file, sorted and rounded to three digits, so that two of them can be compared line by line."""
    values = {"schema": SCHEMA, **{platform: _values(record) for platform, record in sorted(records.items())}}
    path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def _values(record: Coefficients) -> dict[str, Any]:
    def rounded(numbers: Mapping[str, float], usual: float | None) -> dict[str, float]:
        short = {name: float(f"{number:.3g}") for name, number in numbers.items()}
        return {name: number for name, number in short.items() if number != usual}

    return {
        "measured": record.measured,
        "origin": record.origin,
        "cache": record.cache,
        "fresh": record.fresh,
        "stages": {
            strategy: {stage: rounded(asdict(weights), 1.0) for stage, weights in sorted(stages.items())}
            for strategy, stages in sorted(record.stages.items())
        },
        "instructions": {
            strategy: {mode: rounded(terms, None) for mode, terms in sorted(modes.items())}
            for strategy, modes in sorted(record.instructions.items())
        },
    }


def _record(values: Mapping[str, Any]) -> Coefficients:
    stages = {
        strategy: {stage: Weights(**_numbers(weights)) for stage, weights in stages.items()}
        for strategy, stages in values["stages"].items()
    }
    instructions = {
        strategy: {mode: _numbers(terms) for mode, terms in modes.items()} for strategy, modes in values["instructions"].items()
    }
    if any(set(modes) != set(MODES) for modes in instructions.values()):
        raise ValueError("instructions are counted for inference and for training")
    return Coefficients(
        measured=bool(values["measured"]),
        origin=str(values["origin"]),
        cache=int(values["cache"]),
        fresh=int(values["fresh"]),
        stages=stages,
        instructions=instructions,
    )


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Numbers by name. Raises ValueError for one that no coefficient can be."""
    numbers = {name: float(value) for name, value in values.items()}
    if wrong := [name for name, number in numbers.items() if not 0 <= number < MOST]:
        raise ValueError(f"{', '.join(wrong)}: a coefficient is neither negative nor beyond {MOST:g}")
    return numbers
