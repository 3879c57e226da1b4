"""One way to evaluate a scan, with what it costs, or the reason why it cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from stmlang.cost.coefficients import ONCE, Weights
from stmlang.cost.settings import Settings, label, settings_dict
from stmlang.source import short


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy with its settings: all of a plan that a program is made from."""

    strategy: str
    settings: Settings

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<Choice {self.label}>"

    @property
    def label(self) -> str:
        """`chunkwise tile=7x7`."""
        return label(self.strategy, settings_dict(self.settings))


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the program, and what there is to do in it: matrix products or elementwise work.

    `flops` and `bytes` count all heads, directions and the batch, every number once; `spilled` are those bytes that do not stay
    in a cache until they are read again, `fresh` those whose memory is taken from the system anew; `steps` are sequential steps
    of a device loop, `ops` the dispatched operations, `products` the separate matrix products in batched ones, which cost
    something each where a batch is a loop. `weights` say what one of each takes, in multiples of the machine's rates.
    """

    name: str
    kind: Literal["matmul", "vector"]
    flops: int
    bytes: int
    spilled: int = 0
    fresh: int = 0
    steps: int = 0
    ops: int = 0
    products: int = 0
    weights: Weights = ONCE


@dataclass(frozen=True, slots=True)
class Candidate:
    """A strategy with its settings and costs. `memory_forward` is the peak in bytes of an inference call, `memory_backward`
    that of a forward and a backward pass together; both hold inputs and outputs. `op_count` and `op_count_backward` count the
    instructions of the program before XLA, for inference and for training, and so tell the compile time; they are a sum over
    `terms`, each times what the record says of it."""

    strategy: str
    settings: Settings
    forward: tuple[Stage, ...]
    backward: tuple[Stage, ...]
    memory_forward: int
    memory_backward: int
    op_count: int
    op_count_backward: int
    terms: Mapping[str, int] = field(default_factory=dict[str, int], compare=False, repr=False)

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<Candidate {self.label}>"

    @property
    def choice(self) -> Choice:
        """What is evaluated, without what it costs."""
        return Choice(self.strategy, self.settings)

    @property
    def label(self) -> str:
        """`chunkwise tile=7x7`."""
        return self.choice.label

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
