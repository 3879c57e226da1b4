"""Tables that drive a level-synchronous sweep, with edge states in a small buffer of reused slots.

A sweep takes *steps*. In a step a set of nodes of one level reads the states of their incoming edges from the buffer and writes
those of their outgoing edges into it. An edge's slot is its own from the step that writes it to the step that reads it
(there is one: an edge enters one node); entering edges hold theirs from before the first step, leaving edges to the end. So
the buffer is as wide as the widest frontier of the graph, not as the graph.

A step is a level, except that a level much wider than the average is cut into several, since all steps are padded to the
widest one: apart from what a single node of very high degree forces, a table has at most eight times as many entries as it
has items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int32, Int64

from stmlang.graph.dag import OPEN, Dag
from stmlang.graph.incidence import within
from stmlang.graph.levels import latest_levels, node_levels
from stmlang.graph.limits import LARGEST
from stmlang.source.diagnostic import Diagnostic, SpecError

SLACK = 4
"""A level is cut where it is more than so many times as wide as the average level."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """Tables with a row for each step. Shapes: T steps, W nodes, Wl line edges, Wi incoming and We outgoing edges.

    Within a row items are in the order of the local index that follows them, which therefore increases, pads last:

    * `nodes`: by level, then number; pad `node_count`.
    * `in_edge`, `in_slot`, `in_node_local`: incoming edges, where their state is, and the place in `nodes[t]` of the node that
      reads it; pads `edge_count`, `slot_count`, W.
    * `out_edge`, `out_slot`, `out_node_local`: outgoing edges likewise; pads `edge_count`, `slot_count`, W.
    * `line_id`, `line_in_slot`, `line_out_local`: line edges as rows of `Dag.line_edges`, the slot of the incoming edge and the
      place in `out_edge[t]` of the outgoing one; pads `line_count`, `slot_count`, We. Only line edges that are kept appear.

    Slot `slot_count` is for padding: a buffer has `slot_count + 1` rows. A step must gather before it scatters.

    The inverse tables say where an item's result stands in the stacked outputs of all steps, flattened: `node_at[n]` in
    `[T * W]`, `in_at[e]` in `[T * Wi]`, `out_at[e]` in `[T * We]`, `line_at[k]` in `[T * Wl]`; an item that has none (leaving
    edges in `in_at`, entering ones in `out_at`, dropped line edges) gets the length of that axis.
    """

    node_count: int
    edge_count: int
    line_count: int
    slot_count: int
    level_count: int
    nodes: Int32[np.ndarray, "T W"]
    line_id: Int32[np.ndarray, "T Wl"]
    line_in_slot: Int32[np.ndarray, "T Wl"]
    line_out_local: Int32[np.ndarray, "T Wl"]
    out_edge: Int32[np.ndarray, "T We"]
    out_slot: Int32[np.ndarray, "T We"]
    out_node_local: Int32[np.ndarray, "T We"]
    in_edge: Int32[np.ndarray, "T Wi"]
    in_slot: Int32[np.ndarray, "T Wi"]
    in_node_local: Int32[np.ndarray, "T Wi"]
    entering_slot: Int32[np.ndarray, " entering"]
    leaving_slot: Int32[np.ndarray, " leaving"]
    node_at: Int32[np.ndarray, " nodes"]
    in_at: Int32[np.ndarray, " edges"]
    out_at: Int32[np.ndarray, " edges"]
    line_at: Int32[np.ndarray, " line_edges"]

    @property
    def step_count(self) -> int:
        return len(self.nodes)


def schedule(
    dag: Dag,
    kept: Bool[np.ndarray, " line_edges"] | None = None,
    levels: Int64[np.ndarray, " nodes"] | None = None,
    eager: bool = False,
) -> Schedule:
    """The tables of a sweep over `dag`.

    `kept` masks `dag.line_edges`: the others are known to be zero and do not appear. `levels` may be any that increase along
    every edge (default: `thrifty_levels`). A slot is written again at the earliest in the step after the one that read it; with
    `eager` already in that same step, which halves the buffer of a wavefront and relies on the step gathering first.

    Raises SpecError: STM3303 for too many line edges, STM3304 for tables of more than 2^31 - 1 entries.
    """
    level = thrifty_levels(dag) if levels is None else levels
    line = dag.line_edges
    chosen = np.arange(len(line)) if kept is None else np.flatnonzero(kept)
    step, rank = _steps(dag, level, line[chosen])
    count = int(step.max(initial=-1)) + 1
    slot, slot_count = _slots(dag, step, count, eager)

    order = np.argsort(rank)
    node = _Table.lay(order, step[order], count, dag.node_count)
    out = _Table.lay(*_by_node(dag.tail, rank, step), count, dag.edge_count)
    into = _Table.lay(*_by_node(dag.head, rank, step), count, dag.edge_count)
    by_node = chosen[np.argsort(rank[dag.head[line[chosen, 0]]], kind="stable")]
    lines = _Table.lay(by_node, step[dag.head[line[by_node, 0]]], count, len(line))

    def slots_of(edges: Int64[np.ndarray, "T width"]) -> Int32[np.ndarray, "T width"]:
        return np.append(slot, slot_count)[edges].astype(np.int32)

    def local(table: _Table, items: Int64[np.ndarray, "T width"]) -> Int32[np.ndarray, "T width"]:
        width = table.items.shape[1]
        return np.append(table.place % max(width, 1), width)[items].astype(np.int32)

    head, tail = np.append(dag.head, dag.node_count), np.append(dag.tail, dag.node_count)
    pairs = np.concatenate([line, [[dag.edge_count, dag.edge_count]]])
    return Schedule(
        node_count=dag.node_count,
        edge_count=dag.edge_count,
        line_count=len(line),
        slot_count=slot_count,
        level_count=int(level.max(initial=-1)) + 1,
        nodes=node.items.astype(np.int32),
        line_id=lines.items.astype(np.int32),
        line_in_slot=slots_of(pairs[lines.items, 0]),
        line_out_local=local(out, pairs[lines.items, 1]),
        out_edge=out.items.astype(np.int32),
        out_slot=slots_of(out.items),
        out_node_local=local(node, tail[out.items]),
        in_edge=into.items.astype(np.int32),
        in_slot=slots_of(into.items),
        in_node_local=local(node, head[into.items]),
        entering_slot=slot[dag.entering].astype(np.int32),
        leaving_slot=slot[dag.leaving].astype(np.int32),
        node_at=node.place.astype(np.int32),
        in_at=into.place.astype(np.int32),
        out_at=out.place.astype(np.int32),
        line_at=lines.place.astype(np.int32),
    )


def thrifty_levels(dag: Dag) -> Int64[np.ndarray, " nodes"]:
    """The earliest or the latest levels, whichever keep fewer edge states alive at a time; the earliest if they draw.

    On trees the latest win by far: a leaf far from the end of the longest path waits until it is needed.
    """
    earliest, latest = node_levels(dag), latest_levels(dag)
    peaks = [_alive(dag, level, int(level.max(initial=-1)) + 1, False)[2] for level in (earliest, latest)]
    return latest if peaks[1] < peaks[0] else earliest


@dataclass(frozen=True, eq=False)
class _Table:
    """Items laid out by step: `items[t]` padded with the number of all items, `place[i]` the flat position of item `i`."""

    items: Int64[np.ndarray, "T width"]
    place: Int64[np.ndarray, " all_items"]

    @staticmethod
    def lay(item: Int64[np.ndarray, " items"], step: Int64[np.ndarray, " items"], steps: int, total: int) -> _Table:
        """Lays out items that come in order of their step. Raises SpecError (STM3304) if the table would be too large."""
        sizes = np.bincount(step, minlength=steps)
        width = int(sizes.max(initial=0))
        if steps * width > LARGEST:
            raise SpecError([_too_large(steps, width)])
        flat = step * width + within(sizes)
        items = np.full(steps * width, total, np.int64)
        items[flat] = item
        place = np.full(total, steps * width, np.int64)
        place[item] = flat
        return _Table(items.reshape(steps, width), place)


def _too_large(steps: int, width: int) -> Diagnostic:
    return Diagnostic(
        "STM3304",
        f"a sweep over this graph takes {steps:,} steps, one of them {width:,} wide, and all are padded to that width",
        None,
        notes=("a node's edges are all handled in one step, so a node of very high degree widens every step",),
        help="split the node of the highest degree into a tree of nodes",
    )


def _by_node(
    end: Int64[np.ndarray, " edges"], rank: Int64[np.ndarray, " nodes"], step: Int64[np.ndarray, " nodes"]
) -> tuple[Int64[np.ndarray, " closed"], Int64[np.ndarray, " closed"]]:
    """The edges with that end closed, by the rank of its node, then number; and their steps."""
    item = np.flatnonzero(end != OPEN)
    item = item[np.argsort(rank[end[item]], kind="stable")]
    return item, step[end[item]]


def _steps(
    dag: Dag, level: Int64[np.ndarray, " nodes"], line: Int64[np.ndarray, "kept 2"]
) -> tuple[Int64[np.ndarray, " nodes"], Int64[np.ndarray, " nodes"]]:
    """The step of each node, and its rank in the order by level, then number.

    A level is cut before a node if one of its four measures (nodes, incoming, outgoing, line edges), summed from the start of
    the level, passes a multiple of `SLACK` times the average over the levels. That adds at most four cuts for each `SLACK`
    levels, so it at most doubles the steps, and bounds a step's width by `SLACK` averages and one node.
    """
    count = dag.node_count
    order = np.argsort(level, kind="stable")
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    if not count:
        return rank, rank
    first = np.append(True, np.diff(level[order]) > 0)
    level_start = np.maximum.accumulate(np.where(first, np.arange(count), 0))
    new = first.copy()
    ends = (dag.head, dag.tail, dag.head[line[:, 0]])
    for measure in (np.ones(count, np.int64), *(np.bincount(end[end >= 0], minlength=count) for end in ends)):
        before = np.cumsum(measure[order]) - measure[order]
        cap = max(1, -(-SLACK * int(measure.sum()) // int(first.sum())))
        part = (before - before[level_start]) // cap
        new[1:] |= part[1:] != part[:-1]
    step = np.empty(count, np.int64)
    step[order] = np.cumsum(new) - 1
    return step, rank


def _slots(dag: Dag, step: Int64[np.ndarray, " nodes"], steps: int, eager: bool) -> tuple[Int64[np.ndarray, " edges"], int]:
    """The slot of each edge and the number of slots: the largest number of edges alive at once, which no assignment beats.

    Slots wait in a queue: the `j`-th edge to be written takes the `j`-th entry of the queue, which is slot `j` for `j < slots`,
    else what the `(j - slots)`-th edge to be freed gave back. At most `slots` edges live at a time, so that edge is freed by
    then. Following those references by doubling needs no loop over steps.
    """
    count = dag.edge_count
    written, freed, slots = _alive(dag, step, steps, eager)
    by_write, by_free = np.argsort(written, kind="stable"), np.argsort(freed, kind="stable")
    turn = np.empty(count, np.int64)
    turn[by_write] = np.arange(count)
    source = np.arange(count)
    source[slots:] = turn[by_free[: count - slots]]
    while np.any(source >= slots):
        source = source[source]
    slot = np.empty(count, np.int64)
    slot[by_write] = source
    return slot, slots


def _alive(
    dag: Dag, step: Int64[np.ndarray, " nodes"], steps: int, eager: bool
) -> tuple[Int64[np.ndarray, " edges"], Int64[np.ndarray, " edges"], int]:
    """When each edge is written, when its slot is free again, and how many edges are alive at once at most.

    Times count from 1: step t is time t + 1. Entering edges are written at time 0, leaving ones freed after all steps.
    """
    at = np.append(step + 1, 0)
    written = np.where(dag.tail == OPEN, 0, at[dag.tail])
    freed = np.where(dag.head == OPEN, steps + 2, at[dag.head] + (0 if eager else 1))
    change = np.bincount(written, minlength=steps + 3) - np.bincount(freed, minlength=steps + 3)
    return written, freed, int(np.cumsum(change).max(initial=0))
