"""Everything static that is known of a compiled scan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from stmlang.compiler import Call, Prepared, prepare, program_of
from stmlang.cost.candidate import Choice
from stmlang.cost.settings import NoSettings
from stmlang.facts import Facts
from stmlang.graph.buckets import Room
from stmlang.graph.dag import DAG
from stmlang.plan.plan import Plan
from stmlang.program.program import Program
from stmlang.runtime.signature import Signature
from stmlang.scan.scan import Scan
from stmlang.source import short
from stmlang.strategies.registry import gating_strategy


@dataclass(frozen=True, eq=False, repr=False)
class Compilation:
    """What the compiler knows about a scan. `declared` is the scan as written, `facts.scan` the stabilized one that runs.

    Two are equal whose scans and programs are, whatever was predicted of other ways to evaluate them. Copies are the same
    object; stored are the scan, its graph and the plan, and the rest is found out again."""

    declared: Scan
    facts: Facts
    plan: Plan
    program: Program
    signature: Signature

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Compilation) and self.program == other.program and self.declared == other.declared

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
        return _restored, (self.declared, graph, self.plan, Call.of(problem), problem.room)

    @cached_property
    def whole(self) -> Program:
        """The same scan by a strategy that forms its gating matrix."""
        return self.program if self.program.lowering.gating is not None else self.formed(self.program.dag)

    @cached_property
    def maskable(self) -> Program:
        """The same scan by the best strategy that weighed in which nodes can be left out."""
        if not self.program.lowering.needs.uniform:
            return self.program
        for entry in self.plan.ranked:
            other = Program(self.program.problem, self.program.dag, entry.estimate.candidate.choice)
            if not other.lowering.needs.uniform:
                return other
        return self.formed(self.program.dag)

    def formed(self, dag: DAG) -> Program:
        """The scan on a graph by a strategy that forms any gating matrix."""
        return Program(replace(self.program.problem, room=None), dag, Choice(gating_strategy().name, NoSettings()))

    @property
    def at_run_time(self) -> bool:
        """Whether `program.dag` is but one of the graphs that the program is for."""
        return self.program.problem.room is not None


def compilation_of(prepared: Prepared, plan: Plan) -> Compilation:
    """What is known of a scan as planned."""
    program = program_of(prepared, plan.chosen.candidate.choice)
    signature = Signature.of(prepared.facts.scan, prepared.dag, prepared.problem.dtype)
    return Compilation(prepared.declared, prepared.facts, plan, program, signature)


def _restored(scan: Scan, graph: DAG | None, plan: Plan, call: Call, room: Room | None) -> Compilation:
    """A compilation from what it is stored as."""
    return compilation_of(prepare(scan, call, graph=graph, room=room), plan)
