"""Which edges meet which node, as compressed rows; which pairs of edges meet; what is connected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from stmlang.graph.limits import refuse_above_largest

if TYPE_CHECKING:
    from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class Rows:
    """Items grouped by row: row `r` holds `item[start[r] : start[r + 1]]`, in increasing order."""

    start: Int64[np.ndarray, " rows_and_one"]
    item: Int64[np.ndarray, " items"]

    @property
    def size(self) -> Int64[np.ndarray, " rows"]:
        return np.diff(self.start)

    def of(self, rows: Int64[np.ndarray, " chosen"]) -> Int64[np.ndarray, " items"]:
        """The items of several rows, one row after the other."""
        first, count = self.start[rows], self.start[rows + 1] - self.start[rows]
        return self.item[np.repeat(first, count) + within(count)]


def rows(row: Int64[np.ndarray, " items"], count: int) -> Rows:
    """Groups the items `0, 1, ...` by their row; negative rows (open ends) are left out."""
    item = np.argsort(row, kind="stable")
    item = item[np.searchsorted(row[item], 0) :]
    start = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(row[item], minlength=count), out=start[1:])
    return Rows(start, item)


def within(counts: Int64[np.ndarray, " groups"]) -> Int64[np.ndarray, " items"]:
    """`0, 1, ..., counts[0] - 1, 0, 1, ..., counts[1] - 1, ...`."""
    starts = np.cumsum(counts) - counts
    return np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts, counts)


def pair_count(tail: Int64[np.ndarray, " edges"], head: Int64[np.ndarray, " edges"], nodes: int) -> int:
    """How many pairs of an edge that enters a node and one that leaves it there are; negative ends are open.

    Both degrees are below 2^31 and each edge has one tail, so the sum stays below 2^62 and int64 holds it exactly.
    """
    in_degree = np.bincount(head[head >= 0], minlength=nodes)
    return int(in_degree[tail[tail >= 0]].sum())


def pairs_at_nodes(
    tail: Int64[np.ndarray, " edges"], head: Int64[np.ndarray, " edges"], nodes: int
) -> Int64[np.ndarray, "pairs 2"]:
    """All pairs `(incoming edge, outgoing edge)` of a node, sorted by node, then outgoing, then incoming edge.

    Raises SpecError (STM3303) if there are more than 2^31 - 1 line edges, which is what they are called.
    """
    refuse_above_largest("line edges", pair_count(tail, head, nodes))
    enter, leave = rows(head, nodes), rows(tail, nodes)
    node = tail[leave.item]
    count = enter.size[node]
    pairs = np.empty((int(count.sum()), 2), np.int64)
    pairs[:, 0] = enter.item[np.repeat(enter.start[node], count) + within(count)]
    pairs[:, 1] = np.repeat(leave.item, count)
    return pairs


def components(
    first: Int64[np.ndarray, " edges"], second: Int64[np.ndarray, " edges"], count: int
) -> Int64[np.ndarray, " nodes"]:
    """The least node of each node's connected component, edges taken as undirected."""
    return least_of(connected(first, second, count, "weak"))


def connected(
    tail: Int64[np.ndarray, " edges"], head: Int64[np.ndarray, " edges"], count: int, connection: Literal["weak", "strong"]
) -> Int64[np.ndarray, " nodes"]:
    """A number for each node, the same for two if and only if they are connected, in any order of the components. `strong`
    connection is by a path each way. No end may be open."""
    from scipy.sparse import csr_array  # a tenth of a second, which only graphs that need it take
    from scipy.sparse.csgraph import connected_components  # pyright: ignore[reportUnknownVariableType]

    if not count:
        return np.zeros(0, np.int64)
    adjacency = csr_array((np.ones(len(tail)), (tail, head)), shape=(count, count))
    number = cast(Any, connected_components)(adjacency, connection=connection)[1]
    return np.asarray(number, np.int64)


def least_of(group: Int64[np.ndarray, " items"]) -> Int64[np.ndarray, " items"]:
    """The least item that has the same number, from 0, as each item."""
    least = np.empty(int(group.max(initial=-1)) + 1, np.int64)
    least[group[::-1]] = np.arange(len(group))[::-1]  # of entries that are written several times the last one stays
    return least[group]
