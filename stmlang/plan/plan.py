"""What the planner decided, and everything it weighed. Plain values only, so that a plan can be stored in an artifact."""

from __future__ import annotations

from dataclasses import dataclass, field

from stmlang.cost import units
from stmlang.cost.candidate import Rejection
from stmlang.cost.problem import Problem
from stmlang.cost.roofline import Estimate
from stmlang.cost.settings import ConfigValue, Settings, settings_dict
from stmlang.cost.target import Target
from stmlang.plan.tuned import Measured
from stmlang.scan.scan import own_inputs
from stmlang.source import short


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The problem in numbers. `memory_limit` is the one that was applied, in bytes."""

    scan: str
    axes: tuple[int, ...] | None
    nodes: int
    edges: int
    line_edges: int
    levels: int
    heads: int
    key: int
    value: int
    track: int
    directions: int
    dtype: str
    mode: str
    batch: int
    memory_limit: int
    writes: int = 1
    reads: int = 1
    steps: int = 1
    own: str = ""
    """The inputs of which each direction has one of its own, as a spec says them: `q k v`."""

    @classmethod
    def of(cls, problem: Problem, target: Target) -> Circumstances:
        counts, scan = problem.counts, problem.scan
        return cls(
            scan=scan.name,
            axes=problem.axes,
            nodes=counts.nodes,
            edges=counts.edges,
            line_edges=counts.line_edges,
            levels=counts.levels,
            heads=scan.heads,
            key=scan.key,
            value=scan.value,
            track=scan.track,
            directions=problem.directions,
            dtype=problem.dtype,
            mode=problem.mode,
            batch=problem.batch,
            memory_limit=memory_limit(problem, target),
            writes=scan.writes,
            reads=scan.reads,
            steps=scan.steps,
            own=" ".join(own_inputs(scan)),
        )


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place. `fits` the memory limit; `why` it lost, empty for the one chosen."""

    estimate: Estimate
    fits: bool
    why: str


@dataclass(frozen=True, slots=True)
class Tuning:
    """What `stmlang tune` has to do with a choice. If `used`, it follows measurements: `measured` in the order of prediction,
    `predicted` the label of what would have been chosen without them, and `speedup` how much faster the choice is (None if
    the numbers of `predicted` were wrong). If not, `notes` say of each result for the same scan why not."""

    used: bool = False
    predicted: str = ""
    speedup: float | None = None
    measured: tuple[Measured, ...] = ()
    checked: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The choice. `ranked` holds every candidate, the chosen one among them, those that fit first and the fastest first.
    `forced` if the strategy was asked for by name."""

    chosen: Estimate
    ranked: tuple[Ranked, ...]
    rejections: tuple[Rejection, ...]
    circumstances: Circumstances
    target: Target
    forced: bool
    tuning: Tuning = field(default_factory=Tuning)

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return (
            f"<Plan of {self.circumstances.scan} on {self.target.name}: {self.chosen.candidate.label}, "
            f"{units.seconds(self.chosen.seconds)}, of {len(self.ranked)} candidates>"
        )

    @property
    def strategy(self) -> str:
        """The name of the chosen strategy, as in `stmlang.strategies.registry`."""
        return self.chosen.candidate.strategy

    @property
    def config(self) -> dict[str, ConfigValue]:
        """The chosen settings by name, such as `{"tile": (7, 7)}`."""
        return settings_dict(self.settings)

    @property
    def settings(self) -> Settings:
        """The chosen settings, of the strategy's own type."""
        return self.chosen.candidate.settings


def memory_limit(problem: Problem, target: Target) -> int:
    """The bytes that may be used: what was asked for, else what the target has."""
    return target.memory if problem.memory_limit is None else problem.memory_limit
