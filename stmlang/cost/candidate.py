"""One way to evaluate a scan, with what it costs, or the reason why it cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stmlang.source import short

if TYPE_CHECKING:
    from stmlang.cost.problem import Problem

ConfigValue = int | tuple[int, ...]
Config = tuple[tuple[str, ConfigValue], ...]
"""A strategy's settings as sorted pairs, so that they can be compared and hashed: `(("tile", (7, 7)),)`."""


def freeze(config: Mapping[str, ConfigValue]) -> Config:
    """A mapping as sorted pairs."""
    return tuple(sorted(config.items()))


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the program that is limited by one thing: matrix products or elementwise work, or the bytes either moves.

    `flops` and `bytes` count all heads, directions and the batch; `steps` are sequential steps of a device loop, `ops` the
    dispatched operations outside of loops, `products` the separate matrix products in batched ones, which cost something each
    where a batch is a loop.
    """

    name: str
    kind: Literal["matmul", "vector"]
    flops: int
    bytes: int
    steps: int = 0
    ops: int = 0
    products: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A strategy with its settings and costs. `memory_forward` is the peak in bytes of an inference call, `memory_backward`
    that of a forward and a backward pass together; both hold inputs and outputs. `op_count` and `op_count_backward` count the
    instructions of the program before XLA, for inference and for training, and so tell the compile time."""

    strategy: str
    config: Config
    forward: tuple[Stage, ...]
    backward: tuple[Stage, ...]
    memory_forward: int
    memory_backward: int
    op_count: int
    op_count_backward: int

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<Candidate {self.label}>"

    @property
    def label(self) -> str:
        """`chunkwise tile=7x7`."""
        words = [f"{key}={'x'.join(map(str, value)) if isinstance(value, tuple) else value}" for key, value in self.config]
        return " ".join([self.strategy, *words])

    def stages(self, training: bool) -> tuple[Stage, ...]:
        """All stages of a call in a mode."""
        return self.forward + self.backward if training else self.forward

    def memory(self, training: bool) -> int:
        """Peak bytes in a mode."""
        return self.memory_backward if training else self.memory_forward

    def ops(self, training: bool) -> int:
        """Instructions of the program in a mode."""
        return self.op_count_backward if training else self.op_count


@dataclass(frozen=True, slots=True)
class Rejection:
    """A strategy that cannot evaluate this scan, and why, as the end of the sentence "cannot be used: ..."."""

    strategy: str
    reason: str


@dataclass(frozen=True, slots=True)
class Strategy:
    """What a file of `plan/candidates` offers the planner: `propose` lists the settings worth costing, or says why there are
    none; `build` costs settings that were asked for, which may be others than those proposed. `at_run_time` says that its
    tables can have shapes that many graphs share."""

    name: str
    summary: str
    propose: Callable[[Problem], Iterable[Candidate | Rejection]]
    build: Callable[[Problem, Mapping[str, ConfigValue]], Candidate | Rejection]
    at_run_time: bool = False
