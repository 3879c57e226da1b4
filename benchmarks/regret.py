"""What the planner's choices lose against the fastest candidates, on problems that no cost was fitted to.

    python -m benchmarks.regret            every held-out problem
    python -m benchmarks.regret --quick    a dozen of them
    python -m benchmarks.regret --keep     what was measured before stays, as far as the choice is among it

The regret of a problem is the time of the chosen candidate over that of the fastest one. Beside the choice those candidates are
timed that are predicted to be nearly as fast, and the best of other strategies (`benchmarks.samples.worth_timing`), all in
turns.

Written to build/bench/regret.json; the samples, as `python -m benchmarks.fit` reads them, to build/bench/regret-samples.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.compile_time import write_rows
from benchmarks.fit import summary
from benchmarks.problems import Case, held_out_cases
from benchmarks.samples import Samples, Session, compiled, measured, worth_timing
from stmlang.ending import start

LARGEST_REGRET = 1.2
QUICK = 12
SECONDS = 1.0
"""A problem's candidates are timed about so long."""


@dataclass(frozen=True)
class Row:
    """A problem: what was chosen, what was the fastest, and their seconds for a call."""

    name: str
    choice: str
    best: str
    seconds: float
    least: float

    @property
    def regret(self) -> float:
        return self.seconds / self.least


def row_of(case: Case, session: Session, choice: str) -> Row:
    """What a session says of a choice."""
    best = min(session, key=lambda label: session[label].usual)
    return Row(case.name, choice, best, session[choice].usual, session[best].usual)


def rows_of(samples: Samples, cases: Sequence[Case], keep: bool) -> list[Row]:
    """A row for each case, timed where that has not been done yet."""
    rows: list[Row] = []
    for case in cases:
        plan = compiled(case).plan
        choice = plan.chosen.candidate.label
        known = [session for session in samples.cases.get(case.name, ()) if choice in session] if keep else []
        if not known:
            session = measured(case, worth_timing(plan), SECONDS)
            samples.add(case, session)
            known = [session]
        rows.append(row_of(case, known[-1], choice))
        print(f"{rows[-1].regret:5.2f}  {case.name}: {choice}", file=sys.stderr, flush=True)
    return rows


def show(rows: Sequence[Row]) -> None:
    """The regret in words, and every problem above the largest that it should have."""
    print(summary({row.name: row.regret for row in rows}))
    for row in sorted(rows, key=lambda row: -row.regret):
        if row.regret > LARGEST_REGRET:
            print(
                f"regret {row.regret:.2f}: {row.name}: chose {row.choice} ({row.seconds * 1e3:.2f} ms), "
                f"{row.best} takes {row.least * 1e3:.2f} ms"
            )


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the file, print what is above."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret", description="The planner's choice against the best.")
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK} problems")
    parser.add_argument("--keep", action="store_true", help="do not measure again what was measured before")
    parser.add_argument("--out", type=Path, default=Path("build/bench/regret.json"), help="file to write")
    options = parser.parse_args(arguments)
    cases = held_out_cases()
    cases = cases[:: -(-len(cases) // QUICK)] if options.quick else cases
    samples = Samples.read(options.out.with_name(f"{options.out.stem}-samples.json"))
    if not options.keep:
        samples.cases.clear()
    rows = rows_of(samples, cases, options.keep)
    show(rows)
    write_rows([{**asdict(row), "regret": row.regret} for row in rows], options.out)
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    start(main, "benchmarks.regret")
