"""What is asked of a model, and how a run of training asks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int64, Shaped

from stmlang.experiments.folds.graphs import Fold, Numbers, judged, node_counts, steps_an_epoch, trained
from stmlang.experiments.training.fitting import Task, Validation
from stmlang.experiments.training.programs import Programs
from stmlang.experiments.training.settings import Training
from stmlang.graph import DAG, Batch, Bucket, batch
from stmlang.models.graph.inputs import Features, GraphModel, Inputs


class Problem(Protocol):
    """A set of graphs with features, and what a model is to say of each item of a batch: each graph, or each node."""

    @property
    def dags(self) -> tuple[DAG, ...]: ...
    @property
    def nodes(self) -> Features: ...
    @property
    def edges(self) -> Features: ...
    @property
    def by(self) -> str:
        """The measure that validation chooses the best epoch by."""
        ...

    @property
    def largest(self) -> bool:
        """Whether the best one is the largest."""
        ...

    def targets(self, graph_batch: Batch, graphs: Numbers) -> Shaped[np.ndarray, " items"]:
        """What is right, for every item of a batch of these graphs, padding included."""
        ...

    def counted(self, graph_batch: Batch) -> Bool[np.ndarray, " items"]:
        """The items that count; none of padding does."""
        ...

    def losses(self, outputs: Float[Array, "items outputs"], targets: Shaped[Array, " items"]) -> Float[Array, " items"]: ...
    def answers(self, outputs: Float[Array, "items outputs"]) -> Shaped[Array, " items"]: ...
    def measures(self, answers: Any, graphs: Numbers, fold: Fold) -> Mapping[str, float]:
        """How good the answers are about the items that count of these graphs, one graph after the other: all those that a fold
        is judged by. `by` depends on the graphs for validation alone."""
        ...


class Example(NamedTuple):
    """A batch, a pytree: what a model is given, what is right about each item, and which of them count."""

    inputs: Inputs
    targets: Shaped[np.ndarray, " items"]
    counts: Bool[np.ndarray, " items"]


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of a fold by the number of the step, a `Source`."""

    fold: Fold
    training: Training
    sizes: Int64[np.ndarray, " graphs"]
    example: Callable[[Numbers], Example]

    @property
    def steps_an_epoch(self) -> int:
        return steps_an_epoch(self.fold, self.training)

    def batch(self, step: int) -> Example:
        epoch, place = divmod(step, self.steps_an_epoch)
        return self.example(trained(self.fold, epoch, self.sizes, self.training)[place])


class Learner:
    """One kind of model on one problem. All folds share what is compiled: a step of training and an answer, once for each shape
    of batch."""

    def __init__(self, make: Callable[[Array], GraphModel], problem: Problem, room: Bucket) -> None:
        """`make(key)` is a new model; all batches have the shape `room`. Models differ in their parameters alone."""
        self.make, self.problem, self.room = make, problem, room
        self.sizes, self.programs = node_counts(problem.dags), Programs()
        self.model = make(jax.random.key(0))
        self.answer = eqx.filter_jit(self._answer)

    def start(self, fold: Fold, training: Training) -> GraphModel:
        """A new model for a fold, with parameters of its own."""
        return self.make(jax.random.fold_in(jax.random.key(training.seed), fold.number))

    def task(self, fold: Fold, training: Training) -> Task:
        """What a model learns on a fold, and how it is judged after every epoch."""
        examples = [(numbers, self.example(numbers)) for numbers in judged(fold, self.sizes, training)]

        def measure(model: Any) -> Mapping[str, float]:
            return self.problem.measures(*self.answers(model, examples), fold)

        validation = Validation(measure, self.problem.by, self.problem.largest)
        return Task(self.loss, Batches(fold, training, self.sizes, self.example), validation, everything)

    def example(self, numbers: Numbers) -> Example:
        """A batch of these graphs for the model."""
        problem = self.problem
        chosen: list[int] = numbers.tolist()
        graph_batch = batch([problem.dags[number] for number in chosen], bucket=self.room)
        nodes, edges = ([rows[number] for number in chosen] for rows in (problem.nodes, problem.edges))
        inputs = self.model.prepare(graph_batch, nodes, edges)
        return Example(inputs, problem.targets(graph_batch, numbers), problem.counted(graph_batch))

    def answers(self, model: Any, examples: Sequence[tuple[Numbers, Example]]) -> tuple[Any, Numbers]:
        """What a model says of the items of these batches that count, and the graphs in the order of that."""
        said = [np.asarray(self.answer(model, example.inputs))[example.counts] for _, example in examples]
        return np.concatenate(said), np.concatenate([numbers for numbers, _ in examples])

    def loss(self, model: Any, example: Example, key: Array) -> tuple[Float[Array, ""], Mapping[str, Array]]:
        """The mean over the items that count."""
        del key
        losses = self.problem.losses(model(example.inputs), jnp.asarray(example.targets))
        return jnp.sum(jnp.where(example.counts, losses, 0)) / jnp.sum(example.counts), {}

    def _answer(self, model: Any, inputs: Inputs) -> Shaped[Array, " items"]:
        return self.problem.answers(model(inputs))


def everything(path: tuple[Any, ...], leaf: Any) -> bool:
    """Weights decay all alike, as those of the authors' code do."""
    del path, leaf
    return True
