"""Everything static that is known of a compiled scan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import jax

from stmlang.compiler import Call, Prepared, Request, device_of, plan_problem, prepare, program_of
from stmlang.cost.candidate import Choice
from stmlang.cost.settings import NoSettings
from stmlang.cost.work import needs_scalar_gates
from stmlang.facts import Facts
from stmlang.graph.capacity import Capacity
from stmlang.graph.dag import DAG
from stmlang.plan.plan import Plan
from stmlang.program.program import Program
from stmlang.runtime.signature import Signature
from stmlang.scan.scan import Scan
from stmlang.source import short
from stmlang.source.diagnostic import SpecError
from stmlang.strategies.registry import gating_strategy, reference_strategy

LARGEST_CONSTANT = 1 << 16
"""Bytes of index tables that may be constants of a program."""
Tables = TypeVar("Tables")
SITE_BYTES = 12
"""Bytes of tables for each edge of a graph that is not regular, at the least."""


@dataclass(frozen=True, eq=False, repr=False)
class Compilation:
    """What the compiler knows about a scan. `declared` is the scan as written, `facts.scan` the stabilized one that runs.

    Two are equal whose scans and programs are, whatever was predicted of other ways to evaluate them. Copies are the same
    object; stored are the scan, its graph and the plan, and the rest is found out again. `request` is what further batches are
    planned by; None where what is planned runs whatever the batch."""

    declared: Scan
    facts: Facts
    plan: Plan
    program: Program
    signature: Signature
    request: Request | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Compilation) or self.program != other.program or self.declared != other.declared:
            return False
        return self.request == other.request and (self.request is None or self.plan.target == other.plan.target)

    def __hash__(self) -> int:
        return hash(self.program)

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<Compilation {self.program!r}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Compilation:
        del memo
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        problem, dag = self.program.problem, self.program.dag
        graph = None if dag.regular is not None else dag
        return _restored, (self.declared, graph, self.plan, Call.of(problem), problem.room, self.request)

    @cached_property
    def whole(self) -> Program:
        """The same scan by a strategy that forms its gating matrix."""
        return self.program if self.program.strategy.offers.gating else self.formed(self.program.dag)

    @cached_property
    def maskable(self) -> Program:
        """The same scan by the best strategy that weighed in which nodes can be left out."""
        return self._maskable(self.program, self.plan)

    def _maskable(self, program: Program, plan: Plan) -> Program:
        choices = [program.choice, *(entry.estimate.candidate.choice for entry in plan.ranked)]
        for choice in choices:
            other = program.by(choice)
            if not other.strategy.needs.uniform:
                return other
        return self.formed(program.dag)

    def plan_for(self, batch: int) -> Plan:
        """The plan for calls that are mapped over a batch. Raises SpecError where none fits."""
        if self.request is None or batch == self.program.problem.batch:
            return self.plan
        if batch not in self._plans:
            problem = self.program.problem.for_batch(batch)
            self._plans[batch] = plan_problem(problem, self.request, self.plan.target, device_of(self.request.target))
        return self._plans[batch]

    def program_for(self, batch: Any, masked: bool) -> Program:
        """What runs when a call is mapped over a batch, on the nodes that a mask leaves if it is `masked`. Where no plan for
        the batch fits, where its size is a symbol and where the tables of another program would be large constants, it is the
        program of one call."""
        own = self.maskable if masked else self.program
        if self.request is None or not isinstance(batch, int) or batch == self.program.problem.batch:
            return own
        if (batch, masked) not in self._programs:
            self._programs[batch, masked] = self._program_for(batch, masked, own)
        return self._programs[batch, masked]

    def _program_for(self, batch: int, masked: bool, own: Program) -> Program:
        dag = self.program.dag
        if dag.regular is None and SITE_BYTES * dag.edge_count > LARGEST_CONSTANT:
            return own
        try:
            plan = self.plan_for(batch)
        except SpecError:
            return own
        program = self.program.by(plan.chosen.candidate.choice)
        program = self._maskable(program, plan) if masked else program
        if program == own or sum(table.nbytes for table in jax.tree.leaves(program.tables)) > LARGEST_CONSTANT:
            return own
        return program

    @cached_property
    def _plans(self) -> dict[int, Plan]:
        return {}

    @cached_property
    def _programs(self) -> dict[tuple[int, bool], Program]:
        return {}

    def formed(self, dag: DAG) -> Program:
        """The scan on a graph by a strategy that forms any gating matrix of numbers; with tracks, by the recurrence."""
        problem = replace(self.program.problem, room=None)
        strategy = gating_strategy() if needs_scalar_gates(problem) is None else reference_strategy()
        return Program(problem, dag, Choice(strategy.name, NoSettings()))

    def planned_for(self, scan: Scan) -> Compilation:
        """Another scan, such as this one on fewer nodes, for the same target and calls. Raises SpecError where none fits."""
        prepared = prepare(scan, Call.of(self.program.problem))
        return compilation_of(prepared, plan_problem(prepared.problem, Request(tuned=False), self.plan.target, None))

    @property
    def at_run_time(self) -> bool:
        """Whether `program.dag` is but one of the graphs that the program is for."""
        return self.program.problem.room is not None


def compilation_of(prepared: Prepared, plan: Plan, request: Request | None = None) -> Compilation:
    """What is known of a scan as planned, and, with a request, of how it is planned for other batches."""
    program = program_of(prepared, plan.chosen.candidate.choice)
    signature = Signature.of(prepared.facts.scan, prepared.dag, prepared.problem.dtype)
    return Compilation(prepared.declared, prepared.facts, plan, program, signature, request)


def on_device(tables: Tables) -> Tables:
    """Tables as JAX arrays: real ones even while a call is traced, since they outlive the trace."""
    with jax.ensure_compile_time_eval():
        return jax.device_put(tables)  # `jnp.asarray` compiles a program for every shape that it has not seen yet


def _restored(
    scan: Scan, graph: DAG | None, plan: Plan, call: Call, room: Capacity | None, request: Request | None
) -> Compilation:
    """A compilation from what it is stored as."""
    return compilation_of(prepare(scan, call, graph=graph, room=room), plan, request)
