"""The task of the study: how often each gate is on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int64

from stmlang.experiments.circuits.data import Cones
from stmlang.experiments.circuits.settings import BANDS
from stmlang.experiments.folds.graphs import Fold, Numbers
from stmlang.graph import DAG, Batch
from stmlang.models.graph.inputs import Features


@dataclass(frozen=True)
class Errors:
    """The mean absolute error over gates, and over those of each band of levels, None where there are none."""

    mean: float
    bands: tuple[float | None, ...]

    @classmethod
    def of(cls, errors: Float64[np.ndarray, " gates"], levels: Int64[np.ndarray, " gates"]) -> Errors:
        bands: list[float | None] = []
        for first, last in BANDS:
            inside = errors[(levels >= first) & (levels <= (last or np.inf))]
            bands.append(float(inside.mean()) if inside.size else None)
        return cls(float(errors.mean()), tuple(bands))


@dataclass(frozen=True)
class Epoch:
    """Mean absolute errors: over the gates that the model learned from, while it did; after the epoch over those for validation
    and those for the test, and of these by band of levels."""

    loss: float
    validation: float
    test: float
    bands: Sequence[float | None]

    @property
    def merit(self) -> float:
        return -self.validation


@dataclass(frozen=True, eq=False)
class Probability:
    """One output for each node of a batch, whose sigmoid is the probability; the loss is the absolute error. Gates count."""

    data: Cones

    @property
    def dags(self) -> tuple[DAG, ...]:
        return self.data.dags

    @property
    def nodes(self) -> Features:
        return self.data.nodes

    @property
    def edges(self) -> Features:
        return self.data.edges

    def targets(self, graph_batch: Batch, graphs: Numbers) -> Float[np.ndarray, " nodes"]:
        return graph_batch.nodes([self.data.probability[number] for number in graphs.tolist()]).astype(np.float32)

    def counted(self, graph_batch: Batch, count: int) -> Bool[np.ndarray, " nodes"]:
        gates = np.bincount(graph_batch.head, minlength=graph_batch.bucket.nodes) > 0
        return gates & graph_batch.node_mask & (graph_batch.graph < count)

    def losses(self, outputs: Float[Array, "nodes 1"], targets: Float[Array, " nodes"]) -> Float[Array, " nodes"]:
        return jnp.abs(self.answers(outputs) - targets)

    def answers(self, outputs: Float[Array, "nodes 1"]) -> Float[Array, " nodes"]:
        return jax.nn.sigmoid(outputs[:, 0])

    def judged(self, answers: Any, targets: Any) -> Float64[np.ndarray, " nodes"]:
        return np.abs(answers.astype(np.float64) - targets)

    def reached(self, loss: float, judged: Float64[np.ndarray, " evaluated"], fold: Fold) -> Epoch:
        levels = self.levels(fold.test)
        test = Errors.of(judged[len(judged) - len(levels) :], levels)
        return Epoch(loss, float(judged[: len(judged) - len(levels)].mean()), test.mean, test.bands)

    def levels(self, chosen: Numbers) -> Int64[np.ndarray, " gates"]:
        """Of all gates of these graphs, one after the other."""
        return self._of_gates(self.data.level, chosen)

    def _of_gates(self, values: Sequence[Any], chosen: Numbers) -> Any:
        return np.concatenate([values[number][self.data.level[number] > 0] for number in chosen.tolist()])

    def always_the_mean(self, fold: Fold) -> Errors:
        """Of the answer that is the mean over the gates that models learn from."""
        mean = self._of_gates(self.data.probability, fold.train).mean()
        return Errors.of(np.abs(self._of_gates(self.data.probability, fold.test) - mean), self.levels(fold.test))

    def as_if_independent(self, fold: Fold) -> Errors:
        """Of the closed form that multiplies."""
        pair = (self._of_gates(values, fold.test) for values in (self.data.probability, self.data.independent))
        exact, independent = pair
        return Errors.of(np.abs(independent - exact), self.levels(fold.test))
