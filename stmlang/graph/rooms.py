"""A bucket for batches that nobody has seen yet: sizes are given, and what programs need room for besides follows by rule."""

from __future__ import annotations

from collections.abc import Mapping

from stmlang.graph.batch import SIZES, SPARE_EDGES, SPARE_NODES, Bucket
from stmlang.graph.capacity import EXPECTED_LARGEST, LARGEST_CELL, Capacity, Demand, power_above, spread_above
from stmlang.graph.packing import pieces
from stmlang.graph.refusal import refusal
from stmlang.source.suggest import did_you_mean
from stmlang.source.wording import listing

BESIDES = ("largest", "levels", "line_edges")
"""What a bucket by rule may be told beside its sizes: the nodes of its largest graph, its levels, and its line edges."""


def bucket_by_rule(sizes: Mapping[str, int], most: int) -> Bucket:
    """The bucket of these `nodes`, `edges` and `graphs`, padding included, with a room for graphs of at most `most` nodes.

    Where it is not said, the `largest` graph has twice the nodes of the mean, rounded up to a power of two; there are as many
    `levels` as it has nodes, up to 256, and twice as many `line_edges` as edges. What is needed beyond that a batch is refused
    for, with the number. Raises SpecError (STM3508) for a size that is missing, unknown or negative, and a bucket without room.
    """
    for name in sizes:
        if name not in (*SIZES, *BESIDES):
            help = did_you_mean(name, (*SIZES, *BESIDES)) or f"it has {listing([*SIZES, *BESIDES], 'and')}"
            raise refusal("STM3508", f"a bucket has no `{name}`", help)
    for name in SIZES:
        if name not in sizes:
            raise refusal("STM3508", f"a bucket needs its `{name}`", "such as `graphs=64,nodes=2048,edges=4096`")
    bucket = Bucket(sizes["nodes"], sizes["edges"], sizes["graphs"])
    nodes, edges = bucket.nodes - SPARE_NODES, bucket.edges - SPARE_EDGES
    if nodes < 1 or edges < 0 or bucket.graphs < 1:
        help = f"a bucket has room for padding too, {SPARE_NODES} nodes and {SPARE_EDGES} edge"
        raise refusal("STM3508", f"{bucket!r} has no room for a graph", help)
    asked = {name: Bucket(size, 0, 0).nodes for name, size in sizes.items() if name in BESIDES}
    largest = min(asked.get("largest", power_above(2 * -(-nodes // bucket.graphs))), most, nodes)
    levels = min(asked.get("levels", EXPECTED_LARGEST), largest)
    arcs = max(asked.get("line_edges", 2 * bucket.edges) - SPARE_EDGES, edges)
    graphs = _graphs(nodes, bucket.graphs, max(largest, 1))
    spread = spread_above(int(pieces([largest], LARGEST_CELL)[0]), 1)
    demand = Demand(max(edges, 1), arcs, max(levels, 1), graphs, spread)
    return Bucket(bucket.nodes, bucket.edges, bucket.graphs, Capacity.covering(bucket.nodes, bucket.edges, [demand]))


def _graphs(nodes: int, count: int, largest: int) -> tuple[int, ...]:
    """The nodes of graphs that fill a bucket: the largest, and the rest in equal parts."""
    if count == 1:
        return (largest,)
    rest = max(nodes - largest, 0)
    return (largest, *(min(largest, rest // (count - 1) + (number < rest % (count - 1))) for number in range(count - 1)))
