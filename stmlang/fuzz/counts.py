"""How many examples were tried, on how many sets of values, and what was found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from stmlang.fuzz.jobs import FRONT_END, Evaluate, Outcome


@dataclass
class Counts:
    """Examples that applied, the sets of values that were judged, and findings, by (generator, strategy, check)."""

    examples: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    draws: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    findings: Counter[tuple[str, str, str]] = field(default_factory=Counter[tuple[str, str, str]])
    skipped: int = 0

    def note(self, job: Evaluate, outcome: Outcome) -> None:
        """Count an example by what came of it."""
        key = (job.trial.generator, job.way.strategy, job.check)
        if outcome.kind == "skipped":
            self.skipped += 1
            return
        self.examples[key] += 1
        self.draws[key] += outcome.draws if job.way != FRONT_END else 0
        self.findings[key] += outcome.finding is not None

    @property
    def total(self) -> int:
        """All examples that applied."""
        return self.examples.total()

    def by(self, place: int) -> dict[str, tuple[int, int, int]]:
        """Examples, sets of values and findings by generator (0), strategy (1) or check (2), in order of name."""
        names = sorted({key[place] for key in self.examples})
        return {
            name: (_sum(self.examples, place, name), _sum(self.draws, place, name), _sum(self.findings, place, name))
            for name in names
        }


def _sum(counter: Counter[tuple[str, str, str]], place: int, name: str) -> int:
    return sum(count for key, count in counter.items() if key[place] == name)
