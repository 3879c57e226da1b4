"""Where the rows of packed graphs stand: index tables, made on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Int64

from stmlang.cost.sweeps import Profile, StepShape, row_profile, step_shape
from stmlang.graph.capacity import Capacity
from stmlang.graph.dag import DAG
from stmlang.graph.features import padded
from stmlang.graph.incidence import within
from stmlang.graph.packing import Packing
from stmlang.graph.steps import NONE, Arcs, steps
from stmlang.lower.strategy import LoweringContext
from stmlang.lower.tables import PAD, Indices


class Steps(NamedTuple):
    """A step reads rows, weighs them and adds them to the rows `write`. What is read or weighs nothing is one past the last."""

    read: Int[Indices, "T W"]
    number: Int[Indices, "T W"]
    write: Int[Indices, "T W"]


class Sweep(NamedTuple):
    """Both senses, and for every row that an arc passes on those that it leads from and to, and which weight it takes."""

    ahead: Steps
    back: Steps
    origin: Int[Indices, " arc_row"]
    goal: Int[Indices, " arc_row"]
    weight: Int[Indices, " arc_row"]


class Packed(NamedTuple):
    """The tables of a direction.

    What starts at an edge is added in `column`, the place of its tail in a cell, to row `start` of the items of the sweep, or
    to row `own` of those of edges. Row `r` of edges is one of `edge[r]`: it continues row `read[r]` of the items, and adds to
    row `write[r]` of all blocks laid end to end. `place` is where each node stands in the cells laid end to end. Blocks have
    nodes as targets and sources, those at the places of two cells, of the graphs that `target_graph` and `source_graph` number;
    those of a cell and itself come first, and `across` are the target cells of the others.
    """

    sweep: Sweep
    start: Int[Indices, " edge"]
    own: Int[Indices, " edge"]
    column: Int[Indices, " edge"]
    edge: Int[Indices, " edge_row"]
    read: Int[Indices, " edge_row"]
    write: Int[Indices, " edge_row"]
    place: Int[Indices, " node"]
    target: Int[Indices, "block place"]
    source: Int[Indices, "block place"]
    target_graph: Int[Indices, "block place"]
    source_graph: Int[Indices, "block place"]
    across: Int[Indices, " pair"]


@dataclass(frozen=True, eq=False)
class Items:
    """What a sweep goes over: `counts` items of each graph, `total` with padding, and arcs between them, in both senses. Weight
    `i` of `weights` is that of the arc from item `ends[i, 0]` to `ends[i, 1]`; those past the end weigh nothing. What starts at
    an edge is added to item `start` of the edge, and the edge continues item `read` of it."""

    counts: Sequence[int]
    total: int
    ahead: Arcs
    back: Arcs
    ends: Int64[np.ndarray, "arcs 2"]
    weights: int
    start: Sequence[int] | Int64[np.ndarray, " edges"]
    read: Sequence[int] | Int64[np.ndarray, " edges"]


def renumbered(arcs: Arcs, number: Int64[np.ndarray, " numbers"]) -> Arcs:
    """Arcs whose weight `i` is `number[i]`."""
    return replace(arcs, number=np.append(number, NONE)[arcs.number])


@dataclass(frozen=True, eq=False)
class _Rows:
    """Item `i` has the rows `first[i], first[i] + 1, ...`, as many as its graph has pieces; there is room for more."""

    first: Int64[np.ndarray, " items"]
    count: Int64[np.ndarray, " items"]
    room: int

    def along(self, arcs: Int64[np.ndarray, "ends arcs"], goal: Int64[np.ndarray, " arcs"]) -> Int64[np.ndarray, "ends rows"]:
        """Of arcs to the items `goal`, the rows of their ends: as many of each as its goal has."""
        count = self.count[goal]
        return np.repeat(self.first[arcs], count, axis=1) + within(count)


def _rows(packing: Packing, counts: Sequence[int], total: int, room: Capacity) -> _Rows:
    """Of so many items of each graph, and padding up to `total`."""
    count = np.ones(total, np.int64)
    count[: sum(counts)] = np.repeat(packing.pieces, counts)
    return _Rows(np.cumsum(count) - count, count, room.rows(total))


def packed_tables(context: LoweringContext, profile: Profile, items_of: Callable[[DAG], Items]) -> Packed:
    """The tables of a direction, the levels of whose sweep over items have the arcs of `profile`."""
    room = context.problem.room
    assert room is not None
    return _laid_out(context.dag, room, step_shape(context.problem, row_profile(profile, room), room.cell), items_of)


@lru_cache(maxsize=8)  # the scans of a model are put on the same batch, one after the other
def _laid_out(dag: DAG, room: Capacity, shape: StepShape, items_of: Callable[[DAG], Items]) -> Packed:
    """The tables for sweeps of such a shape over items of a DAG."""
    nodes, edges = ([getattr(graph, count) for graph in dag.parts] for count in ("node_count", "edge_count"))
    packing, real = dag.packing, slice(sum(edges))
    assert packing is not None
    assert packing.size == room.cell
    tail, head, items = dag.tail[real], dag.head[real], items_of(dag)
    of_items, of_edges = _rows(packing, items.counts, items.total, room), _rows(packing, edges, dag.edge_count, room)
    piece, column = within(np.asarray(nodes, np.int64)) // room.cell, packing.place % room.cell
    start, read = (of_items.first[np.asarray(ends, np.int64)[real]] for ends in (items.start, items.read))
    count = of_edges.count[real]
    edge, number = np.repeat(np.arange(len(tail)), count), within(count)
    block = _blocks(packing, np.repeat(np.arange(len(edges)), edges)[edge], piece[head[edge]], number, room)
    node, graph = (np.full((room.cells + 1, room.cell), PAD) for _ in range(2))
    node.reshape(-1)[packing.place] = np.arange(len(packing.place))
    graph.reshape(-1)[packing.place] = np.repeat(np.arange(len(nodes)), nodes)
    pairs = np.full((room.pairs, 2), room.cells)  # a cell that is empty
    pairs[: len(packing.pairs)] = packing.pairs
    return Packed(
        sweep=_sweep(items, of_items, shape, room),
        start=padded(start + piece[tail], dag.edge_count, PAD),
        own=padded(of_edges.first[real] + piece[tail], dag.edge_count, PAD),
        column=padded(column[tail], dag.edge_count, PAD),
        edge=padded(edge, of_edges.room, PAD),
        read=padded(np.repeat(read, count) + number, of_edges.room, PAD),
        write=padded(block * room.cell + column[head[edge]], of_edges.room, PAD),
        place=padded(packing.place, dag.node_count, PAD),
        target=np.concatenate([node[:-1], node[pairs[:, 0]]]),
        source=np.concatenate([node[:-1], node[pairs[:, 1]]]),
        target_graph=np.concatenate([graph[:-1], graph[pairs[:, 0]]]),
        source_graph=np.concatenate([graph[:-1], graph[pairs[:, 1]]]),
        across=np.where(pairs[:, 0] < room.cells, pairs[:, 0], PAD).astype(np.int32),
    )


def _blocks(
    packing: Packing,
    graph: Int64[np.ndarray, " chosen"],
    target: Int64[np.ndarray, " chosen"],
    source: Int64[np.ndarray, " chosen"],
    room: Capacity,
) -> Int64[np.ndarray, " chosen"]:
    """The numbers of the blocks of two pieces of a graph each, as `Packing.pairs` orders them."""
    pieces = packing.pieces
    first, pair = np.cumsum(pieces) - pieces, np.cumsum(pieces * (pieces - 1)) - pieces * (pieces - 1)
    across = room.cells + pair[graph] + target * (pieces[graph] - 1) + source - (source > target)
    return np.where(target == source, packing.cell[first[graph] + target], across)


def _sweep(items: Items, rows: _Rows, shape: StepShape, room: Capacity) -> Sweep:
    goal, size = items.ends[:, 1], room.rows(items.weights)
    weight = np.repeat(np.arange(len(goal)), rows.count[goal])
    tables = (padded(entries, size, PAD) for entries in (*rows.along(items.ends.T, goal), weight))
    return Sweep(_steps(_in_rows(items.ahead, rows), shape), _steps(_in_rows(items.back, rows), shape), *tables)


def _in_rows(arcs: Arcs, rows: _Rows) -> Arcs:
    """An arc for each row that an arc takes to another."""
    count = rows.count[arcs.write]
    read, write = rows.along(np.stack([arcs.read, arcs.write]), arcs.write)
    nothing, weight, level = (np.repeat(array, count) for array in (arcs.read == NONE, arcs.number, arcs.level))
    none = np.zeros(0, np.int64)
    return Arcs(rows.room, rows.room, np.where(nothing, NONE, read), write, write, weight, level, none, none)


def _steps(arcs: Arcs, shape: StepShape) -> Steps:
    """The tables of one sense."""
    made = steps(arcs, shape.width, shape.room)
    pads = np.full((len(made.write), 1), PAD)
    item = np.take_along_axis(np.concatenate([made.write, pads], axis=1), made.added_to, axis=1)  # of each edge
    write = np.take_along_axis(np.concatenate([item, pads], axis=1), made.part_of, axis=1)
    return Steps(made.read, made.number, write.astype(np.int32))
