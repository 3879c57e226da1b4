"""What the page asks of the checker: a text and sizes in, JSON out. Runs in Pyodide, and in the tests as it is."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stmlang.check import Spec, examine, library_specs, open_spec
from stmlang.check.search_path import place_of
from stmlang.scan.scan import Scan
from stmlang.scan.sizes import unbound
from stmlang.scan.topology import Runtime
from stmlang.source.diagnostic import Diagnostic, Severity, SpecError, render, to_json
from stmlang.source.reading import from_text
from stmlang.syntax.formatter import format_source

NUMPY = find_spec("numpy") is not None
MEMORY = 2**34
SIZES = {1: 256, 2: 14, 3: 6}
"""Sizes to try for axes that a spec leaves open, by how many there are."""


def count_in_native_integers() -> None:
    """Have numpy take 64-bit integers where it counts in those of the machine: WebAssembly's have 32 bits, and `bincount` and
    `repeat` refuse wider ones, even where every value would fit. Graphs of a page are far smaller than that."""
    import numpy as np

    bincount, repeat = np.bincount, np.repeat

    def counted(x: Any, weights: Any = None, minlength: int = 0) -> Any:
        return bincount(np.asarray(x, np.intp), weights, minlength)

    def repeated(a: Any, repeats: Any, axis: int | None = None) -> Any:
        return repeat(a, np.asarray(repeats, np.intp), axis)

    np.bincount, np.repeat = counted, repeated


if NUMPY and sys.maxsize < 2**32:
    count_in_native_integers()


def answer(text: str, sizes: str, target: str) -> str:
    """JSON with `findings` and `text`, what is wrong, and of a right spec `facts` and `plan`, where there is numpy."""
    settings = {name: int(value) for name, value in re.findall(r"(\w+)\s*=\s*(\d{1,6})", sizes)}
    try:
        found = examine(Spec(from_text(text, "spec.stm"), None, place_of(Path())), settings)
        diagnostics, scan = found.diagnostics, found.scan
    except SpecError as error:
        diagnostics, scan = error.diagnostics, None
    failed = any(one.severity is Severity.ERROR for one in diagnostics)
    facts, plan = ("", "") if failed or scan is None or not NUMPY else _known(scan, target)
    return json.dumps(
        {
            "ok": not failed,
            "numpy": NUMPY,
            "findings": [to_json(one) for one in diagnostics],
            "text": _text(diagnostics),
            "facts": facts,
            "plan": plan,
        }
    )


def _known(scan: Scan, target: str) -> tuple[str, str]:
    """What is proved of a scan, and how it would be evaluated, or why that cannot be said."""
    from stmlang.compiler import Call, Request, plan, prepare, previews
    from stmlang.facts import analyse, show_facts
    from stmlang.plan.preview import outlook_text
    from stmlang.plan.show import explain_text

    try:
        facts = analyse(scan)
    except SpecError as error:
        return "", _text(error.diagnostics)
    said = "\n\n".join(part for part in (_text(facts.changes), show_facts(facts)) if part)
    call, request = Call("float32", memory_limit=MEMORY), Request(target, tuned=False)
    try:
        if isinstance(scan.topology, Runtime):
            return said, outlook_text(previews(scan, call, request, lambda _: None)[1], None)
        return said, explain_text(plan(prepare(scan, call), request))
    except SpecError as error:
        return said, "There is no plan yet:\n" + _text(error.diagnostics)


def _text(diagnostics: Sequence[Diagnostic]) -> str:
    return "\n\n".join(render(one) for one in diagnostics)


def formatted(text: str) -> str:
    """The text as `stmlang fmt` lays it out; as it is where it cannot be read."""
    try:
        return format_source(from_text(text, "spec.stm"))
    except SpecError:
        return text


def library() -> str:
    """The specs to start from, by name: text, and sizes to try."""
    specs: dict[str, dict[str, str]] = {}
    for name in library_specs():
        spec = open_spec(f"std:{name}")
        scan = examine(spec, {}).scan
        if scan is not None:
            free = unbound(scan)
            specs[name] = {"text": spec.source.text, "sizes": ", ".join(f"{axis}={SIZES[min(len(free), 3)]}" for axis in free)}
    return json.dumps(specs)
