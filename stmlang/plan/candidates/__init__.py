"""Every strategy the planner knows. A new one is a file beside these and a line in this list; earlier ones win ties."""

from __future__ import annotations

from stmlang.plan.candidate import Strategy
from stmlang.plan.candidates import chunkwise, dense, impulse, linear, parallel, raster, recurrent

CANDIDATES: tuple[Strategy, ...] = (
    recurrent.STRATEGY,
    parallel.STRATEGY,
    chunkwise.STRATEGY,
    dense.STRATEGY,
    linear.STRATEGY,
    impulse.STRATEGY,
    raster.STRATEGY,
)
