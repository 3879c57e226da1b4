"""Times of the candidates of a problem, all in turns in one process, and a file that keeps them.

    build/fit/samples.json   {"schema": 2, "cases": {NAME: [session, ...]}, "programs": {NAME: {LABEL: {...}}}}

A session is what was timed together: `{"LABEL": {"strategy", "config", "seconds": [...], ...}}`. Of programs
only the instructions were counted, which takes no compiling.
"""

from __future__ import annotations

import gc
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np

import stmlang
from benchmarks.problems import STATED, Case, random_edges
from stmlang.cost.candidate import Candidate
from stmlang.cost.settings import Config, freeze, settings_dict
from stmlang.graph import batch as batch_of
from stmlang.graph import from_edges
from stmlang.plan.plan import Plan
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.measure import scan_arguments, scan_function
from stmlang.source.writing import written_whole

SCHEMA = 2
NEAR, NEAREST = 2.0, 5
"""Candidates that are predicted to take at most so many times what the best does are timed, at most so many of them."""
ALIKE = 4
"""At most so many of them are of one strategy."""
FAR, FARTHEST = 3.0, 1
"""The best of every other strategy is timed too if it is predicted to take at most so many times as long, so many of them."""
DROPPED = 4.0
"""What turns out to take so many times what the fastest does is timed once or twice, and no more."""
SHORTEST = 2e-3
"""Seconds that a sample lasts at least."""
TURNS = 12
SECONDS = 2.0
"""After so many no new turn begins, but there are `FEWEST` at least."""
FEWEST = 3
MOST_BYTES = 3 * 10**9
COMPILERS = 4
"""Programs that are compiled at a time."""


@dataclass(frozen=True)
class Sample:
    """A candidate's seconds for a call, a number for each turn; instructions of its program before XLA; seconds to compile."""

    strategy: str
    config: Config
    seconds: tuple[float, ...]
    instructions: int
    compile_seconds: float

    @property
    def usual(self) -> float:
        """Seconds of a call: the lower quartile of the turns."""
        return float(np.quantile(self.seconds, 0.25))


Session = Mapping[str, Sample]


@dataclass
class Samples:
    """All sessions by the name of the case; written to `path` after each."""

    path: Path
    cases: dict[str, list[Session]] = field(default_factory=dict[str, list[Session]])
    programs: dict[str, Session] = field(default_factory=dict[str, Session])

    @classmethod
    def read(cls, path: Path) -> Samples:
        """What was written earlier, nothing if there is no file."""
        if not path.exists():
            return cls(path)
        values = json.loads(path.read_bytes())
        if values["schema"] != SCHEMA:
            raise ValueError(f"{path} has another schema: move it away")
        cases = {name: [_session(session) for session in sessions] for name, sessions in values["cases"].items()}
        return cls(path, cases, {name: _session(session) for name, session in values["programs"].items()})

    def write(self) -> None:
        """The file, whole or not at all."""
        cases = {
            name: [{label: asdict(sample) for label, sample in session.items()} for session in sessions]
            for name, sessions in self.cases.items()
        }
        programs = {
            name: {label: asdict(sample) for label, sample in by_label.items()} for name, by_label in self.programs.items()
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(self.path) as file:
            file.write(json.dumps({"schema": SCHEMA, "cases": cases, "programs": programs}).encode())

    def add(self, case: Case, session: Session) -> None:
        self.cases.setdefault(case.name, []).append(session)
        self.write()


def _session(values: Mapping[str, Any]) -> Session:
    def config(pairs: Any) -> Config:
        return tuple((str(name), tuple(cast(list[int], value)) if isinstance(value, list) else value) for name, value in pairs)

    return {
        label: Sample(
            entry["strategy"],
            config(entry["config"]),
            tuple(entry["seconds"]),
            entry["instructions"],
            entry["compile_seconds"],
        )
        for label, entry in values.items()
    }


def counted(case: Case, candidate: Candidate) -> Sample:
    """The instructions of a candidate's program before XLA."""
    *_, instructions = lowered(case, candidate)
    return Sample(candidate.strategy, freeze(settings_dict(candidate.settings)), (), instructions, 0.0)


def compiled(case: Case, strategy: str | None = None, config: Config | None = None) -> CompiledScan:
    """The case compiled for the CPU, as planned without what `stmlang tune` may have found, or as asked for."""
    asked: dict[str, Any] = {"tuned": False} if strategy is None else {"strategy": strategy, "config": dict(config or ())}
    shape = case.shape
    sizes: dict[str, Any] = {} if shape.family in STATED else dict(shape.sizes)
    scan: Any = stmlang.compile(
        shape.spec,
        target="cpu",
        mode=case.mode,
        batch=case.batch,
        heads=case.heads,
        key=case.key,
        value=case.key,
        **asked,
        **sizes,
    )
    if shape.graphs:
        dags = [from_edges(random_edges(shape.nodes, seed), nodes=shape.nodes).dag for seed in range(shape.graphs)]
        return scan.at(batch_of(dags))
    return scan


def worth_timing(plan: Plan) -> list[Candidate]:
    """The fastest by prediction, those that are predicted to take little longer, and the best of other strategies: of one at
    least, so that what was never fitted is not left alone."""
    estimates = [entry.estimate for entry in plan.ranked if entry.fits and entry.estimate.memory < MOST_BYTES]
    least = min(estimate.seconds for estimate in estimates)
    order = sorted(estimates, key=lambda estimate: estimate.seconds)
    near: list[Candidate] = []
    far: dict[str, Candidate] = {}
    counts = Counter[str]()
    for estimate in order:
        candidate = estimate.candidate
        if estimate.seconds <= NEAR * least and counts[candidate.strategy] < ALIKE and len(near) < NEAREST:
            near.append(candidate)
            counts[candidate.strategy] += 1
        elif estimate.seconds <= FAR * least and not counts[candidate.strategy]:
            far.setdefault(candidate.strategy, candidate)
    if not far and len(counts) == 1:
        others = (estimate.candidate for estimate in order if estimate.candidate.strategy not in counts)
        return near + list(others)[:FARTHEST]
    return near + list(far.values())[:FARTHEST]


def measured(case: Case, candidates: Sequence[Candidate], budget: float = SECONDS, turns: int = TURNS) -> Session:
    """All candidates timed in turns."""

    def prepared(candidate: Candidate) -> tuple[Callable[[], Any], int, float]:
        return _program(case, candidate)

    with ThreadPoolExecutor(COMPILERS) as pool:
        programs = dict(zip((candidate.label for candidate in candidates), pool.map(prepared, candidates), strict=True))
    times = timed({label: run for label, (run, *_) in programs.items()}, budget, turns)
    session: dict[str, Sample] = {}
    for candidate in candidates:
        _, instructions, spent = programs[candidate.label]
        config = freeze(settings_dict(candidate.settings))
        session[candidate.label] = Sample(candidate.strategy, config, tuple(times[candidate.label]), instructions, spent)
    programs.clear()
    jax.clear_caches()
    gc.collect()
    return session


def lowered(case: Case, candidate: Candidate) -> tuple[Any, tuple[Any, ...], int]:
    """A candidate's program before XLA, what it is called with, and its instructions."""
    op = compiled(case, candidate.strategy, freeze(settings_dict(candidate.settings)))
    arguments: tuple[Any, ...] = (op, scan_arguments(op, case.batch))
    if case.mode == "training":
        shape = op.signature.result if case.batch == 1 else (case.batch, *op.signature.result)
        arguments = (*arguments, jax.numpy.ones(shape, op.dtype))
    program: Any = jax.jit(scan_function(op, case.mode, case.batch)).lower(*arguments)
    return program, arguments, program.as_text().count(" = ")


def _program(case: Case, candidate: Candidate) -> tuple[Callable[[], Any], int, float]:
    """A call that waits for its result, the instructions of its program before XLA, and the seconds that compiling took."""
    start = time.perf_counter()
    program, arguments, instructions = lowered(case, candidate)
    call = program.compile()
    spent = time.perf_counter() - start
    return lambda: cast(Any, jax.block_until_ready(call(*arguments))), instructions, spent


def timed(calls: Mapping[str, Callable[[], Any]], seconds: float, turns: int) -> dict[str, list[float]]:
    """Seconds of each call in turns, every other turn backwards; those that are far slower than the fastest soon drop out."""
    start = time.perf_counter()
    for call in calls.values():
        call()
    times = {label: [_sample(call, 1)] for label, call in calls.items()}
    counts = {label: max(1, round(SHORTEST / durations[0])) for label, durations in times.items()}
    for turn in range(turns):
        if turn >= FEWEST and time.perf_counter() - start > seconds:
            break
        least = min(min(durations) for durations in times.values())
        order = [label for label, durations in times.items() if min(durations) <= DROPPED * least or turn == 0]
        for label in order if turn % 2 == 0 else reversed(order):
            times[label].append(_sample(calls[label], counts[label]))
    return times


def _sample(call: Callable[[], Any], count: int) -> float:
    """Seconds of a call, of several one after another."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count
