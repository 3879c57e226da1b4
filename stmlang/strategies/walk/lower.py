"""Walk: the recurrence node by node, see `stmlang.lower.node_walk`."""

from __future__ import annotations

from typing import cast

from jaxtyping import Array

from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.node_walk import walked
from stmlang.lower.operands import Operands
from stmlang.lower.strategy import LoweringContext, Tables, no_tables
from stmlang.strategies.walk.settings import Walk


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    assert context.axes is not None
    return walked(operands, initial, context.axes, cast(Walk, context.settings).every)


LOWERING = direction_by_direction(no_tables, _run)
