"""What a check is given, and what it may have to say."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import numpy.typing as npt

import stmlang
from stmlang.cost.problem import DtypeName
from stmlang.cost.settings import Config, ConfigValue, freeze, label, settings_dict
from stmlang.fuzz.memory import remembered
from stmlang.graph.batch import batch
from stmlang.graph.build import ragged_dag
from stmlang.graph.dag import DAG
from stmlang.oracle.derivative import Arguments
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.graphs import GraphScan
from stmlang.runtime.open import OpenScan
from stmlang.source.diagnostic import StabilityWarning
from stmlang.strategies.base import odd_settings
from stmlang.strategies.registry import without_kernels

Settings = Mapping[str, ConfigValue]
Listed = tuple[int, tuple[tuple[int, int], ...]]
"""A graph that is given at run time: how many nodes it has, and its edges."""


class NotApplicable(Exception):
    """Raised by a check that has nothing to say about a trial or a way, so that it does not count as passed."""


class NothingClaimed(NotApplicable):
    """Raised where that is because of the values: of others of the same trial there may be something to say."""


@dataclass(frozen=True)
class Way:
    """A strategy with its settings."""

    strategy: str
    config: Settings

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


def _graph(listed: Listed) -> DAG:
    nodes, edges = listed
    ends = np.asarray(edges, np.int64).reshape(-1, 2)
    return ragged_dag(nodes, ends[:, 0], ends[:, 1])


@dataclass(frozen=True)
class Trial:
    """A scan with arguments: all that a check needs and a finding saves.

    `text` is a spec that reads no files and leaves no size open. `generator` names what made it, `values` how the values of
    its leaves are drawn (a name in `generators.PROFILES`), `seed` and `draw` which of them: a compiled program is tried on many
    draws of a seed. `graphs` are those of a batch, where the spec leaves them to run time. `beside` are the draws that the
    oracles look at together with this one, to save time.
    """

    text: str
    generator: str
    values: str
    seed: int
    graphs: tuple[Listed, ...] | None = None
    draw: int = 0
    beside: range | None = field(default=None, compare=False, repr=False, kw_only=True)

    def draws(self, count: int) -> list[Trial]:
        """So many trials of other values each, the first with its own."""
        beside = range(self.draw, self.draw + count)
        return [replace(self, draw=draw, beside=beside) for draw in beside]

    @property
    def together(self) -> range:
        """The draws that the oracles look at together, its own among them."""
        return self.beside or range(self.draw, self.draw + 1)

    def another(self) -> Trial:
        """The trial with other values of the same kind, drawn anew whatever its own are."""
        return Trial(self.text, self.generator, self.values, self.seed + 1, self.graphs, self.draw)

    @property
    def dags(self) -> list[DAG]:
        """The graphs, if there are any."""
        return [_graph(listed) for listed in self.graphs or ()]

    @property
    def real(self) -> npt.NDArray[np.bool_] | None:
        """Which nodes of a batch belong to a graph: what is computed at others means nothing. None where all nodes do."""
        return None if self.graphs is None else batch(self.dags).node_mask

    def scan(self, way: Way | None, dtype: str) -> CompiledScan | OpenScan | GraphScan:
        """The scan as the library compiles it: see `compiled`."""
        return _scan(self.text, None if way is None else (way.strategy, freeze(way.config)), dtype)

    def compiled(self, way: Way | None, dtype: str) -> CompiledScan:
        """The scan, on its graphs, compiled for a way, or for the one that the planner would choose (None), whatever this
        machine was tuned to. The last few are kept.

        Raises SpecError where the way cannot evaluate the scan.
        """
        return _compiled(self.text, self.graphs, None if way is None else (way.strategy, freeze(way.config)), dtype)

    def arguments(self, op: CompiledScan) -> Arguments:
        """Arguments in float64, initial states included: the same numbers for every way the trial is compiled."""
        from stmlang.fuzz.generators.values import random_arguments  # what makes trials stands in the same package

        return random_arguments(op, self.seed, self.values, self.draw)


KEPT = 16
"""Compiled scans that are kept."""


@remembered(KEPT)
def _scan(text: str, way: tuple[str, Config] | None, dtype: str) -> CompiledScan | OpenScan | GraphScan:
    strategy, config = (None, None) if way is None else (way[0], dict(way[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)  # nobody reads the specs that are drawn
        op = stmlang.compile(text, dtype=cast(DtypeName, dtype), strategy=strategy, config=config, tuned=False)
        return cast(CompiledScan | OpenScan | GraphScan, op)


@remembered(KEPT)
def _compiled(text: str, graphs: tuple[Listed, ...] | None, way: tuple[str, Config] | None, dtype: str) -> CompiledScan:
    scan = _scan(text, way, dtype)
    if isinstance(scan, GraphScan) and graphs is not None:
        return scan.at([_graph(listed) for listed in graphs])
    if not isinstance(scan, CompiledScan):
        raise ValueError("a trial leaves nothing open, but this scan waits for the sizes of its axes or for graphs")
    return scan


Check = Callable[[Trial, Way], Finding | None]
"""What a check is: pure, None where there is nothing to object. An exception other than `NotApplicable` is a finding too."""


def ways(op: CompiledScan) -> list[Way]:
    """Every strategy that can evaluate a scan; those with settings with a small one, and with odd ones, which divide nothing or
    reach beyond the end."""
    problem = op.compilation.program.problem
    return [
        Way(strategy.name, settings_dict(settings))
        for strategy in without_kernels()
        for settings in odd_settings(strategy, problem)
    ]
