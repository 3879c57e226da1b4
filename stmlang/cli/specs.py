"""From a SPEC argument to what a command works on, as far as it needs. Only `compile_spec` and a target of `auto` need jax."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stmlang.cli.output import print_diagnostics
from stmlang.source.diagnostic import SpecError
from stmlang.source.reading import MAX_BYTES, decode, read
from stmlang.source.span import SourceFile

if TYPE_CHECKING:
    from stmlang.check import Examined, Spec
    from stmlang.facts import Facts
    from stmlang.plan.plan import Plan
    from stmlang.plan.preview import Outlook
    from stmlang.plan.tuned import Device
    from stmlang.runtime.compile import Prepared
    from stmlang.runtime.compiled import CompiledScan
    from stmlang.scan.scan import Scan

STDIN = "-"


def read_source(name: str) -> SourceFile:
    """The text of a file or of standard input. Raises SpecError where it cannot be read."""
    return decode(sys.stdin.buffer.read(MAX_BYTES + 1), "<stdin>") if name == STDIN else read(name)


def open_door(spec: str) -> Spec:
    """A path, a name of the library or standard input; never the text itself. Raises SpecError where there is no such text."""
    from stmlang.check import Spec, open_spec
    from stmlang.check.search_path import place_of

    return Spec(read_source(STDIN), None, place_of(Path())) if spec == STDIN else open_spec(_named(spec))


def _named(spec: str) -> str | Path:
    return spec if spec.startswith("std:") else Path(spec)


def examine_spec(spec: str, settings: Mapping[str, int | float], search_path: Sequence[Path]) -> Examined:
    """Everything there is to say about a spec. Raises SpecError only where there is no such text."""
    from stmlang.check import examine

    return examine(open_door(spec), settings, search_path=search_path)


def load_spec(arguments: argparse.Namespace) -> Scan:
    """The checked scan of a spec; warnings are printed. Raises SpecError."""
    from stmlang.check import examine

    spec = open_door(arguments.spec)
    found = examine(spec, arguments.settings, search_path=arguments.search_path, library_file=False)
    if found.failed or found.scan is None:
        raise SpecError(found.diagnostics)
    print_diagnostics(found.diagnostics)
    return found.scan


def outlook_spec(scan: Scan, arguments: argparse.Namespace) -> tuple[Facts, list[Outlook]]:
    """The facts about a scan whose graphs come at run time, and what would be chosen for graphs of several sizes."""
    from stmlang.cost.target import target_of
    from stmlang.facts import analyse
    from stmlang.plan.preview import outlook

    facts = analyse(scan)
    print_diagnostics(facts.notes)
    found = outlook(
        facts,
        target_of(_machine(arguments.target)),
        dtype=arguments.dtype,
        mode=arguments.mode,
        memory_limit=arguments.memory_limit,
        batch=arguments.batch,
        strategy=arguments.strategy,
    )
    return facts, list(found)


def plan_of(scan: Scan, arguments: argparse.Namespace) -> tuple[Facts, Plan]:
    """The facts about a scan, and the plan for it. Raises SpecError, also for sizes that are not bound."""
    from stmlang.cost.problem import Problem, regular_axes
    from stmlang.cost.target import target_of
    from stmlang.facts import analyse
    from stmlang.graph.topology import dag_of
    from stmlang.plan.choose import make_plan
    from stmlang.plan.tuned import IGNORED, look_up

    # A chain or grid is known by its sizes; its graph, which may be huge, need not be built to plan for it.
    dag = None if regular_axes(scan) is not None else dag_of(scan.topology)
    facts = analyse(scan, dag)
    problem = Problem.of(
        facts.scan,
        dag,
        arguments.dtype,
        facts=facts,
        mode=arguments.mode,
        memory_limit=arguments.memory_limit,
        batch=arguments.batch,
    )
    print_diagnostics(facts.notes)
    found = look_up(problem, _device(arguments.target)) if arguments.tuned else IGNORED
    return facts, make_plan(problem, target_of(_machine(arguments.target)), strategy=arguments.strategy, tuned=found)


def _device(target: str) -> Device | None:
    """The device whose measurements count: for `cpu` it is known without jax."""
    if target != "auto":
        from stmlang.plan.tuned import Device

        return Device.cpu() if target == "cpu" else None
    from stmlang.runtime.compile import device_of

    return device_of(target)


def _machine(target: str) -> str:
    """`auto` is whatever jax would run on, so that a plan that is explained is the one that is compiled."""
    if target != "auto":
        return target
    from stmlang.runtime.compile import machine

    return machine()


def compile_spec(arguments: argparse.Namespace, batch: int) -> CompiledScan:
    """The compiled scan of a spec. Raises SpecError."""
    from stmlang.runtime.compile import assemble

    prepared = prepare_scan(arguments, sized_spec(arguments), arguments.mode, batch)
    print_diagnostics(prepared.facts.changes)
    return assemble(prepared, plan_prepared(arguments, prepared, arguments.target))


def plan_prepared(arguments: argparse.Namespace, prepared: Prepared, target: str = "auto") -> Plan:
    """The plan for a prepared scan. Raises SpecError."""
    from stmlang.cost.target import target_of
    from stmlang.plan.choose import make_plan
    from stmlang.plan.tuned import IGNORED, look_up

    found = look_up(prepared.problem, _device(target)) if arguments.tuned else IGNORED
    return make_plan(prepared.problem, target_of(_machine(target)), strategy=arguments.strategy, tuned=found)


def sized_spec(arguments: argparse.Namespace) -> Scan:
    """The checked scan of a spec. Raises SpecError, also for sizes that are not bound (STM5001)."""
    from stmlang.cost.problem import regular_axes

    scan = load_spec(arguments)
    regular_axes(scan)
    return scan


def prepare_scan(arguments: argparse.Namespace, scan: Scan, mode: Literal["training", "inference"], batch: int) -> Prepared:
    """What there is to plan for a scan. A command line that asks for float64 means it, so jax is told. Raises SpecError."""
    from stmlang.runtime.compile import prepare

    if arguments.dtype == "float64":
        jax: Any = import_module("jax")
        jax.config.update("jax_enable_x64", True)
    return prepare(scan, arguments.dtype, mode=mode, memory_limit=arguments.memory_limit, batch=batch)
