"""Hovers, completion, help for calls, hints: what is said of the words of a text."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stmlang.check.vocabulary import BUILT_IN, CORE, INDEX_WORDS, INPUTS, KINDS_OF_TOPOLOGY, SIZES
from stmlang.lsp import words
from stmlang.lsp.completion import completion
from stmlang.lsp.hints import hints
from stmlang.lsp.hover import hover
from stmlang.lsp.signature import signature_help
from stmlang.syntax.lexer import SETTING_WORDS
from tests.check.helpers import codes
from tests.lsp.helpers import document, marked

SCAN = """# stmlang: rows=6, cols=6
topology image = grid(rows, cols)

# Opens slowly.
def opened(a, start) = sigmoid(a + start)

# Turns are closed.
scan turning(heads = 2, key = 8, value = 8) on image {
    directions all
    k                   = l2norm(k)
    pace[out]           = opened(linear(x), 2)
    source[out]         = pace
    transition[out, in] = tanh(linear(x)) * split(0.5)
    transition[out = cols, in = rows] = 0
    stabilize P
}
"""


def at(place: str, text: str = SCAN) -> str | None:
    """What a hover says where a text, marked by `|`, stands in the scan."""
    start = text.index(place.replace("|", ""))
    shown = hover(document(text), start + place.index("|"))
    return None if shown is None else shown.text


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "so|urce[out] ",
            ["```stm\nsource[out]\n```", "S[n, o]", "one for each direction", "In `[0, 1]`", "reads x; from pace"],
        ),
        (
            "trans|ition[out, in]",
            [
                "transition[out, in]",
                "**Stability: proved P.**",
                "every column of transition sums to at most 1",
                "zero at [out = cols",
            ],
        ),
        (
            "tu|rning",
            ["on image", "Turns are closed.", "heads 2, key 8, value 8, 4 directions", "**Plan** for 36 nodes", "not `"],
        ),
        ("op|ened(linear", ["def opened(a, start) = sigmoid(a + start)", "Opens slowly."]),
        ("on im|age", ["topology image = grid(rows, cols)"]),
        ("sig|moid", ["sigmoid(a)", "in [0, 1]"]),
        ("direc|tions", ["In which senses"]),
        ("in = ro|ws", ["A number, declared in line 2"]),
        ("[o|ut, in]", ["outgoing edges"]),
        ("he|ads", ["How many heads"]),
        ("gr|id(", ["each of which is a port"]),
    ],
)
def test_hovers(place: str, said: list[str]) -> None:
    text = at(place)
    assert text is not None
    assert [piece for piece in said if piece not in text] == []


def test_a_complex_gate_shows_both_halves() -> None:
    text = "scan s(key = 4) on chain(time) { turn[key] = polar(0.9, param(1)); source = 1; transition[key] = turn }"
    said = at("tu|rn[key]", text)
    assert said is not None
    assert "A complex number." in said
    assert "`turn.radius` in `[0.9, 0.9]`" in said


def test_a_scan_without_sizes_says_how_to_give_them() -> None:
    assert "`# stmlang: rows=14, cols=14`" in (at("tu|rning", SCAN.partition("\n")[2]) or "")


def test_sizes_that_are_none_are_told() -> None:
    said = at("tu|rning", SCAN.replace("rows=6", "rowz=6, rows = many, rows=6"))
    assert said is not None
    assert all(piece in said for piece in ("nothing named `rowz`", "`rows=many` is no size", "**Plan** for 36 nodes"))


def test_a_graph_that_comes_at_run_time_has_an_outlook() -> None:
    text = "scan s(key = 4, value = 4) on dag(nodes <= 64, edges <= 160) { source = 0.5; transition = 0.5 }"
    assert "64 graphs of 16 nodes: `" in (at("scan |s", text) or "")


def test_planning_needs_no_jax() -> None:
    code = f"""
import sys
from tests.lsp.helpers import document
from stmlang.lsp.hover import hover
text = {SCAN!r}
assert "**Plan**" in hover(document(text), text.index("turning(")).text
assert "jax" not in sys.modules
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


# --- completion

BODY = "topology image = grid(rows, cols)\nscan s(n = 2) on image {\n    gate[out, key] = linear(x)\n    %s\n}\n"


def labels(text: str) -> list[str]:
    return [item.label for item in completion(*marked(text))]


@pytest.mark.parametrize(
    ("text", "there", "absent"),
    [
        ("|", ["scan", "def", "topology", "use"], ["source", "sigmoid"]),
        ("sc|", ["scan"], []),
        (BODY % "|", ["source", "transition", "q", "gate", "stabilize", "read"], ["sigmoid", "scan"]),
        (BODY % "sour|", ["source"], ["sigmoid"]),
        (BODY % "source = |", ["gate", "n", "rows", "sigmoid", "pi", "eye", "k", "forget"], ["source[", "directions"]),
        (BODY % "source = sigmoid(|", ["gate", "linear", "a ="], ["x"]),
        (BODY % "source = linear(|", ["x", "e", "bias =", "weight ="], []),
        (BODY % "source = sum(gate, over = |", ["out", "key", "key'"], ["sigmoid", "gate"]),
        (BODY % "source[|", ["out", "key"], ["in", "key'", "gate"]),
        (BODY % "source[out, |", ["key", "value"], ["out"]),
        (BODY % "source[out = |", ["rows", "cols"], ["out", "edge"]),
        (BODY % "source[out] = gate[|", ["out", "in", "key"], ["gate"]),
        (BODY % "source = degree(|", ["out", "in"], []),
        (BODY % "stabilize |", ["P", "D", "auto", "none"], ["source", "sigmoid"]),
        (BODY % "directions +|", ["rows", "cols"], ["both"]),
        (BODY % "directions all |", ["own", "concat", "q"], []),
        (BODY % "read |", ["after"], []),
        (BODY % "# |", [], ["source"]),
        ("topology t = |", ["chain", "grid", "tree", "dag"], ["sigmoid"]),
        ("topology t = grid(a)\nscan s on |", ["t", "chain"], ["sigmoid"]),
        ("scan s |", ["on"], ["chain"]),
        ('topology t = dag from "a.txt" as |', ["graphml", "edgelist"], ["chain"]),
        ("def f(first) = |", ["first", "sigmoid", "heads"], ["source"]),
        ("def f(|", [], ["sigmoid"]),
        ("def f(a, b) = a + b\nscan s on chain(t) { source = f(|", ["a =", "b =", "f"], []),
        ("use |", ["std.gates", "std.plstm.image_p"], ["source"]),
        ("use std.|", ["gates"], ["std.gates"]),
        ("use std.gates (|", ["forget"], ["std.gates"]),
        ("topology t = dag { a -> |", [], ["sigmoid", "source"]),
    ],
)
def test_completion(text: str, there: list[str], absent: list[str]) -> None:
    shown = labels(text)
    assert [label for label in there if label not in shown] == []
    assert [label for label in absent if label in shown] == []


def test_a_function_of_the_library_brings_its_import() -> None:
    item = next(item for item in completion(*marked(BODY % "source = |")) if item.label == "forget")
    assert [edit.text for edit in item.edits] == ["use std.gates (forget)\n"]


def test_what_is_completed_takes_the_place_of_the_word() -> None:
    text, offset = marked(BODY % "source = sigm|")
    item = next(item for item in completion(text, offset) if item.label == "sigmoid")
    assert (item.span.text, item.snippet) == ("sigm", "sigmoid($1)")


# --- calls


@pytest.mark.parametrize(
    ("text", "label", "active"),
    [
        (BODY % "source = clip(|", "clip(a, low, high)", 0),
        (BODY % "source = clip(gate[out, key], 1 + 2, |", "clip(a, low, high)", 2),
        (BODY % "source = clip(gate, 1, 2, |", "clip(a, low, high)", None),
        (BODY % "source = clip(gate, high = |", "clip(a, low, high)", 2),
        (BODY % "source = linear(x, e[in], |", "linear(features, bias, weight)", 0),
        (BODY % "source = linear(x, bias = |", "linear(features, bias, weight)", 1),
        (BODY % "source = clip(sigmoid(|", "sigmoid(a)", 0),
        (BODY % "source = clip((|", "clip(a, low, high)", 0),
        ("def f(a, b) = a * b\n" + BODY % "source = f(1, |", "f(a, b)", 1),
    ],
)
def test_help_for_calls(text: str, label: str, active: int | None) -> None:
    shown = signature_help(*marked(text))
    assert shown is not None
    assert (shown.label, shown.active) == (label, active)


@pytest.mark.parametrize(
    "text", [BODY % "source = |", BODY % "source[|", BODY % "source = nothing(|", "|", BODY % "source = 1 # f(|"]
)
def test_no_help_where_nothing_is_called(text: str) -> None:
    assert signature_help(*marked(text)) is None


# --- hints


def test_hints_say_indices_and_intervals() -> None:
    text = document(SCAN)
    shown = {(text.source.position(hint.offset)[0], hint.label) for hint in hints(text, 0, len(SCAN))}
    assert (10, "[key]") in shown  # k, on both sides
    assert (12, "[out]") in shown  # pace
    assert (11, " in [0, 1]") in shown
    assert (14, " in [-0.5, 0.5]") in shown  # of the transition as a whole
    assert all(line == 12 for line, _ in {(text.source.position(hint.offset)[0], 0) for hint in hints(text, *_line(12))})


def _line(number: int) -> tuple[int, int]:
    return document(SCAN).source.bounds(number)


# --- the tables of words


def test_every_word_is_explained() -> None:
    assert set(words.FUNCTIONS) == set(BUILT_IN)
    assert set(words.GATES) == {*CORE, *INPUTS}
    assert set(words.INPUTS) == set(INPUTS)
    assert {index.rstrip("'") for index in INDEX_WORDS} == set(words.INDICES)
    assert set(words.SIZES) == set(SIZES)
    assert set(words.TOPOLOGIES) == set(KINDS_OF_TOPOLOGY)
    assert set(words.SETTINGS) == set(SETTING_WORDS)


@pytest.mark.parametrize("name", [name for name in words.FUNCTIONS if name not in ("linear", "split", "degree", "neighbour")])
def test_arguments_are_those_of_the_checker(name: str) -> None:
    arguments = words.FUNCTIONS[name][0]
    given = ", ".join(f"{argument} = {'key' if argument == 'over' else '0.5'}" for argument in arguments)
    wrong = {"STM1030", "STM1031"}
    assert not wrong & set(codes(f"mark = abs({name}({given}))"))
    assert wrong & set(codes(f"mark = abs({name}({given}, another = 1))"))
