"""What is said of a name when a pointer rests on it, in Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from stmlang.check.forms import forms_of
from stmlang.check.modules import Definition, Module, NamedTopology
from stmlang.check.typing.complex_values import Form
from stmlang.cost import units
from stmlang.facts.show import interval_of, show_depends, show_transition
from stmlang.lsp import words
from stmlang.lsp.document import Document
from stmlang.lsp.knowledge import facts_about, outlook_for, plan_for, sized
from stmlang.lsp.sizes import sizes_of
from stmlang.lsp.symbols import Kind, Occurrence, gates_of
from stmlang.scan.scan import Scan
from stmlang.scan.sizes import unbound
from stmlang.scan.topology import Runtime
from stmlang.source.span import SourceFile, Span
from stmlang.syntax import tree

_LOSERS = 3


@dataclass(frozen=True)
class Hover:
    """Text about a place."""

    span: Span
    text: str


def hover(document: Document, offset: int, target: str = "cpu") -> Hover | None:
    """What there is to say at an offset: what a name is, of a gate its type, bounds and what they rest on, of a transition or
    scan what was proved, of a scan the plan for training in float32 on a target at the sizes of its comments."""
    occurrence = document.at(offset)
    if occurrence is None:
        return _setting(document, offset)
    text = _text(document, occurrence, target)
    return None if text is None else Hover(occurrence.span, text)


def _text(document: Document, occurrence: Occurrence, target: str) -> str | None:
    name = occurrence.name
    match occurrence.kind:
        case Kind.GATE:
            return _gate(document, occurrence)
        case Kind.SCAN:
            return _scan(document, occurrence, target)
        case Kind.FUNCTION | Kind.TOPOLOGY:
            return _declared(document, occurrence)
        case Kind.BUILT_IN if name in words.FUNCTIONS:
            arguments, meaning = words.FUNCTIONS[name]
            return _code(f"{name}({', '.join(arguments)})", meaning)
        case Kind.INPUT:
            return _code(name, words.INPUTS[name])
        case Kind.INDEX:
            return _code(name, f"Ranges over {words.index_meaning(name)}.")
        case Kind.SIZE:
            return _code(name, words.SIZES[name])
        case Kind.TOPOLOGY_KIND:
            return _code(*words.TOPOLOGIES[name])
        case Kind.NUMBER:
            return _number(document, occurrence)
        case Kind.PARAMETER | Kind.NODE | Kind.PORT | Kind.ARGUMENT | Kind.FORMAT:
            return _code(name, f"{occurrence.kind.value[0].upper()}{occurrence.kind.value[1:]}.")
        case Kind.FILE if occurrence.declaration is not None:
            return _code(f"use {name}", f"`{occurrence.declaration.file.name}`", heading(occurrence.declaration.file))
        case _:
            return _code(name, words.OTHERS[name]) if name in words.OTHERS else None


def _setting(document: Document, offset: int) -> Hover | None:
    for token in document.parsed.tokens:
        if token.kind == "SETTING" and token.start <= offset <= token.end:
            return Hover(Span(document.source, token.start, token.end), _code(token.text, words.SETTINGS[token.text]))
    return None


def _code(code: str, *paragraphs: str | None) -> str:
    return "\n\n".join([f"```stm\n{code}\n```", *(text for text in paragraphs if text)])


# --- gates


def _gate(document: Document, occurrence: Occurrence) -> str | None:
    around = document.scan_at(occurrence.span.start)
    if around is None:
        return None
    item, scan = around
    name = occurrence.name
    form = forms_of([entry for entries in gates_of(item).values() for entry in entries], document.module)[name]
    kind = "complex number" if form > Form.REAL else "real number"
    core = words.GATES.get(name)
    return _code(signature(item, name), core, _bounds(scan, name, kind, form))


def signature(item: tree.ScanItem, name: str) -> str:
    """A gate with its indices as its first equation has them, pins left out: `transition[out, in]`."""
    entries = gates_of(item)[name][0].indices
    return f"{name}[{', '.join(entry.index.text for entry in entries)}]" if entries else name


def _bounds(scan: Scan | None, name: str, kind: str, form: Form) -> str:
    """A gate's type, the interval that it lies in and what it depends on; of the transition what was proved of it."""
    facts = None if scan is None else facts_about(scan)
    if facts is None:
        return f"A {kind}. Its bounds are shown where the scan is right and its graph is small."
    gates = {gate.name: gate for gate in facts.scan.gates}
    halves = [name] if name in gates else [half for half in gates if half.partition(".")[0] == name]
    if not halves:
        return f"A {kind}. No gate of the recurrence depends on it."
    lines = [f"A {kind}{', one for each direction' if gates[halves[0]].directional else ''}."]
    for half in halves:
        shown = f"`{half}` in" if form > Form.REAL else "In"
        depends = show_depends(facts.bounds, half)
        lines.append(f"{shown} `{interval_of(facts.bounds, half)}`{f'; {depends}' if depends else ''}.")
    if name == "transition":
        lines += [_verdict(facts.verdict.kind, facts.verdict.reason), *(f"- {line}" for line in show_transition(facts))]
    return "\n\n".join(lines)


def _verdict(kind: str, reason: tuple[str, ...]) -> str:
    return "\n".join([f"**Stability: {kind}.**", "", *(f"- {step}" for step in reason)])


# --- scans


def _scan(document: Document, occurrence: Occurrence, target: str) -> str | None:
    around = document.scan_at(occurrence.span.start)
    if around is None:
        return None
    item, scan = around
    head = f"scan {item.name.text} on {' '.join(item.topology.span.text.split())}"
    if scan is None:
        return _code(head, heading(document.source, item.span.start), "What is proved of it is shown where the text is right.")
    facts = facts_about(scan)
    several = f", track {scan.track}" if scan.track > 1 else ""
    ways = f", {len(scan.directions)} directions" if len(scan.directions) > 1 else ""
    sizes = f"heads {scan.heads}, key {scan.key}, value {scan.value}{several}{ways}."
    proved = None if facts is None else _verdict(facts.verdict.kind, facts.verdict.reason)
    return _code(head, heading(document.source, item.span.start), sizes, proved, _plan(document, item, target))


def _plan(document: Document, item: tree.ScanItem, target: str) -> str:
    """What would evaluate a scan at the sizes of its comments, what that costs, and what it was weighed against."""
    scan, unknown = sized(document, item)
    remarks = [f"It has nothing named `{name}` to set." for name in unknown]
    remarks += [f"`{piece}` is no size." for piece in sizes_of(document, item).unread]
    if scan is None:
        remarks.append("The scan is wrong at these sizes: `stmlang check --set` says how.")
    elif isinstance(scan.topology, Runtime):
        remarks.append("**Plan** at run time, by the graphs of a batch:")
        remarks += [
            f"- {entry.graphs} graphs of {entry.nodes} nodes: `{entry.strategy}`" for entry in outlook_for(scan, target)
        ]
        return "\n".join([*remarks[:1], "", *remarks[1:]])
    elif open_axes := unbound(scan):
        remarks.append(f"For its plan write a comment: `# stmlang: {', '.join(f'{axis}=14' for axis in open_axes)}`")
    else:
        remarks.append(_planned(scan, target))
    return "\n\n".join(remarks)


def _planned(scan: Scan, target: str) -> str:
    plan = plan_for(scan, target)
    if isinstance(plan, str):
        return f"No plan: {plan}."
    chosen, where = plan.chosen, plan.circumstances
    lines = [
        f"**Plan** for {where.nodes:,} nodes, {where.mode} in {where.dtype} on `{plan.target.name}`: "
        f"`{chosen.candidate.label}`, {units.seconds(chosen.seconds)} predicted, {units.size(chosen.memory)}",
        "",
    ]
    losers = [entry for entry in plan.ranked if entry.estimate.candidate != chosen.candidate][:_LOSERS]
    for entry in losers:
        estimate = entry.estimate
        lines.append(f"- not `{estimate.candidate.label}`, {units.seconds(estimate.seconds)}: {entry.why}")
    return "\n".join(lines)


# --- what is declared elsewhere


def _declared(document: Document, occurrence: Occurrence) -> str | None:
    """A definition or topology as it is written, with the comment above it."""
    declared = declaration_of(document.module, occurrence)
    if declared is None:
        return None
    item = declared.item
    here = item.span.file is document.source
    return _code(item.span.text, heading(item.span.file, item.span.start), None if here else f"From `{item.span.file.name}`.")


def declaration_of(module: Module, occurrence: Occurrence) -> Definition | NamedTopology | None:
    """The definition or topology that a name stands for."""
    declared = module.names.get(occurrence.name) or module.own.get(occurrence.name)
    if declared is not None and declared.item.name.span == occurrence.declaration:
        return declared
    return None


def _number(document: Document, occurrence: Occurrence) -> str:
    """A parameter or an axis, with its default."""
    declaration = occurrence.declaration
    if declaration is None:
        return _code(occurrence.name, "A number.")
    line, _ = declaration.file.position(declaration.start)
    where = "" if declaration.file is document.source else f" of `{declaration.file.name}`"
    return _code(occurrence.name, f"A number, declared in line {line}{where}: `{declaration.file.line(line).strip()}`")


def heading(file: SourceFile, start: int = 0) -> str | None:
    """The comment right above a place, or at the top of a file, as plain text."""
    line, _ = file.position(start)
    numbers = range(line - 1, 0, -1) if start else range(1, len(file.line_starts) + 1)
    lines: list[str] = []
    for number in numbers:
        text = file.line(number).strip()
        if not text.startswith("#"):
            break
        lines.append(text.lstrip("# "))
    shown = [text for text in (lines[::-1] if start else lines) if not text.replace(" ", "").startswith("stmlang:")]
    return "\n".join(shown) or None
