"""A scan's time, compile time and memory beside softmax attention of the same size: what `stmlang bench` prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stmlang.compiler import Prepared
from stmlang.cost.roofline import Estimate
from stmlang.plan.choose import rechosen
from stmlang.plan.plan import Plan
from stmlang.runtime.compiled import compiled
from stmlang.runtime.measure import AttentionSize, Built, Timing, scan_program, softmax_program, time_interleaved

TIMING_SECONDS = 10.0
"""Timing one candidate takes no longer, save for a call that does."""
LONGEST = 5.0
"""Attention that is expected to take more seconds for a call is left out."""
FLOPS = 50e9
"""What attention is expected to compute in a second, on a machine that nothing is known of."""


@dataclass(frozen=True)
class Attention:
    """Softmax attention of a scan's size. Without a program `note` says why there is none."""

    program: Built | None
    note: str
    timing: Timing | None = None


@dataclass(frozen=True)
class Row:
    """One candidate in one mode. `ratio` is its time to attention's, `pace` to whatever all were run in turns with."""

    estimate: Estimate
    chosen: bool
    seconds: float
    pace: float
    ratio: float | None
    trace_seconds: float
    xla_seconds: float
    temporary_bytes: int


class Bench:
    """One mode of a scan. `rows()` measures candidate after candidate, the plan's choice first, each in turns with attention,
    or with the choice where there is no attention; what was yielded is in `done`."""

    def __init__(self, prepared: Prepared, plan: Plan, repeats: int, seed: int = 0) -> None:
        self.prepared, self.plan, self.repeats, self.seed = prepared, plan, repeats, seed
        self.attention = Attention(None, "not measured yet")
        self.done: list[Row] = []
        self._base: Built | None = None

    @property
    def mode(self) -> str:
        return self.prepared.problem.mode

    def candidates(self, every: bool) -> list[Estimate]:
        """The choice, and with `every` the others that fit the memory limit."""
        others = [entry.estimate for entry in self.plan.ranked if entry.fits and entry.estimate != self.plan.chosen]
        return [self.plan.chosen, *(others if every else ())]

    def rows(self, every: bool = False) -> Iterator[Row]:
        """Measure. It may be left at any time."""
        self.attention = self._attention()
        for estimate in self.candidates(every):
            row = self._row(estimate)
            self.done.append(row)
            yield row

    def regret(self) -> float | None:
        """The choice's time to that of the fastest measured; None while nothing is compared."""
        if len(self.done) < 2:
            return None
        return self.done[0].pace / min(row.pace for row in self.done)

    def _attention(self) -> Attention:
        """Whole where its pairs fit, else blockwise, else not at all."""
        problem = self.prepared.problem
        limit = self.plan.circumstances.memory_limit
        scan = problem.scan
        size = AttentionSize(problem.counts.nodes, problem.batch * scan.heads, scan.key, scan.value, problem.dtype)
        if size.flops(problem.mode) / FLOPS > LONGEST:
            return Attention(None, f"attention over {size.nodes:,} nodes would take too long")
        blockwise = size.pairs_bytes(problem.mode) > limit
        note = "blockwise, since its pairs do not fit the memory limit" if blockwise else ""
        return Attention(softmax_program(size, problem.mode, blockwise, self.seed), note)

    def _row(self, estimate: Estimate) -> Row:
        problem = self.prepared.problem
        op = compiled(self.prepared, rechosen(self.plan, estimate))
        program = scan_program(op, problem.mode, problem.batch, self.seed)
        attention = self.attention.program
        if self._base is None:
            self._base = attention or program
        calls = {"scan": program.run, "base": self._base.run}
        times = time_interleaved(calls, self.repeats, seconds=TIMING_SECONDS)
        if attention is not None and self.attention.timing is None:
            self.attention = replace(self.attention, timing=times["base"])
        pace = times["scan"].ratio(times["base"])
        return Row(
            estimate,
            chosen=estimate == self.plan.chosen,
            seconds=times["scan"].median,
            pace=pace,
            ratio=None if attention is None else pace,
            trace_seconds=program.trace_seconds,
            xla_seconds=program.xla_seconds,
            temporary_bytes=program.temporary_bytes,
        )
