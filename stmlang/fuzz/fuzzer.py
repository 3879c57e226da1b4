"""Looking for what the checks object to: batches of examples, counted, and small counterexamples.

An example is a trial, a way to evaluate it and a check, tried on many sets of values. Trials come from hypothesis, by number. A
batch plans a pool of them and deals its examples out so that every strategy, and of each strategy every check, comes up about
equally often; where no trial of the pool has one of the strategies, it looks further. Compiling takes most of the time, so a
trial that is compiled for a way is put to several checks, and a program to all sets of values. A batch depends on its seed and
number alone, so that the same examples are tried however many processes share the work.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Protocol

from hypothesis.strategies import SearchStrategy

from stmlang.fuzz import saved
from stmlang.fuzz.counts import Counts
from stmlang.fuzz.examples import example, shrink
from stmlang.fuzz.jobs import FRONT_END, PLANNER, PLANS, Draw, Evaluate, Evaluator, Job, Outcome, Plan
from stmlang.fuzz.saved import Saved
from stmlang.fuzz.trial import Trial, Way
from stmlang.strategies.registry import without_kernels

BATCH, TOGETHER = 96, 6
"""Examples in a batch, and those of one trial and way."""
POOL = 12
"""Trials that a batch plans at first."""
SEARCH, FAR_SEARCH = 60, 180
"""Trials that it looks at besides, for strategies that none of the pool can be evaluated by; for those asked for by name."""
DRAWS, FEW_DRAWS = 64, 8
"""Sets of values that a compiled program is tried on; those of a check that compiles nothing."""
TEXTS = 2
"""Texts in a batch, each put to all checks of texts."""
OPTIMIZED_EVERY = 4
"""One batch in so many lets XLA optimize, as users do; the others compile quickly."""
ATTEMPTS, SHRINK_SECONDS = 150, 60.0
"""Examples that shrinking tries, and how much longer than the time that was given it may take; how long, where none was."""


def strategy_names() -> tuple[str, ...]:
    """All that is tried: every strategy but those of kernels, and the front end."""
    return (*(entry.name for entry in without_kernels()), FRONT_END.strategy)


@dataclass(frozen=True)
class Source:
    """Where trials come from, and texts, if there are to be any; a text is a trial with nothing but a text."""

    trials: SearchStrategy[Trial]
    texts: SearchStrategy[Trial] | None = None


def generated() -> Source:
    """Specs and texts as `stmlang.fuzz.generators` makes them."""
    from stmlang.fuzz.generators import trials
    from stmlang.fuzz.generators.texts import texts

    def as_trial(content: bytes) -> Trial:
        return Trial(content.decode("utf-8", "surrogateescape"), "texts", "", 0)

    return Source(trials(), texts().map(as_trial))


@dataclass(frozen=True)
class Task:
    """What is to be tried: `strategies` and `checks` are those wanted, `checks` of compiled scans, `text_checks` of texts."""

    source: Source
    seed: int
    strategies: tuple[str, ...]
    checks: tuple[str, ...]
    text_checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """One that was tried. `number` is that of its trial under the task's seed, or of its text."""

    number: int
    job: Evaluate
    outcome: Outcome


Step = tuple[int, Job]
"""A job about the trial of a number."""


@dataclass
class _Pool:
    """Planned trials of a batch by number, with their ways."""

    trials: dict[int, Trial] = field(default_factory=dict[int, Trial])
    ways: dict[int, list[Way]] = field(default_factory=dict[int, list[Way]])

    def having(self, strategy: str) -> list[int]:
        return [number for number, ways in self.ways.items() if any(way.strategy == strategy for way in ways)]


def batch(task: Task, number: int, quota: int = BATCH) -> Generator[Step, Any, None]:
    """The jobs of a batch, to be answered one by one with their replies: up to `quota` examples that apply."""
    optimized = number % OPTIMIZED_EVERY == OPTIMIZED_EVERY - 1
    quota -= yield from _texts(task, number, quota)
    if quota <= 0 or not task.checks:
        return
    pool = yield from _pool(task, number, quota)
    tally = _Tally(task, pool, random.Random(f"{task.seed}/{number}/order"))
    for _ in range(quota):  # groups; the last ones may find nothing that applies
        if quota <= 0 or not tally.strategies:
            return
        trial, way = tally.next()
        applied = 0
        for check in tally.due(way.strategy):
            outcome: Outcome = yield trial, Evaluate(check, pool.trials[trial], way, optimized, draws_of(check))
            applied += outcome.kind != "skipped"
            tally.note(way.strategy, check)
            if applied >= min(TOGETHER, quota):
                break
        quota -= applied


def draws_of(check: str) -> int:
    """How many sets of values a check of a compiled scan is given."""
    return FEW_DRAWS if check == "oracles" else DRAWS


def _texts(task: Task, number: int, quota: int) -> Generator[Step, Any, int]:
    """The checks of texts, and how many there were."""
    texts, tried = task.source.texts, 0
    if texts is None or FRONT_END.strategy not in task.strategies:
        return 0
    for place in range(number * TEXTS, number * TEXTS + TEXTS):
        text = example(texts, task.seed, place)
        if text is not None:
            for check in task.text_checks[: quota - tried]:
                yield place, Evaluate(check, text, FRONT_END)
                tried += 1
    return tried


def _pool(task: Task, number: int, quota: int) -> Generator[Step, Any, _Pool]:
    """Trials for a batch, their ways narrowed to the strategies wanted."""
    pool, missing = _Pool(), set(task.strategies) - {FRONT_END.strategy}
    size, every = min(POOL, quota), len(missing) == len(without_kernels())
    for place in range(POOL + (SEARCH if every else FAR_SEARCH)):
        if len(pool.trials) >= size and not missing:
            break
        index = number * (POOL + FAR_SEARCH) + place
        trial = example(task.source.trials, task.seed, index)
        if trial is None:
            continue
        ways: list[Way] = yield index, Plan(trial)
        if not ways:
            yield index, Evaluate(PLANS, trial, PLANNER)
        own = [way for way in ways if way.strategy in task.strategies]
        brought = {way.strategy for way in own} & missing
        if own and (len(pool.trials) < size or brought):
            pool.trials[index], pool.ways[index] = trial, own
            missing -= brought
    return pool


@dataclass
class _Tally:
    """What a batch has tried, and so what is due. Ties are broken by an order that is shuffled for each batch."""

    task: Task
    pool: _Pool
    order: random.Random
    tried: Counter[tuple[str, ...]] = field(default_factory=Counter[tuple[str, ...]])
    used: Counter[int] = field(default_factory=Counter[int])
    settings: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])

    def __post_init__(self) -> None:
        shuffled = self.order.sample(self.task.strategies, len(self.task.strategies))
        self.strategies = [name for name in shuffled if self.pool.having(name)]
        self.checks = self.order.sample(self.task.checks, len(self.task.checks))

    def next(self) -> tuple[int, Way]:
        """The trial and way that is due."""
        strategy = min(self.strategies, key=lambda name: self.tried[(name,)])
        trial = min(self.pool.having(strategy), key=lambda number: self.used[number])
        own = [way for way in self.pool.ways[trial] if way.strategy == strategy]
        place = min(range(len(own)), key=lambda place: self.settings[strategy, place])
        self.used[trial] += 1
        self.settings[strategy, place] += 1
        return trial, own[place]

    def due(self, strategy: str) -> list[str]:
        """All checks, the one that is due first for a strategy first."""
        return sorted(self.checks, key=lambda name: (self.tried[strategy, name], self.tried["", name]))

    def note(self, strategy: str, check: str) -> None:
        """Count a check as tried, whether it applied or not."""
        self.tried.update([(strategy,), (strategy, check), ("", check)])


# --- running ---------------------------------------------------------------------------------------------------------


class Hand(Evaluator, Protocol):
    """An evaluator that works beside this process."""

    connection: Any
    deadline: float

    def send(self, job: Job) -> None:
        """Begin a job."""
        ...

    def receive(self) -> Any:
        """The reply to the job that was begun, waiting for it."""
        ...

    def spared(self) -> bool:
        """Whether a job may go on past the deadline, which is moved then."""
        ...


@dataclass(frozen=True)
class Kept:
    """A finding as it was saved, the smallest so far."""

    saved: Saved
    path: Path | None


class Fuzzer:
    """Works off batches until `examples` were tried or `seconds` are over.

    The first finding of each check, strategy and manner is saved to `folder` at once (nowhere if None), and again whenever
    shrinking makes it smaller: `kept` holds them. The others count. `counts` and `kept` are right at any time, so `run` may be
    left, or interrupted, without losing anything.
    """

    def __init__(self, task: Task, folder: Path | None, examples: int | None, seconds: float | None) -> None:
        self.task, self.folder = task, folder
        self.examples, self.seconds = examples, seconds
        self.counts = Counts()
        self.kept: dict[tuple[str, str, str], Kept] = {}
        self._end = float("inf")
        self._batches = self._planned()

    def run(self, hands: Sequence[Hand]) -> Iterator[Example]:
        """Example after example, those that do not apply included, in the order in which they are done."""
        self._end = float("inf") if self.seconds is None else time.monotonic() + self.seconds
        lanes: dict[int, Generator[Step, Any, None]] = {}
        steps: dict[int, Step] = {}
        for place, hand in enumerate(hands):
            self._next(place, hand, lanes, steps, None)
        while steps:
            for place in _ready({place: hands[place] for place in steps}):
                hand, (number, job) = hands[place], steps[place]
                reply = hand.receive()
                if isinstance(job, Evaluate):
                    tried = Example(number, job, reply)
                    self._note(tried, hand)
                    yield tried
                self._next(place, hand, lanes, steps, reply)

    def alone(self, evaluator: Evaluator) -> Iterator[Example]:
        """The same, with one evaluator that works in this process."""
        for lane in self._batches:
            reply: Any = None
            while (step := _step(lane, reply)) is not None:
                number, job = step
                reply = evaluator.ask(job)
                if isinstance(job, Evaluate):
                    tried = Example(number, job, reply)
                    self._note(tried, evaluator)
                    yield tried

    def _planned(self) -> Iterator[Generator[Step, Any, None]]:
        number, left = 0, self.examples
        while left is None or left > 0:
            quota = BATCH if left is None else min(BATCH, left)
            yield batch(self.task, number, quota)
            number, left = number + 1, None if left is None else left - quota

    def _next(
        self, place: int, hand: Hand, lanes: dict[int, Generator[Step, Any, None]], steps: dict[int, Step], reply: Any
    ) -> None:
        """Give a hand its next job, of its batch or another one; none where all is done or time is up."""
        steps.pop(place, None)
        while time.monotonic() < self._end:
            if place not in lanes:
                lane = next(self._batches, None)
                if lane is None:
                    return
                lanes[place], reply = lane, None
            step = _step(lanes[place], reply)
            if step is not None:
                steps[place] = step
                hand.send(step[1])
                return
            del lanes[place]

    def _note(self, tried: Example, evaluator: Evaluator) -> None:
        self.counts.note(tried.job, tried.outcome)
        job, outcome = tried.job, tried.outcome
        key = (job.check, job.way.strategy, outcome.manner)
        if outcome.finding is None or key in self.kept:
            return
        job, outcome = _singled_out(job, outcome, evaluator)
        name = saved.name_of(job.check, job.way, job.trial)
        self._keep(key, name, job, outcome, evaluator)
        self._shrink(key, name, tried, evaluator)

    def _keep(self, key: tuple[str, str, str], name: str, job: Evaluate, outcome: Outcome, evaluator: Evaluator) -> None:
        """Keep the finding of a job of one draw."""
        assert outcome.finding is not None
        numbers = None if job.way in (FRONT_END, PLANNER) else evaluator.ask(Draw(job.trial))
        record = Saved(job.trial, job.way, outcome.finding, job.optimized, numbers)
        self.kept[key] = Kept(record, None if self.folder is None else saved.keep(self.folder, name, record))

    def _shrink(self, key: tuple[str, str, str], name: str, tried: Example, evaluator: Evaluator) -> None:
        """Replace what was kept by ever smaller trials that fail in the same way."""
        _, strategy, manner = key
        end = (self._end if isfinite(self._end) else time.monotonic()) + SHRINK_SECONDS

        def fails(trial: Trial) -> bool:
            if time.monotonic() > end:
                return False
            for way in self._ways(trial, strategy, tried.job.way, evaluator):
                job = replace(tried.job, trial=trial, way=way)
                outcome: Outcome = evaluator.ask(job)
                if outcome.manner == manner:
                    self._keep(key, name, *_singled_out(job, outcome, evaluator), evaluator)
                    return True
            return False

        source = self.task.source.texts if tried.job.way == FRONT_END else self.task.source.trials
        assert source is not None
        shrink(source, self.task.seed, tried.number, fails, ATTEMPTS)

    def _ways(self, trial: Trial, strategy: str, first: Way, evaluator: Evaluator) -> list[Way]:
        """The ways of a smaller trial that are tried: of the strategy, the same settings first."""
        if first in (FRONT_END, PLANNER):
            return [first]
        own = [way for way in evaluator.ask(Plan(trial)) if way.strategy == strategy]
        return sorted(own, key=lambda way: way.label != first.label)


def _singled_out(job: Evaluate, outcome: Outcome, evaluator: Evaluator) -> tuple[Evaluate, Outcome]:
    """The draw that a finding is about, as a job of its own. A process that died or hung does not say which it was: then the
    half of the draws is looked for in which it happens again, and the half of that; all of them remain where it does not."""
    trial = job.trial
    if outcome.kind not in ("died", "hung"):
        return replace(job, trial=replace(trial, draw=outcome.draw), draws=1), outcome
    while job.draws > 1:
        few = job.draws // 2
        second = replace(job.trial, draw=job.trial.draw + few)
        halves = (replace(job, draws=few), replace(job, trial=second, draws=job.draws - few))
        answers = ((half, evaluator.ask(half)) for half in halves)
        again = next(((half, answer) for half, answer in answers if answer.manner == outcome.manner), None)
        if again is None:
            break
        job, outcome = again
    return replace(job, draws=1), outcome


def _step(lane: Generator[Step, Any, None], reply: Any) -> Step | None:
    """The next job of a batch, None at its end."""
    try:
        return lane.send(reply)
    except StopIteration:
        return None


def _ready(hands: Mapping[int, Hand]) -> list[int]:
    """The hands that have answered, died or run out of time; waits for the first deadline at most."""
    left = max(0.0, min(hand.deadline for hand in hands.values()) - time.monotonic())
    heard = wait([hand.connection for hand in hands.values()], left)
    now = time.monotonic()
    return [place for place, hand in hands.items() if hand.connection in heard or (hand.deadline <= now and not hand.spared())]
