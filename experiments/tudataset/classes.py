"""The task of the study: of which class each graph is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from stmlang.experiments.folds.graphs import Fold, Numbers
from stmlang.experiments.tudataset.data import labels
from stmlang.graph import DAG, Batch, GraphSet
from stmlang.models.graph.inputs import Features


@dataclass(frozen=True)
class Epoch:
    """Mean loss over the graphs that the model learned from, and shares of right answers after it."""

    loss: float
    validation: float
    test: float

    @property
    def merit(self) -> float:
        return self.validation


@dataclass(frozen=True, eq=False)
class Classes:
    """Logits of each graph of a batch, cross-entropy, and whether the largest logit is that of the right class."""

    graphs: GraphSet

    @property
    def dags(self) -> tuple[DAG, ...]:
        return self.graphs.dags

    @property
    def nodes(self) -> Features:
        return self.graphs.nodes

    @property
    def edges(self) -> Features:
        return self.graphs.edges

    def targets(self, graph_batch: Batch, graphs: Numbers) -> Int[np.ndarray, " graphs"]:
        return graph_batch.graphs(labels(self.graphs)[graphs])

    def counted(self, graph_batch: Batch, count: int) -> Bool[np.ndarray, " graphs"]:
        return np.arange(graph_batch.bucket.graphs) < count

    def losses(self, outputs: Float[Array, "graphs classes"], targets: Int[Array, " graphs"]) -> Float[Array, " graphs"]:
        return optax.softmax_cross_entropy_with_integer_labels(outputs, targets)

    def answers(self, outputs: Float[Array, "graphs classes"]) -> Int[Array, " graphs"]:
        return jnp.argmax(outputs, axis=-1)

    def judged(self, answers: Any, targets: Any) -> Bool[np.ndarray, " graphs"]:
        return answers == targets

    def reached(self, loss: float, judged: Bool[np.ndarray, " evaluated"], fold: Fold) -> Epoch:
        split = len(fold.validation)
        return Epoch(loss, float(judged[:split].mean()), float(judged[split:].mean()))
