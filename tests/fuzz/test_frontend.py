"""The checks of texts: what they find in any text, which is nothing, and that they can find something."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from stmlang.fuzz import frontend
from stmlang.fuzz.frontend import TEXT_CHECKS
from stmlang.fuzz.generators import texts
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import SourceFile, Span
from stmlang.syntax import tree
from stmlang.syntax.parser import parse
from stmlang.syntax.walk import tree_equal
from stmlang.syntax.write import write_file
from tests.check.programs import GOOD, PROGRAMS
from tests.helpers.work import calls
from tests.syntax import samples

STEADY = {name: check for name, check in TEXT_CHECKS.items() if name != "in_time"}
TEXT = """\
scan s(key = 2) on grid(rows = 2, cols = 3) {
    a[out] = linear(x)  # note
    source = 1
    transition[out, in] = a
}
"""
SPEC = TEXT.encode()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing that was read before is remembered: tests replace what reads."""
    frontend._read.cache_clear()
    yield
    frontend._read.cache_clear()


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(texts.texts(longest=250))
def test_any_text(data: bytes) -> None:
    found = {name: check(data) for name, check in STEADY.items()}
    assert not any(found.values()), found


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(texts.texts(longest=250))
def test_work_is_in_proportion_to_the_text(data: bytes) -> None:
    """Ten times what is usual for a byte, and what the library's definitions may expand to."""
    assert calls(lambda: frontend.in_time(data)) < 100_000 + 600 * len(data)


@pytest.mark.parametrize("text", [*samples.ALL, *texts.good_texts()])
def test_good_texts(text: str) -> None:
    assert not [found for check in STEADY.values() if (found := check(text.encode()))]


def test_all_kinds_of_texts_are_among_them() -> None:
    """Many are right, many parse, many do not, and some are no texts: nothing is hidden by what comes before it."""
    counts = dict.fromkeys(("source", "file", "scan"), 0)

    @settings(max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(texts.texts(longest=50))
    def count(data: bytes) -> None:
        found = frontend._read(data)
        for name in counts:
            counts[name] += getattr(found, name) is not None

    count()
    assert 15 < counts["scan"] < counts["file"] - 8
    assert counts["file"] < counts["source"] - 30
    assert counts["source"] < 195


# --- the checks can fail


def _gives(text: str) -> Callable[[SourceFile], str]:
    return lambda _: text


def _failing(*_: object) -> Any:
    raise RecursionError("maximum recursion depth exceeded")


def _diagnostic(**changes: Any) -> Callable[..., Any]:
    """A parser that refuses every text with a diagnostic that is not as it should be."""

    def refuse(source: SourceFile) -> Any:
        good = Diagnostic("STM0201", "unexpected", Span(source, 0, 1))
        raise SpecError([dataclasses.replace(good, **changes)])

    return refuse


def _unsound(_: Any) -> None:
    raise AssertionError("references are to earlier gates")


OTHER = TEXT.replace("source = 1", "source = 2")
FAULTS: dict[str, tuple[str, str, Any]] = {
    "the parser crashes": ("answers", "parse", _failing),
    "the formatter crashes": ("answers", "format_source", _failing),
    "an unknown code": ("reports", "parse", _diagnostic(code="STM0999")),
    "nothing said": ("reports", "parse", _diagnostic(message=" ")),
    "no place": ("reports", "parse", _diagnostic(span=None)),
    "a place outside": ("reports", "parse", _diagnostic(span=Span(SourceFile("f", "ab"), 1, 5))),
    "an error is lost": ("reports", "examine", lambda *_, **__: frontend.Examined(None, ())),
    "another tree": ("formats", "format_source", _gives(OTHER)),
    "a text that is wrong": ("formats", "format_source", _gives("scan")),
    "a lost comment": ("formats", "format_source", _gives(TEXT.replace("  # note", ""))),
    "never at rest": ("formats", "format_source", lambda source: source.text + "\n"),
    "a lost equation": ("reads_back", "write_file", lambda _: "scan s on chain(t) { }"),
    "lines that matter": ("layout_is_free", "tree_equal", lambda *_: False),
    "a scan that does not fit": ("keeps_its_type", "verify", _unsound),
    "another scan": ("keeps_its_type", "write_file", lambda _: OTHER),
    "refused once it is formatted": ("keeps_its_type", "format_source", _gives("scan s on chain(t) { source = 1 }")),
    "facts that do not fit": ("is_analysed", "verify", _unsound),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, part, fault = FAULTS[name]
    assert TEXT_CHECKS[check](SPEC) is None
    frontend._read.cache_clear()
    monkeypatch.setattr(frontend, part, fault)
    found = TEXT_CHECKS[check](SPEC)
    assert found is not None
    assert found.check == check


def test_a_missing_caret_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert frontend.reports(b"scan") is None
    monkeypatch.setattr(frontend, "render", lambda one, **_: one.message)
    assert frontend.reports(b"scan") is not None


def test_time_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, 2.5))
    monkeypatch.setattr(frontend, "thread_time", lambda: next(clock))
    found = frontend.in_time(SPEC)
    assert found is not None
    assert (found.error, found.allowed) == (2.5, frontend.SECONDS)


# --- trees as texts


@pytest.mark.parametrize("name", GOOD)
def test_programs_read_back(name: str) -> None:
    file = parse(SourceFile(name, (PROGRAMS / "good" / name).read_text(encoding="utf-8-sig")))
    again = parse(SourceFile(name, write_file(file)))
    assert tree_equal(file, again)
    assert write_file(again) == write_file(file)


def test_a_tree_as_a_text() -> None:
    file = parse(SourceFile("spec.stm", "use a.b(c)\nscan s(n=2) on dag{a->b;c}*t{d[in=x]=-(1-q)^2/k;directions+a -b}"))
    assert [type(item) for item in file.items] == [tree.UseItem, tree.ScanItem]
    assert write_file(file) == (
        "use a.b (c);\n"
        "scan s(n = 2) on dag { a -> b; c } * t {\n"
        "    d[in = x] = -(1 - q) ^ 2 / k;\n"
        "    directions + a - b;\n"
        "};\n"
    )
