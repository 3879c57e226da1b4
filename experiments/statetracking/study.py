"""The study, run by run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from rich.console import Console

from stmlang.experiments.statetracking.groups import Drawn, Group, Nodes, Words, group, words
from stmlang.experiments.statetracking.models import made
from stmlang.experiments.statetracking.settings import Model, Problem, Run, Settings, group_of
from stmlang.experiments.training.fitting import Task, fit
from stmlang.experiments.training.state import parameters

TEST_SEED = 1
TEST_BATCH = 32


@dataclass(frozen=True)
class Judged:
    """Words of one size: the share of all products that are right, and of those on the longest path."""

    size: int
    nodes: float
    last: float


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    problem: Problem
    model: Model
    seed: int
    parameters: int
    seconds: float
    loss: float
    tests: tuple[Judged, ...]


def loss(model: Any, batch: Words, key: Array) -> tuple[Array, dict[str, Array]]:
    """The mean cross entropy of the products that count, and the share of them that are right."""
    del key
    logits = jax.vmap(model)(batch.tokens)
    entropy = optax.softmax_cross_entropy_with_integer_labels(logits, batch.labels)
    right = jnp.argmax(logits, axis=-1) == batch.labels
    return jnp.mean(entropy, where=batch.counted), {"accuracy": jnp.mean(right, dtype=jnp.float32, where=batch.counted)}


def tested(model: Any, group: Group, nodes: Nodes, count: int) -> Judged:
    """A model on words that depend on the group and where they lie alone: every model is asked the same."""
    drawn = words(group, nodes, count, np.random.default_rng([TEST_SEED, group.order, nodes.size]))

    @eqx.filter_jit
    def guesses(model: Any, tokens: Array) -> Array:
        return jnp.argmax(jax.vmap(model)(tokens), axis=-1)

    batches = range(0, count, TEST_BATCH)
    answers = np.concatenate([guesses(model, jnp.asarray(drawn.tokens[at : at + TEST_BATCH])) for at in batches])
    right = (answers == drawn.labels).reshape(count, -1)
    return Judged(nodes.size, float(right[:, 1:].mean()), float(right[:, -1].mean()))


def trained(run: Run, settings: Settings, console: Console) -> Result:
    """Train a model, or go on with its training, and test it. Its initial parameters and its words are those of the seed."""
    elements = group(group_of(run.problem))
    source = Drawn(elements, run.nodes, run.training.batch, run.training.seed, settings.steps, run.growing)
    fitted = fit(made(run, elements.order), Task(loss, source), run.training, console, run)
    tests = tuple(tested(fitted.model, elements, nodes, settings.count) for nodes in settings.tested(run.problem))
    said = ", ".join(f"{test.nodes:.1%} at {test.size}" for test in tests)
    console.print(f"{run.problem}, {run.model}, seed {run.training.seed}: {said}")
    last = fitted.records[-1]["loss"]
    return Result(run.problem, run.model, run.training.seed, parameters(fitted.model), fitted.seconds, last, tests)


def run(settings: Settings, console: Console) -> list[Result]:
    """Train and test every model on every problem."""
    return [trained(run, settings, console) for problem in dict.fromkeys(settings.problems) for run in settings.runs(problem)]
