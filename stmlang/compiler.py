"""The compiler, step by step. Everything that compiles, explains, checks, tunes or tries a scan goes through these steps.

    load(source, sizes)         -> Scan           what the text says                                     (`stmlang.check`)
    analyse(scan, graph)        -> Facts          what is true of it, stabilized where that was asked for  (`stmlang.facts`)
    problem_of(facts, call)     -> Problem        what there is to plan
    prepare(scan, call)         -> Prepared       the two together, and the graph where they take one
    plan(prepared, request)     -> Plan           which strategy evaluates it, and what was weighed against that
    program_of(prepared, choice)-> Program        everything static of an evaluation; JAX from here on
    compiled(prepared, plan)    -> CompiledScan   a function of arrays                        (`stmlang.runtime.compiled`)

Steps are functions of plain values. None of them imports JAX before a program is made, or before it has to be known what
machine `auto` is, so that a spec is checked and explained before JAX would have been imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stmlang import log
from stmlang.cost.calibration import usable_cores
from stmlang.cost.candidate import Choice
from stmlang.cost.lookup import target_of
from stmlang.cost.problem import DtypeName, Mode, Problem, regular_axes
from stmlang.cost.settings import Config, Settings
from stmlang.cost.target import Target
from stmlang.facts import Facts, analyse
from stmlang.graph.capacity import Capacity
from stmlang.graph.dag import DAG
from stmlang.graph.topology import dag_of
from stmlang.log import COMPILE, timed
from stmlang.plan.choose import make_plan
from stmlang.plan.plan import Plan
from stmlang.plan.preview import Outlook, outlook
from stmlang.plan.tuned import IGNORED, Device, look_up
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Runtime

if TYPE_CHECKING:
    from stmlang.program.program import Program

log.start()

GPU_KINDS = (("H200", "h200"), ("H100", "h100"), ("A100", "a100"))


# --- what is asked for


@dataclass(frozen=True, slots=True)
class Call:
    """How a scan will be called: the data type of its results, whether a backward pass counts, how many bytes it may take
    (None: what the target has) and over how many scans at once it will be mapped."""

    dtype: DtypeName = "float32"
    mode: Mode = "training"
    memory_limit: int | None = None
    batch: int = 1

    @classmethod
    def of(cls, problem: Problem) -> Call:
        """The call that a problem is about."""
        return cls(problem.dtype, problem.mode, problem.memory_limit, problem.batch)


@dataclass(frozen=True, slots=True)
class Request:
    """What the planner was told: the machine to plan for, a strategy and settings that overrule it (as values by name, or as
    the strategy's own), and whether what was measured on this machine comes before what is predicted. `one_batch` says that the
    call's batch is what it will be, whatever it is mapped over."""

    target: str = "auto"
    strategy: str | None = None
    settings: Config | Settings | None = None
    tuned: bool = True
    one_batch: bool = False

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to choose for another call."""
        return self.strategy is not None and self.settings is not None


# --- the steps


def load(source: str | Path, sizes: Mapping[str, Any], scan: str | None = None, search_path: Sequence[Path] = ()) -> Scan:
    """The scan of a spec. Raises SpecError with everything that is wrong with it."""
    from stmlang.check import load as load_text

    return load_text(source, sizes, scan=scan, search_path=search_path)


def problem_of(facts: Facts, call: Call, graph: DAG | None = None, room: Capacity | None = None) -> Problem:
    """What there is to plan. Raises SpecError where a size is unbound (STM5001) or a count passes 2^31 (STM3303)."""
    with timed(COMPILE, f"problem of {facts.scan.name}"):
        asked: dict[str, Any] = {"mode": call.mode, "memory_limit": call.memory_limit, "batch": call.batch}
        return Problem.of(facts.scan, graph, call.dtype, facts=facts, room=room, **asked)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A checked scan of known sizes, ready to be planned. `declared` is the scan as written, `facts.scan` the one that runs.

    `graph` is None where a plan can be made without it: a chain or grid is known by its sizes. One that is too large is so
    refused before any of it is built.
    """

    declared: Scan
    graph: DAG | None
    facts: Facts
    problem: Problem

    @cached_property
    def dag(self) -> DAG:
        """The graph, built when it is first asked for."""
        if self.graph is not None:
            return self.graph
        with timed(COMPILE, f"graph of {self.declared.name}"):
            return dag_of(self.declared.topology)


def prepare(scan: Scan, call: Call, *, graph: DAG | None = None, room: Capacity | None = None) -> Prepared:
    """Find out what holds of a scan, from its graph if that takes one, which is built where it is not given; of one whose
    graphs come at run time, from nothing but the room that there is for them, `graph` being one of them. Raises SpecError where
    a size is unbound (STM5001)."""
    if room is None and graph is None and regular_axes(scan) is None:
        with timed(COMPILE, f"graph of {scan.name}"):
            graph = dag_of(scan.topology)
    known = graph if room is None else None
    facts = analyse(scan, known)
    return Prepared(scan, graph, facts, problem_of(facts, call, known, room))


def plan(prepared: Prepared, request: Request) -> Plan:
    """Which strategy evaluates a scan. Raises SpecError as `make_plan` does."""
    return plan_problem(prepared.problem, request, machine(request.target), device_of(request.target))


def plan_problem(problem: Problem, request: Request, target: Target, device: Device | None) -> Plan:
    """The plan for a problem on a target, following what was measured on a device where the request allows that; graphs that
    come at run time were never measured."""
    measured = look_up(problem, device) if request.tuned and problem.room is None else IGNORED
    settings = dict(request.settings) if isinstance(request.settings, tuple) else request.settings
    return make_plan(problem, target, strategy=request.strategy, settings=settings, tuned=measured)


def program_of(prepared: Prepared, choice: Choice) -> Program:
    """The program of a choice."""
    from stmlang.program.program import Program

    return Program(prepared.problem, prepared.dag, choice)


def previews(scan: Scan, call: Call, request: Request, tell: Callable[[Facts], None]) -> tuple[Facts, list[Outlook]]:
    """The facts about a scan whose graphs come at run time, which are told first, and what would be chosen for graphs of
    several sizes. Raises SpecError where nothing can be chosen."""
    facts = analyse(scan)
    tell(facts)
    target = machine(request.target)

    def planned(room: Capacity) -> Plan:
        return plan_problem(problem_of(facts, call, room=room), request, target, None)

    assert isinstance(facts.scan.topology, Runtime)
    return facts, list(outlook(facts.scan.topology, planned))


# --- the machine


def machine(target: str) -> Target:
    """The target of a name. `auto` is what JAX runs on, so that a plan that is explained is the one that is compiled."""
    return target_of(_here() if target == "auto" else target)


def _here() -> str:
    jax = _jax()
    if jax.default_backend() != "gpu":
        return "cpu"
    kind = cast(str, jax.devices()[0].device_kind)
    return next((name for word, name in GPU_KINDS if word in kind), "gpu")


def device_of(target: str) -> Device | None:
    """The device whose measurements a plan for a target may follow: for `auto` the one that JAX runs on, for `cpu` this
    machine's, which is known without JAX; None where the target may be another machine."""
    if target == "cpu":
        return Device.cpu()
    if target != "auto":
        return None
    jax = _jax()
    if jax.default_backend() == "cpu":
        return Device.cpu()
    return Device(jax.default_backend(), cast(str, jax.devices()[0].device_kind), usable_cores())


def _jax() -> Any:
    import jax

    return jax
