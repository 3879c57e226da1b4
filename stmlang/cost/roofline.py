"""The roofline: predicted time of a candidate on a target.

time = sum over stages of max(flops / peak, bytes / bandwidth)
       + steps * step overhead + ops * op overhead + products * product overhead
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
    """Where a stage's seconds go: `work` is the larger of `arithmetic` and `traffic`."""

    stage: Stage
    arithmetic: float
    traffic: float
    steps: float
    ops: float
    products: float

    @property
    def work(self) -> float:
        return max(self.arithmetic, self.traffic)

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
    return StageTime(
        stage,
        arithmetic=stage.flops / peak,
        traffic=stage.bytes / target.bandwidth,
        steps=stage.steps * target.step_overhead,
        ops=stage.ops * target.op_overhead,
        products=stage.products * target.product_overhead,
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
