"""The recurrence on node states, level by level, for transitions of rank one: no line graph is formed."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array

from stmlang.cost.sweeps import node_profile, step_shape
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.level_recurrence import Levels, node_levels_tables, run_levels
from stmlang.lower.node_factors import Single, edge_factors, single_tables
from stmlang.lower.operands import Operands
from stmlang.lower.strategy import LoweringContext, Tables


class Walks(NamedTuple):
    levels: Levels
    single: Single | None


def _tables(context: LoweringContext) -> Tables:
    shape = step_shape(context.problem, node_profile(context.problem, context.dag))
    return Walks(node_levels_tables(context.dag, shape), single_tables(context))


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del context
    walks: Walks = tables
    return run_levels(walks.levels, operands, edge_factors(walks.single, operands), initial)


LOWERING = direction_by_direction(_tables, _run)
