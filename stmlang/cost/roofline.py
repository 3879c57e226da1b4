"""The roofline: predicted time of a candidate on a target.

time = sum over stages of  a flops / peak  +  (t bytes + s spilled + f fresh) / bandwidth
                          +  c steps * step overhead  +  o ops * op overhead  +  p products * product overhead

with the stage's weights a, t, s, f, c, o, p from the platform's record. Arithmetic and traffic are added: on a CPU neither
hides the other, and a sum is what coefficients can be fitted to; where one does hide the other it is too much by a factor of
two at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from stmlang.cost import units
from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.source import short


@dataclass(frozen=True, slots=True)
class StageTime:
    """Where a stage's seconds go: `work` is `arithmetic` and `traffic`."""

    stage: Stage
    arithmetic: float
    traffic: float
    steps: float
    ops: float
    products: float

    @property
    def work(self) -> float:
        return self.arithmetic + self.traffic

    @property
    def total(self) -> float:
        return self.work + self.steps + self.ops + self.products


@dataclass(frozen=True, slots=True)
class Estimate:
    """A candidate costed for one problem and target. `memory` is the peak in the problem's mode."""

    candidate: Candidate
    times: tuple[StageTime, ...]
    seconds: float
    forward_seconds: float
    memory: int

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<Estimate {self.candidate.label}: {units.seconds(self.seconds)}, {units.size(self.memory)}>"

    op_count: int
    compile_seconds: float

    @property
    def flops(self) -> int:
        return sum(time.stage.flops for time in self.times)

    @property
    def bytes(self) -> int:
        return sum(time.stage.bytes for time in self.times)

    @property
    def steps(self) -> int:
        return sum(time.stage.steps for time in self.times)


def stage_time(stage: Stage, dtype: str, target: Target) -> StageTime:
    """One stage by the roofline. Elementwise float64 runs at half the float32 rate; bfloat16 is computed with in float32."""
    peak = (
        target.matmul["float64" if dtype == "float64" else "float32"]
        if stage.kind == "matmul"
        else target.vector / (2 if dtype == "float64" else 1)
    )
    weights = stage.weights
    moved = weights.traffic * stage.bytes + weights.spilled * stage.spilled + weights.fresh * stage.fresh
    return StageTime(
        stage,
        arithmetic=weights.arithmetic * stage.flops / peak,
        traffic=moved / target.bandwidth,
        steps=weights.steps * stage.steps * target.step_overhead,
        ops=weights.ops * stage.ops * target.op_overhead,
        products=weights.products * stage.products * target.product_overhead,
    )


def estimate(candidate: Candidate, problem: Problem, target: Target) -> Estimate:
    """The whole candidate in the problem's mode."""
    times = tuple(stage_time(stage, problem.dtype, target) for stage in candidate.stages(problem.training))
    op_count = candidate.ops(problem.training)
    return Estimate(
        candidate,
        times,
        seconds=sum(time.total for time in times),
        forward_seconds=sum(time.total for time in times[: len(candidate.forward)]),
        memory=candidate.memory(problem.training),
        op_count=op_count,
        compile_seconds=op_count * target.compile_seconds,
    )
