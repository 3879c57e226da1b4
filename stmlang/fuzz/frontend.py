"""Checks of the front end on a text, given as the bytes of a file: whatever it holds, only diagnostics come out, and what they,
the formatter and the writer of trees promise holds.

Everything here is a function of the bytes alone: imports are looked for in the installed library, graph files are not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import thread_time
from traceback import extract_tb

from stmlang.check import Examined, Spec, examine, library
from stmlang.check.invariants import verify
from stmlang.check.search_path import place_of
from stmlang.facts import analyse
from stmlang.facts.show import show_facts
from stmlang.fuzz.trial import Finding
from stmlang.scan.scan import Scan
from stmlang.scan.show import show_scan
from stmlang.scan.topology import FromFile, Product, Topology
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import Diagnostic, Severity, SpecError, render, to_json
from stmlang.source.reading import decode
from stmlang.source.span import SourceFile
from stmlang.syntax import tree
from stmlang.syntax.formatter import format_source
from stmlang.syntax.parser import parse
from stmlang.syntax.show import show_tree
from stmlang.syntax.walk import tree_equal
from stmlang.syntax.write import write_file

TextCheck = Callable[[bytes], Finding | None]
"""What a check of a text is: a function of the bytes of a file; None where there is nothing to object."""

SECONDS = 2.0
"""Processor time within which every text is answered, all its diagnostics rendered."""

_NAME = "spec.stm"
_ABOVE_A_PLACE = frozenset({"STM0004", "STM1012", "STM1013"})
"""Codes of findings about a text as a whole."""


@dataclass(frozen=True)
class _Read:
    """What the front end makes of a text: each part None where the one before it was refused."""

    source: SourceFile | None
    file: tree.File | None
    scan: Scan | None
    diagnostics: tuple[Diagnostic, ...]


@lru_cache(maxsize=2)  # the checks of a text follow each other
def _read(content: bytes) -> _Read:
    try:
        source = decode(content, _NAME)
    except SpecError as error:
        return _Read(None, None, None, error.diagnostics)
    try:
        file = parse(source)
    except SpecError as error:
        return _Read(source, None, None, error.diagnostics)
    examined = _examined(source)
    return _Read(source, file, examined.scan, examined.diagnostics)


def _examined(source: SourceFile) -> Examined:
    return examine(Spec(source, None, place_of(library())), library_file=False)


# --- what comes out


def answers(content: bytes) -> Finding | None:
    """The front end raises nothing but `SpecError`, at every door: reading, parsing, checking, formatting, showing."""
    try:
        reading = _read(content)
        if reading.source is not None:
            _formatted(reading.source)
        if reading.file is not None:
            show_tree(reading.file)
        if reading.scan is not None:
            show_scan(reading.scan)
    except Exception as error:
        return _raised("answers", error)
    return None


def reports(content: bytes) -> Finding | None:
    """Every diagnostic has a code of the table, a place inside a text, stands once and in order, and can be rendered."""
    reading = _read(content)
    errors = [diagnostic for diagnostic in reading.diagnostics if diagnostic.severity is Severity.ERROR]
    if (reading.scan is None) != bool(errors):
        return _objection("reports", f"{len(errors)} errors, and {'no' if reading.scan is None else 'a'} scan")
    if len(set(reading.diagnostics)) != len(reading.diagnostics):
        return _objection("reports", "a diagnostic stands twice")
    starts = [
        diagnostic.span.start
        for diagnostic in reading.diagnostics
        if diagnostic.span is not None and diagnostic.span.file is reading.source
    ]
    if starts != sorted(starts):
        return _objection("reports", "diagnostics are not in the order of the text")
    for diagnostic in reading.diagnostics:
        for fault in _faults(diagnostic):
            return _objection("reports", f"{diagnostic.code}: {fault}")
    return None


def _faults(diagnostic: Diagnostic) -> Iterator[str]:
    """What is wrong with a diagnostic."""
    if diagnostic.code not in CODES:
        yield "not in the table of codes"
    if not diagnostic.message.strip() or diagnostic.help == "" or not all(diagnostic.notes):
        yield "it says nothing"
    if diagnostic.span is None and diagnostic.code not in _ABOVE_A_PLACE:
        yield "it has no place"
    for span in (*([diagnostic.span] if diagnostic.span else []), *(label.span for label in diagnostic.labels)):
        if not 0 <= span.start <= span.end <= len(span.file.text):
            yield f"the place {span.start} to {span.end} is outside of the text"
    shown = render(diagnostic)
    if render(diagnostic, colour=True).count("\n") != shown.count("\n"):
        yield "colours change the lines"
    if not all(line.isprintable() for line in shown.split("\n")):
        yield "what is shown holds characters that a terminal would obey"
    if diagnostic.span is not None and "^" not in shown:
        yield "no caret is shown"
    if json.loads(json.dumps(to_json(diagnostic)))["code"] != diagnostic.code:
        yield "as data it has another code"


def in_time(content: bytes) -> Finding | None:
    """A text is read, checked and formatted, and all that is found is rendered, within `SECONDS` of processor time."""
    start = thread_time()
    try:
        source = decode(content, _NAME)
        for diagnostic in _examined(source).diagnostics:
            render(diagnostic)
        format_source(source)
    except SpecError as error:
        for diagnostic in error.diagnostics:
            render(diagnostic)
    spent = thread_time() - start
    return Finding("in_time", "", f"{len(content):,} bytes took {spent:.1f} s", spent, SECONDS) if spent > SECONDS else None


# --- what is promised of a text that parses


def formats(content: bytes) -> Finding | None:
    """The formatter keeps the tree and the comments, and leaves alone what it made; a bad text is refused by it, too."""
    reading = _read(content)
    if reading.source is None:
        return None
    text = _formatted(reading.source)
    if reading.file is None or text is None:
        return None if text is None else _objection("formats", "a text that does not parse is formatted")
    again = SourceFile(_NAME, text)
    difference = _difference(reading.file, again)
    if difference is not None:
        return _objection("formats", f"formatting {difference}")
    if [comment.text for comment in reading.file.comments] != [comment.text for comment in parse(again).comments]:
        return _objection("formats", "formatting changes the comments")
    if format_source(again) != text:
        return _objection("formats", "formatting twice changes the text twice")
    return None


def reads_back(content: bytes) -> Finding | None:
    """The tree, written as a text, is read as the same tree."""
    reading = _read(content)
    if reading.file is None:
        return None
    difference = _difference(reading.file, SourceFile(_NAME, write_file(reading.file)))
    return None if difference is None else _objection("reads_back", f"writing the tree {difference}")


_LAYOUTS: Mapping[str, Callable[[str], str]] = {
    "a line end at the end": lambda text: text + "\n",
    "no line end at the end": lambda text: text.rstrip("\r\n"),
    "lines that end as on Windows": lambda text: "\r\n".join(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")),
    "lines that end in a return": lambda text: text.replace("\r\n", "\n").replace("\n", "\r"),
    "a comment at the end": lambda text: text + " # note",
    "blanks before each line end": lambda text: "\n".join(line + " \t" for line in text.split("\n")),
}


def layout_is_free(content: bytes) -> Finding | None:
    """How lines end, whether the last one does, blanks behind lines and a byte order mark change nothing of a tree."""
    reading = _read(content)
    if reading.file is None or reading.source is None:
        return None
    for name, change in _LAYOUTS.items():
        difference = _difference(reading.file, SourceFile(_NAME, change(reading.source.text)))
        if difference is not None:
            return _objection("layout_is_free", f"{name} {difference}")
    if decode(b"\xef\xbb\xbf" + reading.source.text.encode(), _NAME).text != reading.source.text:
        return _objection("layout_is_free", "a byte order mark changes the text")
    return None


# --- what is promised of a text that checks


def keeps_its_type(content: bytes) -> Finding | None:
    """A right text is a scan that fits together; formatted, or written from its tree, it is the same scan."""
    reading = _read(content)
    if reading.scan is None or reading.file is None or reading.source is None:
        return None
    try:
        verify(reading.scan)
    except AssertionError as error:
        return _objection("keeps_its_type", f"the scan does not fit together: {error}")
    shown = show_scan(reading.scan)
    for how, text in (("formatted", format_source(reading.source)), ("written from its tree", write_file(reading.file))):
        examined = _examined(SourceFile(_NAME, text))
        if examined.scan is None:
            codes = ", ".join(diagnostic.code for diagnostic in examined.diagnostics)
            return _objection("keeps_its_type", f"{how}, the text is refused: {codes}")
        if show_scan(examined.scan) != shown:
            return _objection("keeps_its_type", f"{how}, the text is another scan")
    return None


def is_analysed(content: bytes) -> Finding | None:
    """The facts about a right text's scan are found, or refused with a diagnostic; the scan to compile fits together."""
    reading = _read(content)
    if reading.scan is None or _reads_files(reading.scan.topology):
        return None
    try:
        facts = analyse(reading.scan)
        verify(facts.scan)
        show_facts(facts)
    except SpecError as error:
        faults = [fault for diagnostic in error.diagnostics for fault in _faults(diagnostic)]
        return _objection("is_analysed", faults[0]) if faults else None
    except AssertionError as error:
        return _objection("is_analysed", f"the scan to compile does not fit together: {error}")
    return None


def _reads_files(topology: Topology) -> bool:
    factors = topology.factors if isinstance(topology, Product) else (topology,)
    return any(isinstance(factor, FromFile) for factor in factors)


TEXT_CHECKS: Mapping[str, TextCheck] = {
    check.__name__: check
    for check in (answers, reports, in_time, formats, reads_back, layout_is_free, keeps_its_type, is_analysed)
}
"""All checks of a text by name. `in_time` measures; all others give the same answer every time."""


# --- parts


def _formatted(source: SourceFile) -> str | None:
    try:
        return format_source(source)
    except SpecError:
        return None


def _difference(file: tree.File, other: SourceFile) -> str | None:
    """In what a text differs from a tree, in words that go on from what was done to it."""
    try:
        return None if tree_equal(file, parse(other)) else "changes the tree"
    except SpecError as error:
        return f"makes it wrong: {error.diagnostics[0].code}, {error.diagnostics[0].message}"


def _objection(check: str, what: str) -> Finding:
    return Finding(check, "", what, 1.0, 0.0)


def _raised(check: str, error: Exception) -> Finding:
    """The finding for an exception, with the last place in the code."""
    frames = extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
    return _objection(check, f"{type(error).__name__}: {error}{where}")
