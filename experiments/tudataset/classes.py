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


@dataclass(frozen=True, eq=False)
class Classes:
    """Logits of each graph of a batch, cross-entropy, and whether the largest logit is that of the right class: the share of
    graphs of which it is, `accuracy` of those for validation and `test` of those for the test."""

    graphs: GraphSet

    @property
    def by(self) -> str:
        return "accuracy"

    @property
    def largest(self) -> bool:
        return True

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

    def counted(self, graph_batch: Batch) -> Bool[np.ndarray, " graphs"]:
        return graph_batch.graph_mask

    def losses(self, outputs: Float[Array, "graphs classes"], targets: Int[Array, " graphs"]) -> Float[Array, " graphs"]:
        return optax.softmax_cross_entropy_with_integer_labels(outputs, targets)

    def answers(self, outputs: Float[Array, "graphs classes"]) -> Int[Array, " graphs"]:
        return jnp.argmax(outputs, axis=-1)

    def measures(self, answers: Any, graphs: Numbers, fold: Fold) -> dict[str, float]:
        right = answers == labels(self.graphs)[graphs]
        held_out = np.isin(graphs, fold.validation)
        return {"accuracy": float(right[held_out].mean()), "test": float(right[~held_out].mean())}
