"""Training a model on one fold, epoch by epoch, so that it can be stopped and go on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from stmlang.experiments.tudataset.data import Fold, Graphs, Numbers, Part, epoch_order, evaluated, parts
from stmlang.experiments.tudataset.settings import Settings
from stmlang.graph import Bucket, batch
from stmlang.models.graph.inputs import GraphModel, Inputs


@dataclass(frozen=True)
class Epoch:
    """Mean loss over the graphs that the model learned from, and shares of right answers after it."""

    loss: float
    validation: float
    test: float


class Example(NamedTuple):
    """A batch, a pytree: what a model is given, the class of each graph, and which of them count."""

    inputs: Inputs
    labels: Int[np.ndarray, " graphs"]
    counts: Bool[np.ndarray, " graphs"]


@dataclass(frozen=True, eq=False)
class State:
    """Where training on a fold is: parameters, what the optimizer remembers, and the epochs behind it."""

    learned: Any
    optimizer: Any
    curve: tuple[Epoch, ...]


class Trainer:
    """One kind of model on one data set. All folds share its compiled functions: `step` and `predict` are compiled once for
    each shape, and `programs` counts how often that was."""

    def __init__(self, make: Callable[[Array], GraphModel], graphs: Graphs, room: Bucket, settings: Settings) -> None:
        """`make(key)` is a new model; all batches have the shape `room`."""
        self.graphs, self.room, self.settings = graphs, room, settings
        self.make = make
        self.model = make(jax.random.key(settings.seed))
        self.fixed = cast(GraphModel, eqx.filter(self.model, eqx.is_inexact_array, inverse=True))
        self.optimizer = optax.chain(
            optax.clip_by_global_norm(settings.clip),
            optax.scale_by_adam(),
            optax.add_decayed_weights(settings.weight_decay),
        )
        self.programs = 0
        self.step = jax.jit(self._step)
        self.predict = jax.jit(self._predict)

    @property
    def parameters(self) -> int:
        """How many numbers the model learns."""
        return sum(array.size for array in jax.tree.leaves(eqx.filter(self.model, eqx.is_inexact_array)))

    def start(self, fold: Fold) -> State:
        """A new model for a fold, with parameters of its own."""
        key = jax.random.fold_in(jax.random.key(self.settings.seed), fold.number)
        learned = cast(Any, eqx.filter(self.make(key), eqx.is_inexact_array))
        return State(learned, self.optimizer.init(cast(optax.Params, learned)), ())

    def epoch(self, state: State, fold: Fold) -> State:
        """The state after one more epoch. Same settings, same machine: same bits, wherever the state comes from."""
        number = len(state.curve)
        learned, optimizer, rate = state.learned, state.optimizer, np.float32(rate_at(number, self.settings))
        losses: list[Array] = []
        for part in parts(epoch_order(fold, number, self.settings), self.settings.batch):
            learned, optimizer, loss = cast(Any, self.step(learned, optimizer, rate, self.example(part)))
            losses.append(loss)
        right = self._right(learned, evaluated(fold))
        split = len(fold.validation)
        loss = float(np.sum(np.asarray(losses, np.float64))) / len(fold.train)
        reached = Epoch(loss, float(right[:split].mean()), float(right[split:].mean()))
        return State(learned, optimizer, (*state.curve, reached))

    def example(self, part: Part) -> Example:
        """A batch of these graphs for the model."""
        graphs = self.graphs
        numbers: list[int] = part.graphs.tolist()
        here = batch([graphs.dags[number] for number in numbers], bucket=self.room)
        nodes, edges = ([rows[number] for number in numbers] for rows in (graphs.nodes, graphs.edges))
        labels, counts = here.graphs(graphs.labels[part.graphs]), np.arange(self.room.graphs) < part.count
        return Example(self.model.prepare(here, nodes, edges), labels, counts)

    def _right(self, learned: Any, chosen: Numbers) -> Bool[np.ndarray, " chosen"]:
        """Whether the model is right about each graph."""
        found: list[np.ndarray] = []
        for part in parts(chosen, self.settings.batch):
            example = self.example(part)
            predicted = np.asarray(cast(Any, self.predict(learned, example.inputs)))
            found.append((predicted == example.labels)[: part.count])
        return np.concatenate(found)

    def _step(self, learned: Any, optimizer: Any, rate: Any, example: Example) -> tuple[Any, Any, Float[Array, ""]]:
        """One step; returns the loss summed over the graphs that count."""
        self.programs += 1  # a compiled function's Python runs when it is traced

        def loss(learned: Any) -> tuple[Array, Array]:
            logits = eqx.combine(learned, self.fixed)(example.inputs)
            each = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.asarray(example.labels))
            total = jnp.sum(jnp.where(example.counts, each, 0))
            return total / jnp.sum(example.counts), total

        def scaled(update: Array) -> Array:
            return -rate * update

        gradient, total = cast(Any, jax.grad(loss, has_aux=True)(learned))
        updates, optimizer = self.optimizer.update(gradient, optimizer, cast(optax.Params, learned))
        return cast(Any, eqx.apply_updates(learned, jax.tree.map(scaled, updates))), optimizer, total

    def _predict(self, learned: Any, inputs: Inputs) -> Int[Array, " graphs"]:
        self.programs += 1
        return jnp.argmax(eqx.combine(learned, self.fixed)(inputs), axis=-1)


def rate_at(epoch: int, settings: Settings) -> float:
    """The learning rate of an epoch, counted from 0: it rises in equal steps, then falls along half a cosine, to zero after the
    last. A run that is not longer than its warm-up only rises."""
    if epoch < settings.warmup:
        return settings.rate * (epoch + 1) / settings.warmup
    return settings.rate * 0.5 * (1 + math.cos(math.pi * (epoch - settings.warmup) / (settings.epochs - settings.warmup)))


def best(curve: tuple[Epoch, ...]) -> int:
    """The epoch whose test accuracy counts: the first of those with the best validation accuracy."""
    return int(np.argmax([epoch.validation for epoch in curve]))


def digest(state: State) -> str:
    """SHA-256 of the parameters, in order."""
    found = hashlib.sha256()
    for array in jax.tree.leaves(state.learned):
        found.update(np.asarray(array).tobytes())
    return found.hexdigest()


def packed(state: State) -> list[np.ndarray]:
    """Every array of a state, in order."""
    return [np.asarray(array) for array in jax.tree.leaves((state.learned, state.optimizer))]


def unpacked(like: State, arrays: list[np.ndarray], curve: tuple[Epoch, ...]) -> State:
    """The state that holds these arrays. Raises ValueError where they are not those of a state like this one."""
    leaves, structure = cast(tuple[list[Array], Any], jax.tree.flatten((like.learned, like.optimizer)))
    if [(leaf.shape, leaf.dtype) for leaf in leaves] != [(array.shape, array.dtype) for array in arrays]:
        raise ValueError("these are the arrays of another model")
    learned, optimizer = jax.tree.unflatten(structure, [jnp.asarray(array) for array in arrays])
    return replace(like, learned=learned, optimizer=optimizer, curve=curve)
