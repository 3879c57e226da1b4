"""No text makes the front end fail otherwise than with diagnostics, or take long."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stmlang.source.diagnostic import Diagnostic, SpecError, render, to_json
from stmlang.source.span import SourceFile
from stmlang.syntax import tree
from stmlang.syntax.formatter import format_source
from stmlang.syntax.parser import parse
from stmlang.syntax.show import show_tree
from stmlang.syntax.walk import tree_equal
from tests.helpers.work import calls
from tests.syntax import samples

WORDS = (
    *("topology", "scan", "def", "use", "on", "from", "as", "directions", "stabilize", "normalize", "read", "after"),
    *("dag", "tree", "grid", "a", "b", "out", "key'", "1", ".5", "2e-3", "1..2", '"f"', "é"),
    *("(", ")", "[", "]", "{", "}", "+", "-", "*", "/", "^", "=", ",", ".", ";", "->", "<="),
    *("**", "==", ":=", "//", "'", '"', "#", "−", "$", "\0"),
    *("\n", "\n", "\r", "\n    ", "\t", " ", " # note\n", "\n# note\n"),
)

soups = st.lists(st.sampled_from(WORDS), max_size=80).map(" ".join) | st.lists(st.sampled_from(WORDS), max_size=80).map("".join)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A good text with a few tokens dropped, put in, or replaced."""
    tokens = re.findall(r"\w+|\s+|.", draw(st.sampled_from(samples.ALL[:4])))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(tokens) - 1))
        width = draw(st.integers(0, 3))
        tokens[at : at + width] = draw(st.lists(st.sampled_from(WORDS), max_size=2))
    return "".join(tokens)


def outcome(source: SourceFile) -> tuple[tree.File | None, tuple[Diagnostic, ...]]:
    try:
        return parse(source), ()
    except SpecError as error:
        return None, error.diagnostics


def examine(text: str) -> None:
    source = SourceFile("spec.stm", text)
    assert calls(lambda: outcome(source)) < 10_000 + 200 * len(text)
    file, diagnostics = outcome(source)
    if file is None:
        assert diagnostics
        for found in diagnostics:
            assert found.span is not None
            assert 0 <= found.span.start <= found.span.end <= len(text)
            assert any("^" in line for line in render(found).splitlines()[2:])
            assert to_json(found)["code"] == found.code
        return
    show_tree(file)
    canonical = format_source(source)
    again = SourceFile("spec.stm", canonical)
    assert format_source(again) == canonical
    assert tree_equal(file, parse(again))
    assert [comment.text for comment in file.comments] == [comment.text for comment in parse(again).comments]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(soups)
def test_token_soups(text: str) -> None:
    examine(text)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_mutated_specs(text: str) -> None:
    examine(text)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_characters(text: str) -> None:
    examine(text)
