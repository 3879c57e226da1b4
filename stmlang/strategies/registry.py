"""Every strategy the planner knows. A new one is a file beside these and a line in this list; earlier ones win ties."""

from __future__ import annotations

from stmlang.cost.candidate import Strategy
from stmlang.strategies.chunkwise import cost as chunkwise
from stmlang.strategies.delta import cost as delta
from stmlang.strategies.dense import cost as dense
from stmlang.strategies.dense_nodes import cost as dense_nodes
from stmlang.strategies.impulse import cost as impulse
from stmlang.strategies.linear import cost as linear
from stmlang.strategies.nodes import cost as nodes
from stmlang.strategies.packed import cost as packed
from stmlang.strategies.packed_nodes import cost as packed_nodes
from stmlang.strategies.parallel import cost as parallel
from stmlang.strategies.raster import cost as raster
from stmlang.strategies.recurrent import cost as recurrent
from stmlang.strategies.rows import cost as rows
from stmlang.strategies.separable import cost as separable

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
