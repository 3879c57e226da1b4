"""What a strategy is to the program that uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Array, Float

from stmlang.cost.problem import Problem
from stmlang.cost.settings import Settings
from stmlang.graph.dag import DAG
from stmlang.lower.operands import Operands

Tables = Any
"""A strategy's index tables: a pytree of integer arrays, computed on the host, given to the program as an argument. None where
there are none, and lists of arrays where there may be none: `eqx.tree_at` takes empty tuples for leaves."""

EdgeStates = Float[Array, "direction head edge track key value"]
"""The states of a bundle's open edges in the order of `DAG.entering` or `DAG.leaving`, on a regular topology in that of its
lines: see `stmlang.lower.block_recurrence`."""


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
    return None


class Call(NamedTuple):
    """An evaluation in all directions: for each bundle of them what is fixed, its tables, its operands, and the states that
    enter, None where all of them are zero. `leaving` says whether the states that leave are asked for, `summed` whether
    directions are added up."""

    contexts: Sequence[LoweringContext]
    tables: Sequence[Tables]
    operands: Sequence[Operands]
    entering: Sequence[EdgeStates] | None
    leaving: bool
    summed: bool


class Result(NamedTuple):
    """What nodes read of each other, in declared coordinates, one entry in place of all directions where they are summed, with
    the direct term where the operands have its gate; and, where asked for, the states that leave each bundle."""

    outputs: Float[Array, "direction head *nodes *read value"]
    leaving: Sequence[EdgeStates]


@dataclass(frozen=True)
class Lowering:
    """A strategy as functions of arrays; what it offers and needs stands in its `Strategy`. `gating`, of one that offers it, is
    the gating matrix of a bundle of directions, `(direction, head, source, target)` in declared coordinates, nothing of the
    direct gate in it. `stmlang.lower.adapters` makes these of functions that know one direction or one block."""

    tables: Callable[[LoweringContext], Tables]
    run: Callable[[Call], Result]
    gating: Callable[[LoweringContext, Tables, Operands], Array] | None = None
