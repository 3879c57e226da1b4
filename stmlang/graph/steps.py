"""A sweep over a DAG as tables: which states each step reads, what it adds up, and where it writes.

States live on *items*: edges, or where transitions are of rank one nodes. An *arc* takes a state from one item to another: a
line edge, or an edge. Arcs are sorted by level, then by the item that they lead to, and cut into steps of one width, a level
at a time; so a wide level makes no narrow one wider. An item of very many arcs is added up over several steps.

Open edges are arcs too, from or to items of their own, which hold what enters and what leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.incidence import within
from stmlang.graph.levels import latest_levels, node_levels
from stmlang.graph.limits import LARGEST
from stmlang.source.diagnostic import Diagnostic, SpecError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int32, Int64

NONE = -1
"""In `Arcs`: nothing is read, or an arc that is no line edge."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """What a sweep does, in any order. Arc `a` reads item `read[a]` (or nothing), is part of the state of edge `edge[a]`, which
    is added to item `write[a]`; `number[a]` says which edge or line edge its gate belongs to (or none: it passes a state
    straight on). All arcs that lead to an item have one level, above those of the arcs that lead to what they read.
    `initial` items, in the order of `DAG.entering`, have a state from the start; `final` ones are those of `DAG.leaving`."""

    items: int
    edges: int
    read: Int64[np.ndarray, " arcs"]
    edge: Int64[np.ndarray, " arcs"]
    write: Int64[np.ndarray, " arcs"]
    number: Int64[np.ndarray, " arcs"]
    level: Int64[np.ndarray, " arcs"]
    initial: Int64[np.ndarray, " entering"]
    final: Int64[np.ndarray, " leaving"]


def node_arcs(dag: DAG) -> Arcs:
    """The sweep over node states. Items are nodes, then entering edges, then leaving ones; each edge is an arc."""
    nodes, entering, leaving = dag.node_count, dag.entering, dag.leaving
    level = thrifty_levels(dag)
    initial = nodes + np.arange(len(entering))
    final = nodes + len(entering) + np.arange(len(leaving))
    read, write = dag.tail.copy(), dag.head.copy()
    read[entering], write[leaving] = initial, final
    at = np.where(dag.head == OPEN, np.append(level, -1)[dag.tail] + 1, np.append(level, 0)[dag.head])
    every = np.arange(dag.edge_count)
    return Arcs(nodes + len(entering) + len(leaving), dag.edge_count, read, every, write, every, at, initial, final)


def edge_arcs(dag: DAG) -> Arcs:
    """The sweep over edge states. Items are edges, and entering ones a second time, as what is given; line edges are arcs, and
    one more leads to each edge that is not the end of any."""
    edges, entering, line = dag.edge_count, dag.entering, dag.line_edges
    level = thrifty_levels(dag)
    initial = edges + np.arange(len(entering))
    initial_of = np.full(edges, NONE)
    initial_of[entering] = initial
    bare = np.flatnonzero(np.bincount(line[:, 1], minlength=edges) == 0)
    edge = np.concatenate([line[:, 1], bare])
    at = _edge_times(dag, level)
    return Arcs(
        edges + len(entering),
        edges,
        np.concatenate([line[:, 0], initial_of[bare]]),
        edge,
        edge,
        np.concatenate([np.arange(len(line)), np.full(len(bare), NONE)]),
        at[edge],
        initial,
        dag.leaving,
    )


def edge_level_sizes(dag: DAG) -> Int64[np.ndarray, " levels"]:
    """How many arcs the levels of `edge_arcs` have, found without the line edges."""
    into = np.bincount(dag.head[dag.head != OPEN], minlength=dag.node_count)
    arcs = np.where(dag.tail == OPEN, 1, np.maximum(np.append(into, 1)[dag.tail], 1))
    return np.bincount(_edge_times(dag, thrifty_levels(dag)), arcs, minlength=1).astype(np.int64)


def _edge_times(dag: DAG, level: Int64[np.ndarray, " nodes"]) -> Int64[np.ndarray, " edges"]:
    """The level at which each edge's state is made; an entering one is passed on to itself just before its node reads it."""
    before = np.append(level, 1)[dag.head] - 1
    return np.where(dag.tail == OPEN, before, np.append(level, 0)[dag.tail]) + 1


def thrifty_levels(dag: DAG) -> Int64[np.ndarray, " nodes"]:
    """The earliest or the latest levels, whichever keep fewer edge states alive at a time; the earliest if they draw.

    On trees the latest win by far: a leaf far from the end of the longest path waits until it is needed.
    """
    earliest, latest = node_levels(dag), latest_levels(dag)
    return latest if _most_alive(dag, latest) < _most_alive(dag, earliest) else earliest


def _most_alive(dag: DAG, level: Int64[np.ndarray, " nodes"]) -> int:
    """How many edges at once have been written and not yet read."""
    steps, at = int(level.max(initial=-1)) + 1, np.append(level + 1, 0)
    written = np.where(dag.tail == OPEN, 0, at[dag.tail])
    freed = np.where(dag.head == OPEN, steps + 2, at[dag.head])
    change = np.bincount(written, minlength=steps + 3) - np.bincount(freed, minlength=steps + 3)
    return int(np.cumsum(change).max(initial=0))


# --- tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Steps:
    """Tables with a row for each of T steps, of W arcs, which make up the states of U edges, which are added to I items.

    * `read`, `number`: of each arc, the item it reads and its edge or line edge; pads and none `items`, `numbers`.
    * `part_of`: the place in `edge[t]` of the edge whose state an arc is part of; it increases, pad U.
    * `edge`: edges, in the order of their items; pad `edges`. `opening` is the same where the edge appears for the first time,
      else `edges`: what is added to its state once is added there.
    * `added_to`: for each edge the place in `write[t]` of its item; it increases, pad I.
    * `write`: the items; pads `items`, `items + 1`, ..., no two the same. `resumed[t]` says that the first of them was already
      written by the step before, which is added to.

    A buffer that holds only the states that are still to be read has `slot_count` rows, item `i` in row `slot[i]`; `slot` goes
    on for the pads of `write`, and what is past the end need not be kept. A step must read before it writes.
    """

    item_count: int
    slot_count: int
    read: Int32[np.ndarray, "T W"]
    number: Int32[np.ndarray, "T W"]
    part_of: Int32[np.ndarray, "T W"]
    edge: Int32[np.ndarray, "T U"]
    opening: Int32[np.ndarray, "T U"]
    added_to: Int32[np.ndarray, "T U"]
    write: Int32[np.ndarray, "T I"]
    resumed: Bool[np.ndarray, " T"]
    slot: Int32[np.ndarray, " items_and_pads"]
    initial: Int32[np.ndarray, " entering"]
    final: Int32[np.ndarray, " leaving"]


def step_count(level_sizes: Int64[np.ndarray, " levels"], width: int) -> int:
    """The steps of a sweep whose levels have so many arcs."""
    return int((-(-level_sizes // width)).sum())


def most_steps(arcs: int, levels: int, width: int) -> int:
    """As many steps as a sweep over so many arcs in so many levels can take: in each level one step may be narrow."""
    return max(1, (arcs + levels * (width - 1)) // width)


def steps(arcs: Arcs, width: int, room: int | None = None) -> Steps:
    """The tables of a sweep whose steps have `width` arcs. With `room` for so many steps, no less than there are, their shapes
    are the same for many graphs: U = I = W, which is `width`, T is `room`, and every item has a slot. Raises SpecError
    (STM3304) where tables have more than 2^31 - 1 entries."""
    roomy = room is not None
    order = np.lexsort((arcs.edge, arcs.write, arcs.level))
    sizes = np.bincount(arcs.level, minlength=1)
    width = width if roomy else max(1, min(width, int(sizes.max())))
    rows_of = -(-sizes // width)
    count = int(rows_of.sum()) if room is None else room
    assert count >= rows_of.sum(), "the room is for fewer steps than there are"
    if count * width > LARGEST:
        raise SpecError([_too_large(count, width)])
    place = within(sizes)
    row = (np.cumsum(rows_of) - rows_of)[arcs.level[order]] + place // width
    column = place % width
    read, number = (
        np.where(entries < 0, pad, entries)[order] for entries, pad in ((arcs.read, arcs.items), (arcs.number, LARGEST))
    )
    least = width if roomy else 0
    edges, items = _Groups.of(arcs.edge[order], row, least), _Groups.of(arcs.write[order], row, least)
    leading = np.flatnonzero(edges.first)
    opening = np.where(edges.resumed[leading], arcs.edges, edges.member[leading])
    write, resumed = _writes(row, items, count, arcs.items)
    slot, slots = (np.arange(arcs.items), arcs.items) if roomy else _slots(arcs, row, order, count)
    past = slots + np.arange(items.width)  # of the pads of `write`, which follow the items
    slot = np.concatenate([np.where(slot < 0, slots + items.width + np.arange(arcs.items), slot), past])

    def of_edges(entry: Int64[np.ndarray, " edges"], pad: int) -> Int32[np.ndarray, "T U"]:
        return _laid(row[leading], edges.local[leading], entry, (count, edges.width), pad).astype(np.int32)

    def of_arcs(entry: Int64[np.ndarray, " arcs"], pad: int) -> Int32[np.ndarray, "T W"]:
        return _laid(row, column, entry, (count, width), pad).astype(np.int32)

    return Steps(
        arcs.items,
        slots,
        read=of_arcs(read, arcs.items),
        number=of_arcs(number, LARGEST),
        part_of=of_arcs(edges.local, edges.width),
        edge=of_edges(edges.member[leading], arcs.edges),
        opening=of_edges(opening, arcs.edges),
        added_to=of_edges(items.local[leading], items.width),
        write=write.astype(np.int32),
        resumed=resumed,
        slot=slot.astype(np.int32),
        initial=arcs.initial.astype(np.int32),
        final=arcs.final.astype(np.int32),
    )


@dataclass(frozen=True, eq=False)
class _Groups:
    """Equal neighbours of a sequence cut into rows: the place of each entry's group in its row, whether it is the first of its
    group in the row, and whether the group began in a row before; `width` is the most groups of a row, or more."""

    member: Int64[np.ndarray, " entries"]
    local: Int64[np.ndarray, " entries"]
    first: Bool[np.ndarray, " entries"]
    resumed: Bool[np.ndarray, " entries"]
    width: int

    @staticmethod
    def of(member: Int64[np.ndarray, " entries"], row: Int64[np.ndarray, " entries"], least: int) -> _Groups:
        if not len(member):
            nothing = np.zeros(0, bool)
            return _Groups(member, member, nothing, nothing, least)
        same = np.append(False, member[1:] == member[:-1])
        new_row = np.append(True, row[1:] != row[:-1])
        first = new_row | ~same
        running = np.cumsum(first) - 1
        start = np.maximum.accumulate(np.where(new_row, running, 0))
        local = running - start
        return _Groups(member, local, first, new_row & same, max(least, int(local.max()) + 1))


def _laid(
    row: Int64[np.ndarray, " entries"],
    column: Int64[np.ndarray, " entries"],
    entry: Int64[np.ndarray, " entries"],
    shape: tuple[int, int],
    pad: int,
) -> Int64[np.ndarray, "rows columns"]:
    table = np.full(shape, pad, np.int64)
    table[row, column] = entry
    return table


def _writes(
    row: Int64[np.ndarray, " arcs"], items: _Groups, count: int, pad: int
) -> tuple[Int64[np.ndarray, "T I"], Bool[np.ndarray, " T"]]:
    """`write`, whose pads go on from `pad`, and `resumed` of `count` steps."""
    write = _laid(row, items.local, items.member, (count, items.width), NONE)
    resumed = np.zeros(count, bool)
    resumed[row[items.resumed]] = True
    return np.where(write < 0, pad + np.arange(items.width), write), resumed


def _too_large(steps: int, width: int) -> Diagnostic:
    return Diagnostic(
        "STM3304",
        f"a sweep over this graph takes {steps:,} steps of {width:,} entries each",
        None,
        notes=("steps are padded to one width",),
        help="choose a smaller width",
    )


def _slots(
    arcs: Arcs, row: Int64[np.ndarray, " arcs"], order: Int64[np.ndarray, " arcs"], count: int
) -> tuple[Int64[np.ndarray, " items"], int]:
    """The slot of each item, and the number of slots: the most items alive at once, which no assignment beats; -1 for items
    that nobody reads.

    Times count from 1: step t is time t + 1. A state is alive from the step that first writes it (initial ones from time 0) to
    the one that reads it last; a slot is written again at the earliest in that same step. Slots wait in a queue: the `j`-th
    item to be written takes the `j`-th entry of the queue, which is slot `j` for `j < slots`, else what the `(j - slots)`-th
    item to be freed gave back. At most `slots` live at a time, so that one is freed by then. Following those references by
    doubling needs no loop over steps.
    """
    written, freed = np.full(arcs.items + 1, count + 2), np.zeros(arcs.items + 1, np.int64)
    np.minimum.at(written, arcs.write[order], row + 1)
    written[arcs.initial] = 0
    np.maximum.at(freed, arcs.read[order], row + 1)
    freed[arcs.final] = count + 2
    # A node without incoming edges is read, but never written, and so reads zero.
    stored = np.flatnonzero((freed[:-1] > 0) & (written[:-1] < count + 2))
    written, freed = written[stored], freed[stored]
    change = np.bincount(written, minlength=count + 3) - np.bincount(freed, minlength=count + 3)
    slots = int(np.cumsum(change).max(initial=0))
    by_write, by_free = np.argsort(written, kind="stable"), np.argsort(freed, kind="stable")
    turn = np.empty(len(stored), np.int64)
    turn[by_write] = np.arange(len(stored))
    source = np.arange(len(stored))
    source[slots:] = turn[by_free[: len(stored) - slots]]
    while np.any(source >= slots):
        source = source[source]
    slot = np.full(arcs.items, -1, np.int64)
    slot[stored[by_write]] = source
    return slot, slots
