"""What a check is given, and what it may have to say."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

import stmlang
from stmlang.cost.problem import DtypeName
from stmlang.cost.settings import ConfigValue, label, settings_dict
from stmlang.graph.batch import batch
from stmlang.graph.build import ragged_dag
from stmlang.graph.dag import DAG
from stmlang.oracle.derivative import Arguments
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.graphs import GraphScan
from stmlang.runtime.open import OpenScan
from stmlang.source.diagnostic import StabilityWarning
from stmlang.strategies.base import odd_settings
from stmlang.strategies.registry import strategies

Config = Mapping[str, ConfigValue]
Listed = tuple[int, tuple[tuple[int, int], ...]]
"""A graph that is given at run time: how many nodes it has, and its edges."""


class NotApplicable(Exception):
    """Raised by a check that has nothing to say about a trial or a way, so that it does not count as passed."""


@dataclass(frozen=True)
class Way:
    """A strategy with its settings."""

    strategy: str
    config: Config

    @property
    def label(self) -> str:
        """As the planner writes it: `chunkwise tile=7x7`."""
        return label(self.strategy, self.config)


@dataclass(frozen=True)
class Finding:
    """What a check has to object: `check` by name, `way` by label, what differs by how much and what was allowed."""

    check: str
    way: str
    what: str
    error: float
    allowed: float


@dataclass(frozen=True)
class Trial:
    """A scan with arguments: all that a check needs and a finding saves.

    `text` is a spec that reads no files and leaves no size open. `generator` names what made it, `values` how the values of
    its leaves are drawn (a name in `generators.PROFILES`), `seed` which of them. `graphs` are those of a batch, where the spec
    leaves them to run time.
    """

    text: str
    generator: str
    values: str
    seed: int
    graphs: tuple[Listed, ...] | None = None

    @property
    def dags(self) -> list[DAG]:
        """The graphs, if there are any."""
        found: list[DAG] = []
        for nodes, edges in self.graphs or ():
            ends = np.asarray(edges, np.int64).reshape(-1, 2)
            found.append(ragged_dag(nodes, ends[:, 0], ends[:, 1]))
        return found

    @property
    def real(self) -> npt.NDArray[np.bool_] | None:
        """Which nodes of a batch belong to a graph: what is computed at others means nothing. None where all nodes do."""
        return None if self.graphs is None else batch(self.dags).node_mask

    def scan(self, way: Way | None, dtype: str) -> CompiledScan | OpenScan | GraphScan:
        """The scan as the library compiles it: see `compiled`."""
        strategy, config = (None, None) if way is None else (way.strategy, dict(way.config))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StabilityWarning)  # nobody reads the specs that are drawn
            return stmlang.compile(self.text, dtype=cast(DtypeName, dtype), strategy=strategy, config=config, tuned=False)

    def compiled(self, way: Way | None, dtype: str) -> CompiledScan:
        """The scan, on its graphs, compiled for a way, or for the one that the planner would choose (None), whatever this
        machine was tuned to.

        Raises SpecError where the way cannot evaluate the scan.
        """
        found = self.scan(way, dtype)
        if isinstance(found, GraphScan) and self.graphs is not None:
            return found.at(self.dags)
        if not isinstance(found, CompiledScan):
            raise ValueError("a trial leaves nothing open, but this scan waits for the sizes of its axes or for graphs")
        return found

    def arguments(self, op: CompiledScan) -> Arguments:
        """Arguments in float64, initial states included: the same numbers for every way the trial is compiled."""
        from stmlang.fuzz.generators.values import random_arguments  # what makes trials stands in the same package

        return random_arguments(op, self.seed, self.values)


Check = Callable[[Trial, Way], Finding | None]
"""What a check is: pure, None where there is nothing to object. An exception other than `NotApplicable` is a finding too."""


def ways(op: CompiledScan) -> list[Way]:
    """Every strategy that can evaluate a scan; those with settings with a small one, and with odd ones, which divide nothing or
    reach beyond the end."""
    problem = op.compilation.program.problem
    return [
        Way(strategy.name, settings_dict(settings)) for strategy in strategies() for settings in odd_settings(strategy, problem)
    ]
