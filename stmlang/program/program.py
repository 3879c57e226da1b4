"""A plan made concrete: the strategy, its graphs and its index tables for every direction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from stmlang.cost.candidate import Choice
from stmlang.cost.late_gates import LateGates, late_gates
from stmlang.cost.problem import Problem
from stmlang.facts import RankOne
from stmlang.facts.overwriting import DeltaRule, delta_rule
from stmlang.graph.build import regular_dag
from stmlang.graph.dag import DAG
from stmlang.graph.line import reversed_line_edges
from stmlang.graph.reduction import multitree
from stmlang.lower.strategy import Lowering, LoweringContext, Tables
from stmlang.lower.tables import Indices
from stmlang.lower.values import LineEdges, Sites
from stmlang.program.liveness import meets_line_edges, needed
from stmlang.scan.expression import LineMask, inside
from stmlang.scan.scan import Scan
from stmlang.source import short
from stmlang.strategies.base import AnyStrategy, seen_by
from stmlang.strategies.lowering import lowering_of
from stmlang.strategies.registry import strategy_named


class Bundle(NamedTuple):
    """The tables of directions that run together: all of them on a regular topology, one on a ragged one. `line` says which
    declared line edge each line edge of the bundle's graph is, where they are numbered differently."""

    sites: Sites | None
    line: Indices | None
    strategy: Tables


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """Everything static. `tables` (numpy) is a pytree that the caller passes back to `run`, so that no index is a constant."""

    problem: Problem
    dag: DAG
    choice: Choice

    @cached_property
    def _decisive(self) -> tuple[object, ...]:
        """All that decides what is evaluated and how. Of graphs that come at run time their shape is all."""
        problem, choice, dag = self.problem, self.choice, self.dag
        graph = dag.digest if problem.room is None else (problem.room, dag.node_shape, dag.ports, dag.line_rows)
        call = (problem.dtype, problem.mode, problem.memory_limit, problem.batch)
        return (problem.scan, call, choice, graph)

    @cached_property
    def _hash(self) -> int:
        return hash(self._decisive)

    def __eq__(self, other: object) -> bool:
        """By value: programs of equal scans, made for equal calls and by equal choices, are one."""
        if self is other:
            return True
        return isinstance(other, Program) and self._hash == other._hash and self._decisive == other._decisive

    def __hash__(self) -> int:
        return self._hash

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<Program {self.scan.name}: {self.dag.node_count} nodes, {self.choice.label}, {self.problem.dtype}>"

    def by(self, choice: Choice) -> Program:
        """The same evaluation by another choice; the program itself, which knows its tables, where it is its own."""
        return self if choice == self.choice else replace(self, choice=choice)

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
    def strategy(self) -> AnyStrategy:
        return strategy_named(self.choice.strategy)

    @property
    def lowering(self) -> Lowering:
        return lowering_of(self.strategy)

    @cached_property
    def unrolled(self) -> Program | None:
        """The program on the chain of all steps, where nodes take several: what is run."""
        if self.scan.steps == 1:
            return None
        problem = self.problem.unrolled
        assert problem.axes is not None
        return replace(self, problem=problem, dag=regular_dag(problem.axes, list(self.dag.ports)))

    @cached_property
    def contexts(self) -> tuple[LoweringContext, ...]:
        """One for each bundle of directions."""
        settings = self.choice.settings
        problem = seen_by(self.strategy, self.problem)
        if self.dag.regular is not None:
            return (LoweringContext(problem, self.dag, settings),)
        backward = self.dag.reversed()
        oriented = [backward if direction.senses[0] < 0 else self.dag for direction in self.scan.directions]
        return tuple(LoweringContext(problem, dag, settings) for dag in oriented)

    @property
    def one_each(self) -> bool:
        """Whether the strategy knows one write and one read a node, and the scan has more."""
        seen = self.contexts[0].problem
        return (seen.writes, seen.reads) != (self.scan.writes, self.scan.reads)

    @cached_property
    def tables(self) -> tuple[Bundle, ...]:
        """Index tables for each bundle."""
        if self.unrolled is not None:
            return self.unrolled.tables
        return tuple(
            Bundle(self._sites(context), self._line(context), self.lowering.tables(context)) for context in self.contexts
        )

    @property
    def rank_one(self) -> RankOne | None:
        """The factors of the transition, for strategies that work with them."""
        facts = self.problem.facts
        return facts.rank_one if self.strategy.needs.factors and facts is not None else None

    @cached_property
    def delta_rule(self) -> DeltaRule | None:
        """Transition and mark in the delta rule's form, for strategies that work with it."""
        return delta_rule(self.scan) if self.strategy.needs.deltas else None

    @cached_property
    def late(self) -> LateGates | None:
        """The gates cut in two, for strategies that evaluate them node by node."""
        return late_gates(self.problem) if self.strategy.needs.local else None

    @property
    def by_factors(self) -> bool:
        """Whether the transition itself is left out: its factors say everything, and line edges may be very many."""
        return self.rank_one is not None and self.dag.regular is None

    @cached_property
    def evaluated(self) -> frozenset[str]:
        """The gates that are evaluated, for all nodes at once."""
        scan, rank_one = self.scan, self.rank_one
        if self.late is not None:
            rest = () if self.late.adds_direct else ("direct",)
            return needed(scan, ("q", "k", "v", *rest), self.late.early.values())
        if rank_one is None or not self.by_factors:
            return frozenset(gate.name for gate in scan.gates)
        names = ("source", "mark", "direct", "q", "k", "v")
        return needed(scan, names, (rank_one.out_factor, rank_one.in_factor))

    @property
    def _meets_line_edges(self) -> bool:
        rank_one = self.rank_one
        if rank_one is None or not self.by_factors:
            return True
        return meets_line_edges(self.scan, self.evaluated, (rank_one.out_factor, rank_one.in_factor))

    def _line(self, context: LoweringContext) -> np.ndarray | None:
        if context.dag is self.dag or self.by_factors:
            return None
        order = reversed_line_edges(self.dag)
        return np.append(order, np.arange(len(order), self.dag.line_rows)).astype(np.int32)

    def _sites(self, context: LoweringContext) -> Sites | None:
        """Tables for the gates of a ragged topology. Edge and line edge leaves are numbered as in the declared graph."""
        if context.axes is not None:
            return None
        dag, declared = context.dag, self.dag
        mask = _padded(multitree(declared), declared, True) if _masked(self.scan) else None
        ends = (np.where(end < 0, dag.node_count, end) for end in (dag.tail, dag.head))
        tail, head, port = (indices.astype(np.int32) for indices in (*ends, dag.port))
        return Sites(tail, head, _line_edges(declared, dag) if self._meets_line_edges else None, port, mask)


def _line_edges(declared: DAG, dag: DAG) -> LineEdges:
    """The line edges of the declared graph, seen in the direction of another that may be its reverse. Spare ones join the last
    edge, which then touches no node that matters, to itself."""
    line = _padded(declared.line_edges, declared, declared.edge_count - 1)
    into, out = (line[:, 0], line[:, 1]) if dag is declared else (line[:, 1], line[:, 0])
    return LineEdges(*(indices.astype(np.int32) for indices in (into, out, dag.head[into])))


def _padded(array: np.ndarray, dag: DAG, value: int) -> np.ndarray:
    """An array over line edges with a value for the spare ones."""
    return np.concatenate([array, np.full((dag.spare_line_edges, *array.shape[1:]), value, array.dtype)])


def _masked(scan: Scan) -> bool:
    """Whether any gate uses the multitree mask."""
    values = (clause.value for gate in scan.gates for clause in gate.clauses)
    return any(isinstance(expr, LineMask) for expr in inside(*values))
