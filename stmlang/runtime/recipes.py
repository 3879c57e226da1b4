"""How the tables of a scan whose graphs come at run time are made, without the scan having been compiled here.

Tables follow from the scan, the way it is evaluated, and the graphs. A recipe holds the first two, as plain values, with the
digest of the tables of a graph that is always the same: it tells where another version of the compiler would make other tables,
for which the stored program was not made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from stmlang.compiler import Call, prepare
from stmlang.cost.candidate import Choice
from stmlang.cost.problem import Problem
from stmlang.cost.settings import settings_dict
from stmlang.graph.batch import SPARE_NODES, Batch, Bucket, batch
from stmlang.graph.batchable import refuse_above_bounds, refuse_branching
from stmlang.graph.build import ragged_dag
from stmlang.graph.capacity import Capacity
from stmlang.program.program import Program
from stmlang.scan.scan import Scan
from stmlang.scan.store import scan_from_json, scan_json
from stmlang.scan.topology import Runtime
from stmlang.strategies.registry import stored_settings

if TYPE_CHECKING:
    from stmlang.runtime.compiled import Compilation


@dataclass(frozen=True, eq=False)
class Recipe:
    """`scan` as it was declared, and what it was compiled for."""

    scan: Scan
    call: Call
    choice: Choice
    room: Capacity

    @classmethod
    def of(cls, compilation: Compilation) -> Recipe:
        """The recipe of a scan whose graphs come at run time."""
        program = compilation.program
        assert program.problem.room is not None
        return cls(compilation.declared, Call.of(program.problem), program.choice, program.problem.room)

    @cached_property
    def _problem(self) -> Problem:
        return prepare(self.scan, self.call, room=self.room).problem

    def tables(self, graphs: Batch) -> list[np.ndarray]:
        """The tables of a batch in the recipe's room, in the order in which JAX flattens them. Raises SpecError (STM3407,
        STM3507) where a graph is none that the scan is for."""
        topology = self.scan.topology
        assert isinstance(topology, Runtime)
        if topology.tree:
            refuse_branching(graphs.dags)
        refuse_above_bounds(graphs.dags, topology.nodes, topology.edges)
        return [np.asarray(table) for table in jax.tree.leaves(Program(self._problem, graphs.dag, self.choice).tables)]

    @property
    def probe(self) -> Batch:
        """The probe of its room."""
        topology = self.scan.topology
        assert isinstance(topology, Runtime)
        return probe_of(topology, self.room)

    def digest(self) -> str:
        """A hash of the tables of the probe."""
        hasher = hashlib.sha256()
        for table in self.tables(self.probe):
            hasher.update(f"{table.dtype}{table.shape}".encode())
            hasher.update(np.ascontiguousarray(table).tobytes())
        return hasher.hexdigest()

    def same(self, compilation: Compilation) -> bool:
        """Whether a scan was compiled for what this recipe is for, so that its tables are those of the recipe."""
        return compilation.at_run_time and self._plain() == Recipe.of(compilation)._plain()

    def stored(self) -> dict[str, Any]:
        """The recipe as JSON values."""
        return {**self._plain(), "digest": self.digest()}

    def _plain(self) -> dict[str, Any]:
        values = settings_dict(self.choice.settings)
        config = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        choice = {"strategy": self.choice.strategy, "config": config}
        return {**asdict(self.call), **choice, "scan": scan_json(self.scan), "room": asdict(self.room)}


def probe_of(topology: Runtime, room: Capacity) -> Batch:
    """A batch of one chain of up to three nodes, or of none where there is no room for it: the same for all."""
    nodes = min(3, topology.nodes, topology.edges + 1, room.nodes - SPARE_NODES, room.edges)
    ends = np.arange(max(nodes, 0))
    graphs = [ragged_dag(nodes, ends[:-1], ends[1:])] if nodes > 0 else []
    return batch(graphs, bucket=Bucket(room.nodes, room.edges, len(graphs), room))


def recipe_from(stored: Mapping[str, Any]) -> Recipe:
    """A recipe as it was stored. Raises ValueError, KeyError or TypeError for anything else."""
    scan = scan_from_json(stored["scan"])
    if not isinstance(scan.topology, Runtime):
        raise ValueError("the graphs of a scan do not come at run time")
    call = Call(**{field.name: stored[field.name] for field in fields(Call)})
    settings = stored_settings(stored["strategy"], stored["config"])
    return Recipe(scan, call, Choice(stored["strategy"], settings), Capacity(**stored["room"]))
