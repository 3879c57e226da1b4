"""From a spec to a compiled scan."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, Literal, cast

import jax
from jax.typing import DTypeLike

from stmlang.check import load
from stmlang.cost.calibration import usable_cores
from stmlang.cost.problem import DtypeName, Mode, Problem, regular_axes
from stmlang.cost.settings import Config, ConfigValue, Settings, freeze
from stmlang.cost.target import target_of
from stmlang.facts import Facts, analyse
from stmlang.graph.batch import Batch
from stmlang.graph.buckets import Room
from stmlang.graph.dag import DAG
from stmlang.graph.topology import dag_of
from stmlang.plan.choose import make_plan
from stmlang.plan.plan import Plan
from stmlang.plan.tuned import IGNORED, Device, look_up
from stmlang.program.program import Program
from stmlang.runtime.compiled import Compilation, CompiledScan, build
from stmlang.runtime.graphs import GraphScan
from stmlang.runtime.lengths import Lengths, require_open
from stmlang.runtime.open import OpenScan
from stmlang.runtime.options import call_options, plain, search_path, settings, spec_text, target_name
from stmlang.runtime.signature import Signature, call_error
from stmlang.scan.scan import Scan
from stmlang.scan.sizes import unbound
from stmlang.scan.topology import Runtime
from stmlang.source.diagnostic import Severity, StabilityWarning
from stmlang.source.render import render

GPU_KINDS = (("H200", "h200"), ("H100", "h100"), ("A100", "a100"))


def compile(
    source: str | PathLike[str],
    *,
    target: str = "auto",
    dtype: DTypeLike = "float32",
    mode: Literal["training", "inference"] = "training",
    memory_limit: int | None = None,
    batch: int = 1,
    strategy: str | None = None,
    config: Mapping[str, ConfigValue] | Settings | None = None,
    scan: str | None = None,
    tuned: bool = True,
    path: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    **sizes: int | float | Lengths,
) -> CompiledScan | OpenScan | GraphScan:
    """Compile a spec: `std:...`, a path, or the text itself.

    `sizes` are the sizes and numbers that the spec leaves open or gives defaults for. `target` is the machine to plan for,
    `auto` the one JAX runs on; `dtype` float32, float64 or bfloat16, by name or as JAX and numpy have it (`jnp.bfloat16`);
    `mode` whether a backward pass counts; `batch` how many scans a call will be mapped over; `memory_limit` in bytes.
    `strategy` and `config` overrule the planner. `scan` names one of several scans in a file (the last by default). `path` is a
    folder, or several, where imports and graph files are looked for behind the folder of the file that names them, and before
    those of the environment variable STMLANG_PATH. What `stmlang tune` measured on this machine comes before what is predicted,
    unless `tuned` is off.

    A spec with an axis whose size is not known yet gives an `OpenScan`, which is compiled for the sizes that its first call
    has, and again for others; with `time=stmlang.Lengths()` it is compiled for few sizes, to which it fills up what it is
    given. One whose graphs come at run time gives a `GraphScan`, whose `at` gives it graphs. Raises SpecError for a wrong spec,
    unknown sizes, or a scan that no strategy can evaluate. Warns (`StabilityWarning`) where `stabilize` is not said and a
    mode had to be inserted, so that numbers may be others than the equations say.
    """
    text = spec_text(source)
    options = call_options(dtype, mode, batch, memory_limit, strategy, tuned, scan)
    kind, mode, batch, memory_limit, strategy, tuned, scan = options
    settled, target = settings(config), target_name(target)
    require_dtype(kind)
    lengths = {name: size for name, size in sizes.items() if isinstance(size, Lengths)}
    known = {name: plain(size) for name, size in sizes.items() if name not in lengths}
    folders = search_path(path)
    checked = load(text, known, scan=scan, search_path=folders)
    require_open(checked, lengths)
    frozen = None if settled is None else freeze(settled)
    finish = Finish(kind, mode, memory_limit, batch, target, strategy, frozen, tuned)
    if isinstance(checked.topology, Runtime):
        _warn(analyse(checked))
        return GraphScan(checked, kind, finish)
    if unbound(checked):
        _warn(analyse(checked))
        return OpenScan(checked, kind, finish, lengths)
    made = finish(checked)
    _warn(made.facts)
    return made


def _warn(facts: Facts) -> None:
    """Tell the caller of `compile` that a mode was inserted unasked."""
    for found in facts.changes:
        if found.severity is Severity.WARNING:
            warnings.warn(f"\n{render(found)}", StabilityWarning, stacklevel=3)


@dataclass(frozen=True)
class Finish:
    """What `compile` was asked for, but for the spec: compiles a scan of it whose sizes are known, or one on a batch."""

    dtype: DtypeName
    mode: Mode
    memory_limit: int | None
    batch: int
    target: str
    strategy: str | None
    config: Config | None
    tuned: bool

    def __call__(self, bound: Scan, on: Batch | None = None) -> CompiledScan:
        """Raises SpecError where no strategy can evaluate it."""
        graph, room = (None, None) if on is None else (on.dag, on.room)
        call: Any = {"mode": self.mode, "memory_limit": self.memory_limit, "batch": self.batch}
        prepared = prepare(bound, self.dtype, **call, graph=graph, room=room)
        found = look_up(prepared.problem, device_of(self.target)) if self.tuned and on is None else IGNORED
        chosen = target_of(machine() if self.target == "auto" else self.target)
        config = None if self.config is None else dict(self.config)
        return assemble(prepared, make_plan(prepared.problem, chosen, strategy=self.strategy, settings=config, tuned=found))


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
        return dag_of(self.declared.topology) if self.graph is None else self.graph


def prepare(
    scan: Scan,
    dtype: DtypeName,
    *,
    mode: Mode = "training",
    memory_limit: int | None = None,
    batch: int = 1,
    graph: DAG | None = None,
    room: Room | None = None,
) -> Prepared:
    """Find out what holds of a scan, from its graph if that takes one, which is built where it is not given; of one whose
    graphs come at run time, from nothing but the room that there is for them, `graph` being one of them. Raises SpecError where
    a size is unbound (STM5001)."""
    if room is None and graph is None and regular_axes(scan) is None:
        graph = dag_of(scan.topology)
    known = graph if room is None else None
    facts = analyse(scan, known)
    problem = Problem.of(facts.scan, known, dtype, facts=facts, mode=mode, memory_limit=memory_limit, batch=batch, room=room)
    return Prepared(scan, graph, facts, problem)


def assemble(prepared: Prepared, plan: Plan) -> CompiledScan:
    """The scan as planned."""
    return build(assembled(prepared, plan))


def assembled(prepared: Prepared, plan: Plan) -> Compilation:
    """What is known of a scan as planned."""
    program = Program(prepared.problem, prepared.dag, plan.chosen.candidate.choice)
    signature = Signature.of(prepared.facts.scan, prepared.dag, prepared.problem.dtype)
    return Compilation(prepared.declared, prepared.facts, plan, program, signature)


def restored(scan: Scan, graph: DAG | None, plan: Plan, **call: Any) -> Compilation:
    """A compilation from what it is stored as: everything else is found out again."""
    return assembled(prepare(scan, graph=graph, **call), plan)


def machine() -> str:
    """The name of the target that JAX runs on."""
    if jax.default_backend() != "gpu":
        return "cpu"
    kind = cast(str, jax.devices()[0].device_kind)
    return next((name for word, name in GPU_KINDS if word in kind), "gpu")


def device_of(target: str) -> Device | None:
    """The device whose measurements a plan for a target may follow: for `auto` the one that JAX runs on, for `cpu` this
    machine's; None where the target may be another machine."""
    if target == "cpu" or (target == "auto" and jax.default_backend() == "cpu"):
        return Device.cpu()
    if target != "auto":
        return None
    return Device(jax.default_backend(), cast(str, jax.devices()[0].device_kind), usable_cores())


def require_dtype(dtype: str) -> None:
    """Raises SpecError (STM5207) for float64 while JAX has it switched off."""
    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise call_error(
            "STM5207",
            "float64 was asked for, but JAX computes in 32 bits",
            help='switch it on before anything else: `jax.config.update("jax_enable_x64", True)`, or JAX_ENABLE_X64=1',
        )
