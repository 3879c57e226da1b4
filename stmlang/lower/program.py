"""A plan made concrete: the strategy, its graphs and its index tables for every direction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from stmlang.graph.dag import Dag
from stmlang.graph.multitree import greedy_multitree
from stmlang.lower import chunkwise, dense, impulse, linear, parallel, recurrent
from stmlang.lower.strategy import Lowering, Setup, Tables
from stmlang.lower.tables import Places
from stmlang.lower.values import Sites
from stmlang.plan.candidate import Candidate
from stmlang.plan.problem import Problem
from stmlang.scan.expression import LineMask, children
from stmlang.scan.scan import Scan

LOWERINGS: dict[str, Lowering] = {
    "recurrent": recurrent.LOWERING,
    "parallel": parallel.LOWERING,
    "chunkwise": chunkwise.LOWERING,
    "dense": dense.LOWERING,
    "linear": linear.LOWERING,
    "impulse": impulse.LOWERING,
}
"""One for each strategy in `stmlang.plan.candidates`; adding one is a file there, a file here and a line in each list."""


class Bundle(NamedTuple):
    """The tables of directions that run together: all of them on a regular topology, one on a ragged one. `line` says which
    declared line edge each line edge of the bundle's graph is, where they are numbered differently."""

    sites: Sites | None
    line: Places | None
    strategy: Tables


@dataclass(frozen=True, eq=False)
class Program:
    """Everything static. `tables` (numpy) is a pytree that the caller passes back to `run`, so that no index is a constant."""

    problem: Problem
    dag: Dag
    candidate: Candidate

    @property
    def scan(self) -> Scan:
        return self.problem.scan

    @property
    def dtype(self) -> Any:
        """The data type that results have."""
        return jnp.dtype(self.problem.dtype)

    @property
    def accumulator(self) -> Any:
        """The data type that everything is computed in."""
        return jnp.dtype(jnp.float64 if self.problem.dtype == "float64" else jnp.float32)

    @property
    def lowering(self) -> Lowering:
        return LOWERINGS[self.candidate.strategy]

    @cached_property
    def setups(self) -> tuple[Setup, ...]:
        """One for each bundle of directions."""
        config = dict(self.candidate.config)
        if self.dag.regular is not None:
            return (Setup(self.problem, self.dag, config),)
        backward = self.dag.reversed()
        oriented = [backward if direction.senses[0] < 0 else self.dag for direction in self.scan.directions]
        return tuple(Setup(self.problem, dag, config) for dag in oriented)

    @cached_property
    def tables(self) -> tuple[Bundle, ...]:
        """Index tables for each bundle."""
        return tuple(Bundle(self._sites(setup), self._line(setup), self.lowering.tables(setup)) for setup in self.setups)

    def _line(self, setup: Setup) -> np.ndarray | None:
        if setup.dag is self.dag:
            return None
        width = self.dag.edge_count
        declared = self.dag.line_edges[:, 0] * width + self.dag.line_edges[:, 1]
        wanted = setup.dag.line_edges[:, 1] * width + setup.dag.line_edges[:, 0]
        order = np.argsort(declared)
        return order[np.searchsorted(declared[order], wanted)].astype(np.int32)

    def _sites(self, setup: Setup) -> Sites | None:
        """Tables for the gates of a ragged topology. Edge and line edge leaves are numbered as in the declared graph."""
        if setup.axes is not None:
            return None
        dag, declared = setup.dag, self.dag
        line = declared.line_edges
        into, out = (line[:, 0], line[:, 1]) if dag is declared else (line[:, 1], line[:, 0])
        mask = greedy_multitree(declared) if _masked(self.scan) else None
        ends = (np.where(end < 0, dag.node_count, end) for end in (dag.tail, dag.head))
        tail, head = (end.astype(np.int32) for end in ends)
        into, out, node, port = (part.astype(np.int32) for part in (into, out, dag.head[into], dag.port))
        return Sites(tail, head, into, out, node, port, mask)


def _masked(scan: Scan) -> bool:
    """Whether any gate uses the multitree mask."""
    stack = [clause.value for gate in scan.gates for clause in gate.clauses]
    while stack:
        expr = stack.pop()
        if isinstance(expr, LineMask):
            return True
        stack.extend(children(expr))
    return False
