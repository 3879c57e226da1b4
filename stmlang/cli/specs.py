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
    from stmlang.compiler import Call, Prepared, Request
    from stmlang.facts import Facts
    from stmlang.plan.plan import Plan
    from stmlang.plan.preview import Outlook
    from stmlang.runtime.compiled import CompiledScan
    from stmlang.runtime.graphs import GraphScan
    from stmlang.scan.scan import Scan

STDIN = "-"


def read_source(name: str) -> SourceFile:
    """The text of a file or of standard input. Raises SpecError where it cannot be read."""
    return decode(sys.stdin.buffer.read(MAX_BYTES + 1), "<stdin>") if name == STDIN else read(name)


def open_named(spec: str) -> Spec:
    """A path, a name of the library or standard input; never the text itself. Raises SpecError where there is no such text."""
    from stmlang.check import Spec, open_spec
    from stmlang.check.search_path import place_of

    return Spec(read_source(STDIN), None, place_of(Path())) if spec == STDIN else open_spec(_named(spec))


def _named(spec: str) -> str | Path:
    return spec if spec.startswith("std:") else Path(spec)


def examine_spec(spec: str, settings: Mapping[str, int | float], search_path: Sequence[Path]) -> Examined:
    """Everything there is to say about a spec. Raises SpecError only where there is no such text."""
    from stmlang.check import examine

    return examine(open_named(spec), settings, search_path=search_path)


def load_spec(arguments: argparse.Namespace) -> Scan:
    """The checked scan of a spec; warnings are printed. Raises SpecError."""
    from stmlang.check import examine

    spec = open_named(arguments.spec)
    examined = examine(spec, arguments.settings, search_path=arguments.search_path, library_file=False)
    if examined.failed or examined.scan is None:
        raise SpecError(examined.diagnostics)
    print_diagnostics(examined.diagnostics)
    return examined.scan


def call_of(
    arguments: argparse.Namespace, *, mode: Literal["training", "inference"] | None = None, batch: int | None = None
) -> Call:
    """The call that a command line plans for, in another mode and batch than it says where they are given."""
    from stmlang.compiler import Call

    return Call(arguments.dtype, mode or arguments.mode, arguments.memory_limit, batch or arguments.batch)


def request_of(arguments: argparse.Namespace, target: str = "auto") -> Request:
    """What a command line tells the planner."""
    from stmlang.compiler import Request

    return Request(target, arguments.strategy, tuned=arguments.tuned)


def outlook_spec(scan: Scan, arguments: argparse.Namespace) -> tuple[Facts, list[Outlook]]:
    """The facts about a scan whose graphs come at run time, and what would be chosen for graphs of several sizes."""
    from stmlang.compiler import previews

    def tell(facts: Facts) -> None:
        print_diagnostics(facts.notes)

    return previews(scan, call_of(arguments), request_of(arguments, arguments.target), tell)


def plan_of(scan: Scan, arguments: argparse.Namespace) -> tuple[Facts, Plan]:
    """The facts about a scan, and the plan for it. Raises SpecError, also for sizes that are not bound."""
    from stmlang.compiler import plan, prepare

    prepared = prepare(scan, call_of(arguments))
    print_diagnostics(prepared.facts.notes)
    return prepared.facts, plan(prepared, request_of(arguments, arguments.target))


def compile_spec(arguments: argparse.Namespace, scan: Scan, target: str, batch: int) -> CompiledScan:
    """The compiled scan of a checked spec. Raises SpecError."""
    from stmlang.compiler import plan
    from stmlang.runtime.compiled import compiled

    prepared = prepare_scan(arguments, scan, call_of(arguments, batch=batch))
    print_diagnostics(prepared.facts.changes)
    return compiled(prepared, plan(prepared, request_of(arguments, target)))


def graph_spec(arguments: argparse.Namespace, scan: Scan, target: str) -> GraphScan:
    """The scan of a checked spec whose graphs come at run time. Raises SpecError."""
    from stmlang.facts import analyse
    from stmlang.runtime.graphs import GraphScan

    switch_float64_on(arguments)
    print_diagnostics(analyse(scan).changes)
    return GraphScan(scan, call_of(arguments, batch=1), request_of(arguments, target))


def sized_spec(arguments: argparse.Namespace) -> Scan:
    """The checked scan of a spec. Raises SpecError, also for sizes that are not bound (STM5001)."""
    from stmlang.cost.problem import regular_axes

    scan = load_spec(arguments)
    regular_axes(scan)
    return scan


def prepare_scan(arguments: argparse.Namespace, scan: Scan, call: Call) -> Prepared:
    """What there is to plan for a scan. A command line that asks for float64 means it, so jax is told. Raises SpecError."""
    from stmlang.compiler import prepare

    switch_float64_on(arguments)
    return prepare(scan, call)


def switch_float64_on(arguments: argparse.Namespace) -> None:
    """Tell jax, where a command line asks for float64."""
    if arguments.dtype == "float64":
        jax: Any = import_module("jax")
        jax.config.update("jax_enable_x64", True)
