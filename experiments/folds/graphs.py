"""Folds of a set of graphs, and the batches of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from jaxtyping import Int64

from stmlang.graph import DAG, Bucket, batch
from stmlang.graph.batch import SPARE_EDGES, SPARE_NODES
from stmlang.graph.capacity import ALIGNMENT, Capacity, Demand

Numbers = Int64[np.ndarray, " chosen"]
"""Which graphs of a set."""


class Batched(Protocol):
    """Settings that say which graphs come together in a batch."""

    @property
    def epochs(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def seed(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Fold:
    """Which graphs a model learns from, which decide when it was best, and which say how good it was then."""

    number: int
    train: Numbers
    validation: Numbers
    test: Numbers


@dataclass(frozen=True, eq=False)
class Minibatch:
    """A batch: `graphs` are as many as any batch has, of which the first `count` count. The others only fill it up."""

    graphs: Numbers
    count: int


def minibatches(numbers: Numbers, size: int) -> list[Minibatch]:
    """Graphs in batches of `size`, the last one filled up from the front.

    A batch that is not full would take other tables than all the rest, and so a program of its own.
    """
    starts = range(0, len(numbers), size)
    filled = np.resize(numbers, len(starts) * size)
    return [Minibatch(filled[start : start + size], min(size, len(numbers) - start)) for start in starts]


def epoch_order(fold: Fold, epoch: int, settings: Batched) -> Numbers:
    """The graphs that a model learns from, in the order of an epoch, which no epoch before has a part in."""
    return np.random.default_rng([settings.seed, fold.number, epoch]).permutation(fold.train)


def every_minibatch(splits: list[Fold], settings: Batched) -> Iterator[Minibatch]:
    """Every batch of a study: of all folds and epochs, in training and in evaluation."""
    for fold in splits:
        for order in (*(epoch_order(fold, epoch, settings) for epoch in range(settings.epochs)), evaluated(fold)):
            yield from minibatches(order, settings.batch)


def bucket(dags: Sequence[DAG], splits: list[Fold], settings: Batched) -> Bucket:
    """One shape for every batch of the study of a set of graphs."""
    sizes = np.asarray([(dag.node_count, dag.edge_count) for dag in dags], np.int64)
    most = np.zeros(2, np.int64)
    for minibatch in every_minibatch(splits, settings):
        most = np.maximum(most, sizes[minibatch.graphs].sum(axis=0))
    needed = most + np.asarray([SPARE_NODES, SPARE_EDGES])
    nodes, edges = (int(count) for count in -(-needed // ALIGNMENT) * ALIGNMENT)
    return Bucket(nodes, edges, settings.batch)


def covering(dags: Sequence[DAG], splits: list[Fold], settings: Batched) -> Bucket:
    """As `bucket`, and with one room for programs, however deep or large the graphs of a batch are: one program for all."""
    shape = bucket(dags, splits, settings)
    needs: dict[Demand, None] = {}
    for minibatch in every_minibatch(splits, settings):
        numbers: list[int] = minibatch.graphs.tolist()
        needs[batch([dags[number] for number in numbers], bucket=shape).needs] = None
    return replace(shape, room=Capacity.covering(shape.nodes, shape.edges, list(needs)))


def evaluated(fold: Fold) -> Numbers:
    """The graphs that answers are asked for after every epoch: for validation, then for the test."""
    return np.concatenate([fold.validation, fold.test])
