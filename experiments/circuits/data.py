"""The data of the study: sub-circuits of real circuits with the probability of every gate, and folds that part circuits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64, Int64

from stmlang.experiments.circuits.aig import aig_of
from stmlang.experiments.circuits.cones import Cone, cones
from stmlang.experiments.circuits.probability import EXACT_INPUTS, as_if_independent, probabilities
from stmlang.experiments.circuits.settings import FOLDS, Settings
from stmlang.experiments.folds.graphs import Fold
from stmlang.experiments.training.errors import TrainingError
from stmlang.graph import DAG
from stmlang.graph.build import ragged_dag
from stmlang.graph.readers import read_netlist
from stmlang.graph.readers.netlist import SUFFIXES

SAME = {"c1355": "c499"}
"""Circuits that compute the same as another: c1355 is c499 with each XOR spelled out. They always stand in the same part."""


@dataclass(frozen=True, eq=False)
class Cones:
    """Sub-circuits, one after the other. Nodes are inputs and AND gates, edges lead from a fanin to the gate.

    Features of a node say which of the two it is; the one feature of an edge is 1 where it inverts. By node, `probability` is
    what is to be found, `independent` what the closed form says, and `level` its depth, 0 for inputs.
    """

    circuits: tuple[str, ...]
    circuit: Int64[np.ndarray, " cones"]
    dags: tuple[DAG, ...]
    nodes: tuple[Float32[np.ndarray, "nodes 2"], ...]
    edges: tuple[Float32[np.ndarray, "edges 1"], ...]
    probability: tuple[Float64[np.ndarray, " nodes"], ...]
    independent: tuple[Float64[np.ndarray, " nodes"], ...]
    level: tuple[Int64[np.ndarray, " nodes"], ...]

    def __len__(self) -> int:
        return len(self.dags)

    @property
    def sampled(self) -> int:
        """How many have too many inputs for all patterns of them to be tried."""
        return sum(int((level == 0).sum()) > EXACT_INPUTS for level in self.level)


def graph_of(cone: Cone) -> DAG:
    """An edge for each fanin, gate by gate."""
    return ragged_dag(cone.size, cone.fanins.reshape(-1) >> 1, cone.inputs + np.arange(2 * len(cone.fanins)) // 2)


def load(settings: Settings) -> Cones:
    """The sub-circuits of all circuits in the data folder, in the order of their names. The same form occurs once only.

    Raises SpecError for a file that cannot be read, TrainingError where there are too few circuits.
    """
    seen: set[int] = set()
    names: list[str] = []
    selected: list[Cone] = []
    circuit: list[int] = []
    for path in paths(settings.data):
        random = np.random.default_rng([settings.split, *path.stem.encode()])
        aig = aig_of(read_netlist(str(path)), path.stem)
        taken = list(cones(aig, count=settings.cones, least=settings.least, most=settings.most, seen=seen, random=random))
        if taken:
            circuit += [len(names)] * len(taken)
            names.append(path.stem)
            selected += taken
    if len({SAME.get(name, name) for name in names}) < FOLDS:
        message = (
            f"{settings.data} holds {len(names)} circuits with {settings.least} gates before one, too few for {FOLDS} parts"
        )
        raise TrainingError(message, f"give a folder with BENCH or AIGER files, {', '.join(SUFFIXES)}: `--data`")
    random = np.random.default_rng([settings.split, 1])
    return Cones(
        circuits=tuple(names),
        circuit=np.asarray(circuit, np.int64),
        dags=tuple(graph_of(cone) for cone in selected),
        nodes=tuple(np.eye(2, dtype=np.float32)[(np.arange(cone.size) >= cone.inputs).astype(int)] for cone in selected),
        edges=tuple((cone.fanins.reshape(-1, 1) & 1).astype(np.float32) for cone in selected),
        probability=tuple(probabilities(cone, random) for cone in selected),
        independent=tuple(as_if_independent(cone) for cone in selected),
        level=tuple(cone.levels for cone in selected),
    )


def paths(folder: Path) -> list[Path]:
    """The files of circuits below a folder by name, the first one of each name."""
    by_name: dict[str, Path] = {}
    for path in sorted(folder.rglob("*"), key=lambda path: (path.stem, path)):
        if path.suffix.lower() in SUFFIXES:
            by_name.setdefault(path.stem, path)
    return list(by_name.values())


def folds(dataset: Cones, settings: Settings) -> list[Fold]:
    """All five. Circuits are dealt out to five parts; in turn one is for the test, the next one for validation, and models
    learn from the other three. No circuit is in two of them."""
    kinds = sorted({SAME.get(name, name) for name in dataset.circuits})
    dealt: list[int] = np.random.default_rng(settings.split).permutation(len(kinds)).tolist()
    share_of = {kinds[kind]: place % FOLDS for place, kind in enumerate(dealt)}
    shares = np.asarray([share_of[SAME.get(name, name)] for name in dataset.circuits])[dataset.circuit]

    def chosen(*numbers: int) -> Int64[np.ndarray, " chosen"]:
        return np.flatnonzero(np.isin(shares, [number % FOLDS for number in numbers]))

    return [Fold(n, train=chosen(n + 2, n + 3, n + 4), validation=chosen(n + 1), test=chosen(n)) for n in range(FOLDS)]
