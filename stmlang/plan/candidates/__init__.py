"""Every strategy the planner knows. A new one is a file beside these and a line in this list; earlier ones win ties."""

from __future__ import annotations

from stmlang.plan.candidate import Strategy
from stmlang.plan.candidates import (
    chunkwise,
    delta,
    dense,
    dense_nodes,
    impulse,
    linear,
    nodes,
    packed,
    packed_nodes,
    parallel,
    raster,
    recurrent,
    rows,
    separable,
)

CANDIDATES: tuple[Strategy, ...] = (
    recurrent.STRATEGY,
    parallel.STRATEGY,
    chunkwise.STRATEGY,
    dense.STRATEGY,
    nodes.STRATEGY,
    dense_nodes.STRATEGY,
    linear.STRATEGY,
    impulse.STRATEGY,
    raster.STRATEGY,
    rows.STRATEGY,
    separable.STRATEGY,
    delta.STRATEGY,
    packed.STRATEGY,
    packed_nodes.STRATEGY,
)
