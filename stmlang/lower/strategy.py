"""What a strategy is to the program that uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Array

from stmlang.cost.problem import Problem
from stmlang.cost.settings import Settings
from stmlang.graph.dag import DAG
from stmlang.lower.block import Block
from stmlang.lower.operands import Operands

Tables = Any
"""A strategy's index tables: a pytree of integer arrays, computed on the host, given to the program as an argument."""


@dataclass(frozen=True, eq=False)
class LoweringContext:
    """What is fixed when a strategy is lowered. `dag` points the way that the operands do; on a regular topology it stands for
    all directions, which are flips of it. `axes` are the sizes of a regular topology, else None.
    `settings` are of the strategy's own type."""

    problem: Problem
    dag: DAG
    settings: Settings

    @property
    def axes(self) -> tuple[int, ...] | None:
        return self.dag.regular


def no_tables(context: LoweringContext) -> Tables:
    """For a strategy that looks nothing up."""
    del context
    return ()


@dataclass(frozen=True)
class Whole:
    """A strategy that makes the whole DAG one block, so that directions can share one attention pass.

    `block(context, tables, operands)` has batch axes (direction, head), nodes in order of their number (regular: C order of the
    flipped grid), and borders in the order of `DAG.entering` and `DAG.leaving` (regular: see `stmlang.lower.block_recurrence`).

    Where `outputs` is given it takes the place of attention with the block's gating matrix, and the block is made only for
    states: `outputs(context, tables, operands)` is what nodes read of each other in declared coordinates, `(direction, head,
    *nodes, value)`, one direction in place of all where they are summed. A strategy with `direct` finds the direct gate in its
    operands where there is one to add, and adds it. One that is `uniform` reads the gates of one node and takes them for those
    of all, so that no node can be left out.
    """

    tables: Callable[[LoweringContext], Tables]
    block: Callable[[LoweringContext, Tables, Operands], Block]
    factored: bool = False
    outputs: Callable[[LoweringContext, Tables, Operands], Array] | None = None
    direct: bool = False
    uniform: bool = False


@dataclass(frozen=True)
class Stepwise:
    """A strategy that carries states. `run(context, tables, operands, initial)` returns the outputs without the direct term,
    `(direction, head, *nodes, value)`, and the final state; states are `(direction, head, open edges, track, key, value)`."""

    tables: Callable[[LoweringContext], Tables]
    run: Callable[[LoweringContext, Tables, Operands, Array], tuple[Array, Array]]
    factored: bool = False
    delta: bool = False


Outputs = Callable[[Sequence[LoweringContext], Sequence[Tables], Sequence[Operands], bool], Array]


@dataclass(frozen=True)
class Closed:
    """A strategy for graphs without open edges, and so without states to carry. `outputs(contexts, tables, operands, summed)`
    is what nodes read in all directions, each with its own of the three: `(direction, head, *nodes, value)`, the sum in place
    of all directions if `summed`, without the direct term."""

    tables: Callable[[LoweringContext], Tables]
    outputs: Outputs
    factored: bool = False


Lowering = Whole | Stepwise | Closed
"""A `factored` one works with the factors of a rank-one transition, a `delta` one with those of a transition of the delta
rule's form, and finds them in its operands."""
