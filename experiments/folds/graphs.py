"""Folds of a set of graphs, and the batches of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int64

from stmlang.experiments.training.settings import Training
from stmlang.graph import DAG, Bucket, batch
from stmlang.graph.batch import SPARE_EDGES, SPARE_NODES
from stmlang.graph.capacity import ALIGNMENT, Capacity, Demand

Numbers = Int64[np.ndarray, " chosen"]
"""Which graphs of a set."""
TRAINED, JUDGED = 0, 1
"""What is dealt out: graphs to learn from, or those that a model is judged by."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Which graphs a model learns from, which decide when it was best, and which say how good it was then."""

    number: int
    train: Numbers
    validation: Numbers
    test: Numbers


def dealt(numbers: Numbers, sizes: Int64[np.ndarray, " graphs"], most: int, random: np.random.Generator) -> list[Numbers]:
    """As few batches of at most `most` graphs as there can be, in an order at random: the batches that an epoch is made of.

    Of graphs next to each other in size each batch is dealt one, so that all batches have much the same number of nodes, and
    one shape that holds every batch has little padding. Where graphs differ as proteins do, batches drawn without regard to
    size take a shape 1.4 times as large.
    """
    count = -(-len(numbers) // most)
    rounds = -(-len(numbers) // count)
    order = numbers[np.lexsort((random.random(len(numbers)), -sizes[numbers]))]
    place = np.concatenate([random.permutation(count) for _ in range(rounds)])[: len(order)]
    return [random.permutation(order[place == number]) for number in range(count)]


def steps_an_epoch(fold: Fold, training: Training) -> int:
    """How many batches there are in an epoch of a fold."""
    return -(-len(fold.train) // training.batch)


def trained(fold: Fold, epoch: int, sizes: Int64[np.ndarray, " graphs"], training: Training) -> list[Numbers]:
    """The batches that a model learns from in an epoch, which no epoch before has a part in."""
    random = np.random.default_rng([training.seed, fold.number, TRAINED, epoch])
    return dealt(fold.train, sizes, training.batch, random)


def judged(fold: Fold, sizes: Int64[np.ndarray, " graphs"], training: Training) -> list[Numbers]:
    """The batches of the graphs that answers are asked for after every epoch, for validation and for the test. They are the
    same for every seed."""
    numbers = np.concatenate([fold.validation, fold.test])
    return dealt(numbers, sizes, training.batch, np.random.default_rng([fold.number, JUDGED]))


def node_counts(dags: Sequence[DAG]) -> Int64[np.ndarray, " graphs"]:
    return np.asarray([dag.node_count for dag in dags], np.int64)


def every_batch(dags: Sequence[DAG], splits: list[Fold], training: Training) -> Iterator[Numbers]:
    """Every batch of a study: of all folds and epochs, in training and in judging."""
    sizes = node_counts(dags)
    for fold in splits:
        steps = steps_an_epoch(fold, training)
        for epoch in range(-(-training.steps // steps) if training.steps else training.epochs):
            yield from trained(fold, epoch, sizes, training)
        yield from judged(fold, sizes, training)


def bucket(dags: Sequence[DAG], splits: list[Fold], training: Training) -> Bucket:
    """One shape for every batch of the study of a set of graphs."""
    sizes = np.asarray([(dag.node_count, dag.edge_count) for dag in dags], np.int64)
    most = np.zeros(2, np.int64)
    for numbers in every_batch(dags, splits, training):
        most = np.maximum(most, sizes[numbers].sum(axis=0))
    needed = most + np.asarray([SPARE_NODES, SPARE_EDGES])
    nodes, edges = (int(count) for count in -(-needed // ALIGNMENT) * ALIGNMENT)
    return Bucket(nodes, edges, training.batch)


def covering(dags: Sequence[DAG], splits: list[Fold], training: Training) -> Bucket:
    """As `bucket`, and with one room for programs, however deep or large the graphs of a batch are: one program for all."""
    shape = bucket(dags, splits, training)
    needs: dict[Demand, None] = {}
    for numbers in every_batch(dags, splits, training):
        chosen: list[int] = numbers.tolist()
        needs[batch([dags[number] for number in chosen], bucket=shape).needs] = None
    return replace(shape, room=Capacity.covering(shape.nodes, shape.edges, list(needs)))
