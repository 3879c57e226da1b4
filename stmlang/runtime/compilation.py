"""Everything static that is known of a compiled scan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import jax

from stmlang.compiler import Call, Prepared, Request, device_of, plan_problem, prepare, program_of
from stmlang.cost.candidate import Choice
from stmlang.cost.problem import Mode
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
Asked = tuple[int, Mode]
"""The batch and the mode of calls."""
Tables = TypeVar("Tables")
SITE_BYTES = 12
"""Bytes of tables for each edge of a graph that is not regular, at the least."""


@dataclass(frozen=True, eq=False, repr=False)
class Compilation:
    """What the compiler knows about a scan. `declared` is the scan as written, `facts.scan` the stabilized one that runs.

    Two are equal whose scans and programs are, whatever was predicted of other ways to evaluate them. Copies are the same
    object; stored are the scan, its graph and the plan, and the rest is found out again. `request` is what further calls are
    planned by; None where what is planned runs whatever the call."""

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

    def plan_for(self, batch: int, mode: Mode) -> Plan:
        """The plan for calls of a mode that are mapped over a batch. Raises SpecError where none fits."""
        asked = self._asked(batch, mode)
        if self.request is None or asked == self._own:
            return self.plan
        if asked not in self._plans:
            problem = self.program.problem.called(*asked)
            self._plans[asked] = plan_problem(problem, self.request, self.plan.target, device_of(self.request.target))
        return self._plans[asked]

    @property
    def _own(self) -> Asked:
        """What the scan itself is planned for."""
        return self.program.problem.batch, self.program.problem.mode

    def _asked(self, batch: Any, mode: Mode) -> Asked:
        """What a call is planned for: a scan for inference is never planned for training, and a batch whose size is a symbol
        is taken for that of the scan, as is any where that was said to be the one."""
        number, own = self._own
        one = not isinstance(batch, int) or (self.request is not None and self.request.one_batch)
        return number if one else batch, "inference" if own == "inference" else mode

    def runs(self, batch: Any, mode: Mode, masked: bool) -> tuple[Plan, Program]:
        """What runs when a call of a mode is mapped over a batch, on the nodes that a mask leaves if it is `masked`, and its
        plan. Where no plan for it fits, and where the tables of another program would be large constants, it is the scan's
        own."""
        own, asked = (self.plan, self.maskable if masked else self.program), self._asked(batch, mode)
        if self.request is None or asked == self._own:
            return own
        if (asked, masked) not in self._found:
            self._found[asked, masked] = self._planned(asked, masked, own)
        return self._found[asked, masked]

    def _planned(self, asked: Asked, masked: bool, own: tuple[Plan, Program]) -> tuple[Plan, Program]:
        dag = self.program.dag
        if dag.regular is None and SITE_BYTES * dag.edge_count > LARGEST_CONSTANT:
            return own
        try:
            plan = self.plan_for(*asked)
        except SpecError:
            return own
        program = self.program.by(plan.chosen.candidate.choice)
        program = self._maskable(program, plan) if masked else program
        if program == own[1] or sum(table.nbytes for table in jax.tree.leaves(program.tables)) > LARGEST_CONSTANT:
            return own
        return plan, program

    @cached_property
    def _plans(self) -> dict[Asked, Plan]:
        return {}

    @cached_property
    def _found(self) -> dict[tuple[Asked, bool], tuple[Plan, Program]]:
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
    """What is known of a scan as planned, and, with a request, of how it is planned for other calls."""
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
