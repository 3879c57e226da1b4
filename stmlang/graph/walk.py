"""A DAG walked node by node: in which order, and where the states of the edges are held that are alive at a time.

The edges that are alive between two nodes of the walk are a cut of the graph: their tails were walked over, their heads were
not. An edge has one slot as long as it lives, and the slots of edges that have died are used again, so that there are as many
as the largest cut has edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, cast

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.incidence import Rows, rows

if TYPE_CHECKING:
    from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class Walk:
    """`order` are the nodes as they are walked over. `into` and `out` list for each node the edges that enter and leave it, by
    number; `slot` is where each edge is held, below `slots`; `line` is the number of the first line edge at each node."""

    order: Int64[np.ndarray, " nodes"]
    into: Rows
    out: Rows
    slot: Int64[np.ndarray, " edges"]
    slots: int
    line: Int64[np.ndarray, " nodes"]


def walk(dag: DAG) -> Walk:
    """The walk over the least node whose edges all come from where the walk has been: in the order of their numbers where every
    edge leads to a larger one."""
    into, out = rows(dag.head, dag.node_count), rows(dag.tail, dag.node_count)
    order = _order(dag, out)
    slot, slots = _slots(dag, order, into, out)
    pairs = into.size * out.size
    return Walk(np.asarray(order, np.int64), into, out, slot, slots, np.cumsum(pairs) - pairs)


def _order(dag: DAG, out: Rows) -> list[int]:
    inner = np.bincount(dag.head[(dag.head >= 0) & (dag.tail >= 0)], minlength=dag.node_count)
    missing, start, heads = inner.tolist(), out.start.tolist(), cast(list[int], dag.head[out.item].tolist())
    ready, order = np.flatnonzero(inner == 0).tolist(), list[int]()
    heapify(ready)
    while ready:
        node = heappop(ready)
        order.append(node)
        for head in heads[start[node] : start[node + 1]]:
            if head >= 0:
                missing[head] -= 1
                if missing[head] == 0:
                    heappush(ready, head)
    return order


def _slots(dag: DAG, order: Sequence[int], into: Rows, out: Rows) -> tuple[Int64[np.ndarray, " edges"], int]:
    """Where each edge is held, and how many slots there are. Edges that enter from outside are held from the start, those that
    leave until the end."""
    slot = np.zeros(dag.edge_count, np.int64)
    slot[dag.entering] = np.arange(len(dag.entering))
    held: list[int] = slot.tolist()
    first, last = (side.start.tolist() for side in (into, out))
    entering: list[int] = into.item.tolist()
    leaving: list[int] = out.item.tolist()
    free, count = list[int](), len(dag.entering)
    for node in order:
        for edge in entering[first[node] : first[node + 1]]:
            heappush(free, held[edge])
        for edge in leaving[last[node] : last[node + 1]]:
            if free:
                held[edge] = heappop(free)
            else:
                held[edge], count = count, count + 1
    return np.asarray(held, np.int64), count
