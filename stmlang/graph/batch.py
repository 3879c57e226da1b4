"""Several graphs side by side as one, filled up to one of few shapes.

A batch is the disjoint union of its graphs and of one more graph that is all padding: the nodes and edges by which the shape, a
*bucket*, exceeds the union. Pad edges join the first pad node to the last, so no real node or edge ever meets padding, and the
padded union is an acyclic graph like any other.

Buckets are few because sizes are rounded up to

    s(0) = 16,    s(k + 1) = the least multiple of 16 that is at least 1.5 s(k):    16, 32, 48, 80, 128, 192, 288, 432, ...

for nodes, of which two are always left for padding. Edges, of which one is, are in proportion: the bucket has 1, 9/8, 5/4, 3/2,
7/4 or 2 times as many as nodes, and so on by powers of two, the least ratio that is not below that of the batch. Graphs have a
power of two. What programs have room for beside these follows in the same way: `stmlang.graph.capacity`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from stmlang.graph.batchable import batchable, joined, refuse_above_bounds, sizes_of
from stmlang.graph.build import ragged_dag
from stmlang.graph.capacity import (
    ALIGNMENT,
    EIGHTHS,
    LARGEST_CELL,
    RATIO,
    RATIOS,
    Capacity,
    Demand,
    cell_size,
    power_above,
    ratio_above,
    size_above,
    spread_above,
)
from stmlang.graph.convert.finish import Converted
from stmlang.graph.dag import DAG
from stmlang.graph.features import filled, padded, split, stacked
from stmlang.graph.levels import node_levels
from stmlang.graph.limits import LARGEST
from stmlang.graph.line import line_count
from stmlang.graph.packing import Packing, packed, pieces
from stmlang.graph.refusal import kind_of, refusal, shown, whole
from stmlang.source import short

if TYPE_CHECKING:
    from jaxtyping import Bool, Int32, Int64, Shaped

SIZES = ("nodes", "edges", "graphs")
SPARE_NODES, SPARE_EDGES = 2, 1
"""There is always a pad edge, which leaves one pad node and enters another: what tables are filled up with."""


@dataclass(frozen=True)
class Bucket:
    """All that decides the shapes of a batch: how many nodes, edges and graphs its arrays have room for, padding included.

    `room` is what programs for its batches have room for, the same for all of them; where it is None that is chosen for each
    batch, by rule. Raises SpecError (STM3508) unless sizes are whole numbers from 0 to 2^31 - 1, and the room has the same.
    """

    nodes: int
    edges: int
    graphs: int
    room: Capacity | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in SIZES:
            size = whole(getattr(self, name))
            if size is None or not 0 <= size <= LARGEST:
                message = f"a bucket cannot have room for {shown(getattr(self, name))} {name}"
                raise refusal("STM3508", message, f"give a whole number from 0 to {LARGEST:,}")
            object.__setattr__(self, name, size)
        if self.room is not None and not _fits(self.room, self):
            message = f"programs for {self.nodes:,} nodes and {self.edges:,} edges cannot have the room {shown(self.room)}"
            raise refusal("STM3508", message, "cover batches, which finds it: `Bucket.covering(batches)`")

    @staticmethod
    def of(graphs: Iterable[DAG | Converted], *, ratio: float = RATIO) -> Bucket:
        """The bucket that `batch` chooses for these graphs. Raises SpecError as `batch` does."""
        return _bucket(batchable(graphs), ratio)

    @staticmethod
    def covering(shapes: Iterable[Bucket | Batch]) -> Bucket:
        """The least bucket that holds whatever one of these buckets, or those of these batches, holds.

        With it, `batch(graphs, bucket=...)` gives all batches of a data set one shape. Where all are batches that goes
        for everything that shapes of programs depend on: all of these batches, on any scan, share one program. Raises
        SpecError (STM3508) for what is neither.
        """
        to_cover = _to_cover(shapes)
        buckets = [shape.bucket if isinstance(shape, Batch) else shape for shape in to_cover]
        nodes, edges, graphs = (max((getattr(bucket, name) for bucket in buckets), default=0) for name in SIZES)
        needs = [shape.needs for shape in to_cover if isinstance(shape, Batch)]
        room = Capacity.covering(nodes, edges, needs) if to_cover and len(needs) == len(to_cover) else None
        return Bucket(nodes, edges, graphs, room)


class Arrays(NamedTuple):
    """The arrays of a batch, for programs: a pytree whose shapes are those of the bucket."""

    tail: Int32[np.ndarray, " edges"]
    head: Int32[np.ndarray, " edges"]
    graph: Int32[np.ndarray, " nodes"]
    node_mask: Bool[np.ndarray, " nodes"]
    edge_mask: Bool[np.ndarray, " edges"]
    graph_mask: Bool[np.ndarray, " graphs"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Graphs side by side. Node `n` of graph `i` is node `node_start[i] + n`, edge `e` of it `edge_start[i] + e`.

    Pad nodes and pad edges come last. `graph` is the number of the graph of each node, `bucket.graphs` for pad nodes: one past
    the end, where a segment sum drops them. Masks are true for what is real.
    """

    bucket: Bucket
    tail: Int32[np.ndarray, " edges"]
    head: Int32[np.ndarray, " edges"]
    graph: Int32[np.ndarray, " nodes"]
    node_mask: Bool[np.ndarray, " nodes"]
    edge_mask: Bool[np.ndarray, " edges"]
    graph_mask: Bool[np.ndarray, " graphs"]
    node_start: Int64[np.ndarray, " count_and_one"]
    edge_start: Int64[np.ndarray, " count_and_one"]
    dags: tuple[DAG, ...] = field(repr=False)

    __repr__ = short.fields

    @property
    def count(self) -> int:
        """How many graphs there are, padding left out."""
        return len(self.dags)

    @cached_property
    def dag(self) -> DAG:
        """The padded union as one graph with the one port `edge`, as many spare line edges as its room has, and its packing."""
        spare = self.room.line_edges - line_count(self._union)
        return replace(self._union, spare_line_edges=spare, packing=self.packing)

    @cached_property
    def _union(self) -> DAG:
        return replace(ragged_dag(self.bucket.nodes, self.tail, self.head), parts=self.dags)

    @property
    def arrays(self) -> Arrays:
        """What a compiled function may be given of the batch."""
        return Arrays(self.tail, self.head, self.graph, self.node_mask, self.edge_mask, self.graph_mask)

    @cached_property
    def room(self) -> Capacity:
        """What a program has to have room for: that of the bucket, else by rule."""
        return self.bucket.room or Capacity.of(self.bucket.nodes, self.bucket.edges, self.needs, self.packing)

    @cached_property
    def packing(self) -> Packing | None:
        """The graphs in the cells of the batch's room, or of the size that is its own where its bucket has no room; None where
        the room has no cells. What programs read of it are tables, made of this one value."""
        size = cell_size(self.needs.largest) if self.bucket.room is None else self.bucket.room.cell
        return packed(self.needs.graphs, size) if size else None

    @cached_property
    def needs(self) -> Demand:
        """What the graphs take."""
        edges, nodes = int(self.edge_start[-1]), self.bucket.nodes
        tail, head = self.tail[:edges], self.head[:edges]
        graphs = np.diff(self.node_start)
        rows = np.repeat(pieces(graphs, LARGEST_CELL), graphs)  # of each node and of what leaves it
        arcs = [np.maximum(np.bincount(end, minlength=nodes)[other], 1) for end, other in ((head, tail), (tail, head))]
        counted = [(rows, np.ones_like(rows)), *((rows[tail], count) for count in (np.ones_like(tail), *arcs))]
        spread = max(spread_above(int((row * count).sum()), int(count.sum())) for row, count in counted)
        levels = int(node_levels(self._union).max(initial=0)) + 1
        return Demand(edges, max(int(count.sum()) for count in arcs), levels, tuple(graphs.tolist()), spread)

    def nodes(self, features: Sequence[Any]) -> Shaped[np.ndarray, "nodes ..."]:
        """Node features of the batch, zero for padding, from those of each graph, `(its nodes, ...)`.

        Rows may have any shape, the same in all graphs; the type of the numbers is the one that holds those of all. An empty
        batch has rows of shape `(0,)`. Raises SpecError (STM3509) where the arrays do not fit.
        """
        return stacked("node", features, self.node_start, self.bucket.nodes)

    def edges(self, features: Sequence[Any]) -> Shaped[np.ndarray, "edges ..."]:
        """Edge features of the batch from those of each graph, `(its edges, ...)`, as its DAG orders them; else as `nodes`."""
        return stacked("edge", features, self.edge_start, self.bucket.edges)

    def graphs(self, values: Any) -> Shaped[np.ndarray, "graphs ..."]:
        """What there is one of for each graph, such as labels, from `(count, ...)`, zero for padding.

        Raises SpecError (STM3509) where the array does not fit.
        """
        return filled("graph", values, self.count, self.bucket.graphs)

    def split_nodes(self, array: Any) -> list[Any]:
        """An array with a row for each node of the bucket, cut into one for each graph, padding left out.

        Whatever can be cut by slices will do: numpy's arrays, JAX's, also under `jit`. Raises SpecError (STM3509) where the
        number of rows is wrong.
        """
        return split("node", array, self.node_start, self.bucket.nodes)

    def split_edges(self, array: Any) -> list[Any]:
        """An array with a row for each edge of the bucket, cut into one for each graph; else as `split_nodes`."""
        return split("edge", array, self.edge_start, self.bucket.edges)


def batch(
    graphs: Iterable[DAG | Converted],
    *,
    ratio: float = RATIO,
    bucket: Bucket | None = None,
    max_nodes: int | None = None,
    max_edges: int | None = None,
) -> Batch:
    """The graphs side by side, in a bucket that is chosen by the rule of this module with `ratio` for 1.5, or in `bucket`. Of a
    `Converted` it is its DAG.

    `max_nodes` and `max_edges` are the bounds of `dag(nodes <= N, edges <= E)`, for each graph. There may be no graph at all,
    and graphs may be empty.

    Raises SpecError: STM3501 for what is no DAG, STM3503 for edges that end nowhere, STM3505 for a cycle, STM3507 beyond a
    bound, STM3508 for a bucket that is too small, STM3510 for open edges and several ports, STM3303 beyond 2^31 nodes or edges.
    """
    dags = batchable(graphs)
    node_counts, edge_counts = sizes_of(dags)
    refuse_above_bounds(dags, max_nodes, max_edges)
    shape = _bucket(dags, ratio) if bucket is None else _given_bucket(bucket)
    node_start, edge_start = _starts(node_counts), _starts(edge_counts)
    nodes, edges, count = int(node_start[-1]), int(edge_start[-1]), len(dags)
    _refuse_small(shape, Bucket(nodes, edges, count))
    shift = np.repeat(node_start[:-1], edge_counts)
    union = Batch(
        bucket=shape,
        tail=padded(shift + joined([dag.tail for dag in dags]), shape.edges, nodes),
        head=padded(shift + joined([dag.head for dag in dags]), shape.edges, shape.nodes - 1),
        graph=padded(np.repeat(np.arange(count), node_counts), shape.nodes, shape.graphs),
        node_mask=np.arange(shape.nodes) < nodes,
        edge_mask=np.arange(shape.edges) < edges,
        graph_mask=np.arange(shape.graphs) < count,
        node_start=node_start,
        edge_start=edge_start,
        dags=tuple(dags),
    )
    if shape.room is not None:
        _refuse_small_room(shape.room, union)
    return union


def _bucket(dags: list[DAG], ratio: float) -> Bucket:
    """The bucket by rule for graphs that can stand in a batch."""
    _refuse_ratio(ratio)
    nodes, edges = (int(counts.sum()) for counts in sizes_of(dags))
    return bucket_for(nodes, edges, len(dags), ratio)


def bucket_for(nodes: int, edges: int, graphs: int, ratio: float = RATIO) -> Bucket:
    """The bucket by rule for graphs that have so many nodes and edges together."""
    needed = nodes + SPARE_NODES, edges + SPARE_EDGES
    size = size_above(needed[0], ratio)
    numerator, denominator = ratio_above(needed[1], needed[0], EIGHTHS)
    return Bucket(size, _aligned(size * numerator, denominator, needed[1]), power_above(graphs))


def _to_cover(shapes: object) -> list[Bucket | Batch]:
    """The buckets and batches of a list."""
    help = "give a list of batches, or of buckets: `Bucket.covering(batches)`"
    if isinstance(shapes, str) or not isinstance(shapes, Iterable):
        raise refusal("STM3508", f"a bucket covers a list of batches, not one {kind_of(shapes)}", help)
    listed: list[Any] = list(cast(Iterable[Any], shapes))
    for number, shape in enumerate(listed):
        if not isinstance(shape, Bucket | Batch):
            message = f"number {number} of what a bucket should cover is {kind_of(shape)}, and neither a batch nor a bucket"
            raise refusal("STM3508", message, help)
    return listed


def _fits(room: object, bucket: Bucket) -> bool:
    """Whether this is a room for the bucket's nodes and edges."""
    return isinstance(room, Capacity) and (room.nodes, room.edges) == (bucket.nodes, bucket.edges)


def _given_bucket(bucket: object) -> Bucket:
    if not isinstance(bucket, Bucket):
        help = "give a `Bucket`, such as `Bucket.covering(batches)`"
        raise refusal("STM3508", f"a batch cannot be filled up to {shown(bucket)}", help)
    return bucket


def _refuse_ratio(ratio: object) -> None:
    least, most = RATIOS
    if not isinstance(ratio, float | int) or isinstance(ratio, bool) or not least <= ratio <= most:
        message = f"the sizes of buckets cannot grow by {shown(ratio)} from one to the next"
        raise refusal("STM3508", message, f"give a ratio from {least} to {most:g}")


def _aligned(numerator: int, denominator: int, least: int) -> int:
    """The quotient of two numbers, or a bit more; no more than an array may have, unless so many are needed."""
    return min(-(-numerator // (denominator * ALIGNMENT)) * ALIGNMENT, max(least, LARGEST))


def _refuse_small(bucket: Bucket, needed: Bucket) -> None:
    """Refuses a bucket without room for a batch, or for the pad nodes that its pad edges join."""
    help = "choose a larger one, or cover the batches: `Bucket.covering(batches)`"
    for name in SIZES:
        need, room = getattr(needed, name), getattr(bucket, name)
        if need > room:
            raise refusal("STM3508", f"the batch has {need:,} {name} and the bucket room for {room:,}", help)
    for what, need, room, spare in (
        ("nodes", needed.nodes, bucket.nodes, SPARE_NODES),
        ("edges", needed.edges, bucket.edges, SPARE_EDGES),
    ):
        if need + spare > room:
            message = f"the batch has {need:,} {what} and the bucket room for {room:,}, which has to be {spare} more"
            raise refusal("STM3508", message, help, "what fills up a bucket is an edge, or more, from one pad node to another")


def _refuse_small_room(room: Capacity, batch: Batch) -> None:
    """Refuses a bucket whose programs have no room for a batch."""
    lacking = room.lacks(batch.needs, batch.packing)
    if lacking is not None:
        what, need, most = lacking
        help = "cover this batch too: `Bucket.covering(batches)`; or cover buckets, which leaves the rest open"
        raise refusal("STM3508", f"the batch has {need:,} {what} and the programs of the bucket room for {most:,}", help)


def _starts(counts: Int64[np.ndarray, " count"]) -> Int64[np.ndarray, " count_and_one"]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
