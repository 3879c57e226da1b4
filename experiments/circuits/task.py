"""The task of the study: how often each gate is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    @property
    def measures(self) -> dict[str, float]:
        """By name; a band without gates has none."""
        by_band = zip(band_names(), self.bands, strict=True)
        return {"test": self.mean, **{f"test {name}": error for name, error in by_band if error is not None}}

    @classmethod
    def measured(cls, measures: Mapping[str, float]) -> Errors:
        """Of `measures`."""
        return cls(measures["test"], tuple(measures.get(f"test {name}") for name in band_names()))


def band_names() -> list[str]:
    """Of levels, as they stand in the table."""
    return [f"{first}+" if last is None else f"{first}-{last}" for first, last in BANDS]


@dataclass(frozen=True, eq=False)
class Probability:
    """One output for each node of a batch, whose sigmoid is the probability; the loss is the absolute error. Gates count.
    Measures are mean absolute errors: `error` over the gates for validation, `test` over those for the test, and of these by
    band."""

    data: Cones

    @property
    def by(self) -> str:
        return "error"

    @property
    def largest(self) -> bool:
        return False

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

    def counted(self, graph_batch: Batch) -> Bool[np.ndarray, " nodes"]:
        gates = np.bincount(graph_batch.head, minlength=graph_batch.bucket.nodes) > 0
        return gates & graph_batch.node_mask

    def losses(self, outputs: Float[Array, "nodes 1"], targets: Float[Array, " nodes"]) -> Float[Array, " nodes"]:
        return jnp.abs(self.answers(outputs) - targets)

    def answers(self, outputs: Float[Array, "nodes 1"]) -> Float[Array, " nodes"]:
        return jax.nn.sigmoid(outputs[:, 0])

    def measures(self, answers: Any, graphs: Numbers, fold: Fold) -> dict[str, float]:
        right = self._of_gates(self.data.probability, graphs).astype(np.float32)
        errors = np.abs(answers.astype(np.float64) - right)
        held_out = self._of_gates([np.full(len(level), n) for n, level in enumerate(self.data.level)], graphs)
        held_out = np.isin(held_out, fold.validation)
        test = Errors.of(errors[~held_out], self.levels(graphs)[~held_out])
        return {"error": float(errors[held_out].mean()), **test.measures}

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
