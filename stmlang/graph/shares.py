"""Graphs divided among devices: a batch of one bucket for each of them, side by side along an axis in front.

Graphs keep their order: share `k` holds some of them, one after the other, and share `k + 1` those that follow. They are cut
where the heaviest share is as light as can be, a graph weighing as much as it has nodes and edges, and one more. All shares are
filled up to the shape that the largest of them needs, so that one program is for all; there may be shares without a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from stmlang.graph.batch import RATIO, Arrays, Batch, Bucket, batch
from stmlang.graph.batchable import batchable, refuse_above_bounds, sizes_of
from stmlang.graph.convert.finish import Converted
from stmlang.graph.dag import DAG
from stmlang.graph.features import filled, split, stacked
from stmlang.graph.refusal import kind_of, refusal, shown, whole

if TYPE_CHECKING:
    from jaxtyping import Int64, Shaped


@dataclass(frozen=True, eq=False)
class Shares:
    """A batch for each device. Arrays are those of the batches, stacked: `(shares, nodes, ...)`, `(shares, edges, ...)` and
    `(shares, graphs, ...)`, where the bucket that all share says how many of each.

    Graph `i` of share `k` is number `start[k] + i` of those that were divided. Of an array with a row for each graph,
    `array[shares.arrays.graph_mask]` are the rows of all graphs, in their order.
    """

    batches: tuple[Batch, ...]
    start: Int64[np.ndarray, " shares_and_one"]

    def __repr__(self) -> str:
        return f"<Shares: {self.count} graphs in {len(self.batches)} batches of {self.bucket!r}>"

    @property
    def bucket(self) -> Bucket:
        """That of every share, with its room."""
        return self.batches[0].bucket

    @property
    def count(self) -> int:
        """How many graphs there are, padding left out."""
        return int(self.start[-1])

    @cached_property
    def arrays(self) -> Arrays:
        """What a compiled function may be given of the shares: a pytree whose arrays have an axis of them in front. Tails,
        heads and numbers of graphs count within each."""
        return Arrays(*(np.stack(arrays) for arrays in zip(*(each.arrays for each in self.batches), strict=True)))

    def nodes(self, features: Sequence[Any]) -> Shaped[np.ndarray, "shares nodes ..."]:
        """Node features, zero for padding, from those of each graph, `(its nodes, ...)`. Raises SpecError (STM3509) where the
        arrays do not fit."""
        return self._laid("node", features, lambda each: each.node_start, self.bucket.nodes)

    def edges(self, features: Sequence[Any]) -> Shaped[np.ndarray, "shares edges ..."]:
        """Edge features from those of each graph, `(its edges, ...)`, as its DAG orders them; else as `nodes`."""
        return self._laid("edge", features, lambda each: each.edge_start, self.bucket.edges)

    def graphs(self, values: Any) -> Shaped[np.ndarray, "shares graphs ..."]:
        """What there is one of for each graph, such as labels, from `(count, ...)`, zero for padding. Raises SpecError
        (STM3509) where the array does not fit."""
        return self._cut(filled("graph", values, self.count, self.count), self.start, self.bucket.graphs)

    def split_nodes(self, array: Any) -> list[Any]:
        """An array `(shares, nodes, ...)` cut into one for each graph, padding left out. Raises SpecError (STM3509) where it
        does not fit."""
        return self._split("node", array, lambda each: each.node_start, self.bucket.nodes)

    def split_edges(self, array: Any) -> list[Any]:
        """An array `(shares, edges, ...)` cut into one for each graph; else as `split_nodes`."""
        return self._split("edge", array, lambda each: each.edge_start, self.bucket.edges)

    def _laid(
        self, what: str, features: Sequence[Any], start: Callable[[Batch], Int64[np.ndarray, " count_and_one"]], size: int
    ) -> Shaped[np.ndarray, "shares size ..."]:
        counts = np.concatenate([np.diff(start(each)) for each in self.batches])
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return self._cut(stacked(what, features, starts, int(starts[-1])), starts[self.start], size)

    def _cut(self, rows: np.ndarray, bounds: np.ndarray, size: int) -> Shaped[np.ndarray, "shares size ..."]:
        """Rows of all graphs, those from one bound to the next in each share, zeros behind them."""
        laid = np.zeros((len(self.batches), size, *rows.shape[1:]), rows.dtype)
        for share, (first, end) in zip(laid, pairwise(bounds.tolist()), strict=True):
            share[: end - first] = rows[first:end]
        return laid

    def _split(
        self, what: str, array: Any, start: Callable[[Batch], Int64[np.ndarray, " count_and_one"]], size: int
    ) -> list[Any]:
        shape = tuple(getattr(array, "shape", ()))
        if shape[:2] != (len(self.batches), size):
            was = f"the shape {shape}" if hasattr(array, "shape") else f"the type {kind_of(array)}"
            message = f"there are {len(self.batches)} shares of {size:,} {what}s, padding included, and this has {was}"
            raise refusal("STM3509", message, "give an array that a call on the shares returned")
        return [part for each, rows in zip(self.batches, array, strict=True) for part in split(what, rows, start(each), size)]


def shares(
    graphs: Iterable[DAG | Converted],
    count: int,
    *,
    ratio: float = RATIO,
    bucket: Bucket | None = None,
    max_nodes: int | None = None,
    max_edges: int | None = None,
) -> Shares:
    """The graphs divided into `count` shares, in the least bucket for them, found by the rule of `batch`, or in `bucket`, which
    is that of a share. `Bucket.covering` over the `batches` of all shares of a data set gives all of them one shape.

    Raises SpecError: STM3508 for a number of shares that is not positive, and what `batch` raises.
    """
    number = whole(count)
    if number is None or number < 1:
        raise refusal("STM3508", f"graphs cannot be divided into {shown(count)} shares", "give a whole number from 1 on")
    dags = batchable(graphs)
    refuse_above_bounds(dags, max_nodes, max_edges)
    start = _starts(sum(sizes_of(dags), np.ones(len(dags), np.int64)), number)
    parts = [dags[first:end] for first, end in pairwise(start.tolist())]
    if not isinstance(bucket, Bucket) or bucket.room is None:
        bucket = Bucket.covering([batch(part, ratio=ratio, bucket=bucket) for part in parts])
    return Shares(tuple(batch(part, bucket=bucket) for part in parts), start)


def _starts(weights: Int64[np.ndarray, " graphs"], shares: int) -> Int64[np.ndarray, " shares_and_one"]:
    """The first graph of each share, and behind the last their number: the weight of the heaviest share is the least possible,
    found by halving. Weights are positive."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(weights)])
    heaviest, total = max(weights.tolist(), default=0), int(before[-1])
    least, most = max(heaviest, -(-total // shares)), total
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if len(_filled(before, middle)) <= shares + 1 else (middle + 1, most)
    starts = _filled(before, most)
    return np.asarray(starts + [len(weights)] * (shares + 1 - len(starts)), np.int64)


def _filled(before: Int64[np.ndarray, " graphs_and_one"], most: int) -> list[int]:
    """Where shares begin and the last one ends, each taking as many graphs as weigh no more than `most`, which is no less than
    any of them. `before` is the weight of those before each."""
    starts = [0]
    while starts[-1] < len(before) - 1:
        end = int(before[starts[-1]]) + most
        starts.append(int(np.searchsorted(before, end, side="right")) - 1)
    return starts
