"""Training a model on one fold, epoch by epoch, so that it can be stopped and go on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Shaped

from stmlang.experiments.folds.graphs import Batched, Fold, Minibatch, Numbers, epoch_order, evaluated, minibatches
from stmlang.graph import DAG, Batch, Bucket, batch
from stmlang.models.graph.inputs import Features, GraphModel, Inputs


class Training(Batched, Protocol):
    """Settings that training depends on. `rate` is the peak of a cosine that falls from epoch to epoch, after `warmup` epochs
    in which it rises; gradients are cut to the norm `clip`. `deciding` are all settings that numbers depend on, by name."""

    @property
    def rate(self) -> float: ...
    @property
    def warmup(self) -> int: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def clip(self) -> float: ...
    @property
    def deciding(self) -> dict[str, Any]: ...


class Reached(Protocol):
    """What an epoch came to, a dataclass: the mean loss over what the model learned from, and more."""

    @property
    def loss(self) -> float: ...
    @property
    def merit(self) -> float:
        """What the best epoch has most of. It depends on the graphs for validation alone."""
        ...


E = TypeVar("E", bound=Reached)
Out = TypeVar("Out", bound=Reached, covariant=True)


class Task(Protocol[Out]):
    """A set of graphs with features, and what a model is to say of each item of a batch: each graph, or each node."""

    @property
    def dags(self) -> tuple[DAG, ...]: ...
    @property
    def nodes(self) -> Features: ...
    @property
    def edges(self) -> Features: ...
    def targets(self, graph_batch: Batch, graphs: Numbers) -> Shaped[np.ndarray, " items"]:
        """What is right, for every item of a batch of these graphs, padding included."""
        ...

    def counted(self, graph_batch: Batch, count: int) -> Bool[np.ndarray, " items"]:
        """The items that count, all of them of the first `count` graphs."""
        ...

    def losses(self, outputs: Float[Array, "items outputs"], targets: Shaped[Array, " items"]) -> Float[Array, " items"]: ...
    def answers(self, outputs: Float[Array, "items outputs"]) -> Shaped[Array, " items"]: ...
    def judged(self, answers: Any, targets: Any) -> Shaped[np.ndarray, " counted"]:
        """How good answers are, where they count."""
        ...

    def reached(self, loss: float, judged: Shaped[np.ndarray, " counted"], fold: Fold) -> Out:
        """What an epoch came to, by what was judged of the graphs of `evaluated(fold)`, one after the other."""
        ...


class Example(NamedTuple):
    """A batch, a pytree: what a model is given, what is right about each item, and which of them count."""

    inputs: Inputs
    targets: Shaped[np.ndarray, " items"]
    counts: Bool[np.ndarray, " items"]


@dataclass(frozen=True, eq=False)
class State(Generic[E]):
    """Where training on a fold is: parameters, what the optimizer remembers, and the epochs behind it."""

    learned: Any
    optimizer: Any
    curve: tuple[E, ...]


class Trainer(Generic[E]):
    """One kind of model on one task. All folds share its compiled functions: `step` and `predict` are compiled once for each
    shape, and `programs` counts how often that was."""

    def __init__(self, make: Callable[[Array], GraphModel], task: Task[E], room: Bucket, settings: Training) -> None:
        """`make(key)` is a new model; all batches have the shape `room`."""
        self.task, self.room, self.settings = task, room, settings
        self.make = make
        self.model = make(jax.random.key(settings.seed))
        self.fixed = cast(GraphModel, eqx.filter(self.model, eqx.is_inexact_array, inverse=True))
        self.optimizer = optax.chain(
            optax.clip_by_global_norm(settings.clip),
            optax.scale_by_adam(),
            optax.add_decayed_weights(settings.weight_decay),
        )
        self.programs = 0
        self.judging: tuple[int, list[Example]] | None = None
        self.step = jax.jit(self._step)
        self.predict = jax.jit(self._predict)

    @property
    def parameters(self) -> int:
        """How many numbers the model learns."""
        return sum(array.size for array in jax.tree.leaves(eqx.filter(self.model, eqx.is_inexact_array)))

    def start(self, fold: Fold) -> State[E]:
        """A new model for a fold, with parameters of its own."""
        key = jax.random.fold_in(jax.random.key(self.settings.seed), fold.number)
        learned = cast(Any, eqx.filter(self.make(key), eqx.is_inexact_array))
        return State(learned, self.optimizer.init(cast(optax.Params, learned)), ())

    def epoch(self, state: State[E], fold: Fold) -> State[E]:
        """The state after one more epoch. Same settings, same machine: same bits, wherever the state comes from."""
        number = len(state.curve)
        learned, optimizer, rate = state.learned, state.optimizer, np.float32(rate_at(number, self.settings))
        losses: list[Array] = []
        items = 0
        for minibatch in minibatches(epoch_order(fold, number, self.settings), self.settings.batch):
            example = self.example(minibatch)
            learned, optimizer, loss = cast(Any, self.step(learned, optimizer, rate, example))
            losses.append(loss)
            items += int(example.counts.sum())
        loss = float(np.sum(np.asarray(losses, np.float64))) / items
        return State(learned, optimizer, (*state.curve, self.task.reached(loss, self._judged(learned, fold), fold)))

    def example(self, minibatch: Minibatch) -> Example:
        """A batch of these graphs for the model."""
        task = self.task
        numbers: list[int] = minibatch.graphs.tolist()
        graph_batch = batch([task.dags[number] for number in numbers], bucket=self.room)
        nodes, edges = ([rows[number] for number in numbers] for rows in (task.nodes, task.edges))
        return Example(
            self.model.prepare(graph_batch, nodes, edges),
            task.targets(graph_batch, minibatch.graphs),
            task.counted(graph_batch, minibatch.count),
        )

    def _examples(self, fold: Fold) -> list[Example]:
        """The batches that a fold is judged by, the same after every epoch."""
        if self.judging is None or self.judging[0] != fold.number:
            self.judging = (
                fold.number,
                [self.example(minibatch) for minibatch in minibatches(evaluated(fold), self.settings.batch)],
            )
        return self.judging[1]

    def _judged(self, learned: Any, fold: Fold) -> Shaped[np.ndarray, " counted"]:
        """How good the model's answers are about the graphs of `evaluated(fold)`."""
        judged: list[np.ndarray] = []
        for example in self._examples(fold):
            answers = np.asarray(cast(Any, self.predict(learned, example.inputs)))
            judged.append(self.task.judged(answers, example.targets)[example.counts])
        return np.concatenate(judged)

    def _step(self, learned: Any, optimizer: Any, rate: Any, example: Example) -> tuple[Any, Any, Float[Array, ""]]:
        """One step; returns the loss summed over the items that count."""
        self.programs += 1  # a compiled function's Python runs when it is traced

        def loss(learned: Any) -> tuple[Array, Array]:
            outputs = eqx.combine(learned, self.fixed)(example.inputs)
            total = jnp.sum(jnp.where(example.counts, self.task.losses(outputs, jnp.asarray(example.targets)), 0))
            return total / jnp.sum(example.counts), total

        def scaled(update: Array) -> Array:
            return -rate * update

        gradient, total = cast(Any, jax.grad(loss, has_aux=True)(learned))
        updates, optimizer = self.optimizer.update(gradient, optimizer, cast(optax.Params, learned))
        return cast(Any, eqx.apply_updates(learned, jax.tree.map(scaled, updates))), optimizer, total

    def _predict(self, learned: Any, inputs: Inputs) -> Shaped[Array, " items"]:
        self.programs += 1
        return self.task.answers(eqx.combine(learned, self.fixed)(inputs))


def rate_at(epoch: int, settings: Training) -> float:
    """The learning rate of an epoch, counted from 0: it rises in equal steps, then falls along half a cosine, to zero after the
    last. A run that is not longer than its warm-up only rises."""
    steps = max(settings.warmup, 1)
    rising = optax.linear_schedule(settings.rate / steps, settings.rate, max(steps - 1, 1))
    falling = optax.cosine_decay_schedule(settings.rate, max(settings.epochs - settings.warmup, 1))
    return float(np.asarray(optax.join_schedules([rising, falling], [settings.warmup])(epoch)))


def best(curve: tuple[E, ...]) -> int:
    """The epoch whose test counts: the first of those with the most merit."""
    return int(np.argmax([epoch.merit for epoch in curve]))


def digest(state: State[E]) -> str:
    """SHA-256 of the parameters, in order."""
    hasher = hashlib.sha256()
    for array in jax.tree.leaves(state.learned):
        hasher.update(np.asarray(array).tobytes())
    return hasher.hexdigest()


def packed(state: State[E]) -> list[np.ndarray]:
    """Every array of a state, in order."""
    return [np.asarray(array) for array in jax.tree.leaves((state.learned, state.optimizer))]


def unpacked(like: State[E], arrays: list[np.ndarray], curve: tuple[E, ...]) -> State[E]:
    """The state that holds these arrays. Raises ValueError where they are not those of a state like this one."""
    leaves, structure = cast(tuple[list[Array], Any], jax.tree.flatten((like.learned, like.optimizer)))
    if [(leaf.shape, leaf.dtype) for leaf in leaves] != [(array.shape, array.dtype) for array in arrays]:
        raise ValueError("these are the arrays of another model")
    learned, optimizer = jax.tree.unflatten(structure, [jnp.asarray(array) for array in arrays])
    return replace(like, learned=learned, optimizer=optimizer, curve=curve)
