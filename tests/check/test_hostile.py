"""Texts made to hurt: long, deep, circular, explosive. Each is answered quickly, with a scan or a SpecError."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from stmlang.check import load
from stmlang.check.invariants import verify
from stmlang.scan.show import show_scan
from stmlang.source.diagnostic import SpecError, render
from stmlang.source.span import SourceFile
from stmlang.syntax.lexer import lex
from tests.check.programs import GOOD as PROGRAM_NAMES
from tests.check.programs import PROGRAMS, inside
from tests.helpers.work import calls

LIMIT = 6_000_000
"""Function calls: under two seconds on an idle machine, and the same number on a busy one."""


def scan(body: str, before: str = "", on: str = "chain(time)") -> str:
    return f"{before}\nscan s on {on} {{\nsource = 1\ntransition = 0.5\n{body}\n}}\n"


def lines(count: int, form: Callable[[int], str]) -> str:
    return "\n".join(form(k) for k in range(count))


def names(count: int, letter: str) -> str:
    return ", ".join(f"{letter}{k}" for k in range(count))


GOOD = {
    "long sum": scan("mark = linear(x)" + " + 1.5" * 10_000),
    "long product": scan("a = linear(x)\nmark = a" + " * a" * 10_000),
    "chained gates": scan("g0 = linear(x)\n" + lines(5_000, lambda k: f"g{k + 1} = g{k} * 0.5") + "\nmark = g5000"),
    "chained gates, backwards": scan(
        "mark = g5000\n" + lines(5_000, lambda k: f"g{5000 - k} = g{4999 - k}") + "\ng0 = linear(x)"
    ),
    "deep brackets": scan("mark = " + "(" * 95 + "linear(x)" + ")" * 95),
    "deep calls": scan("mark = " + "-exp(1 + 2 * " * 48 + "linear(x)" + ")" * 48),
    "power tower": scan("a = linear(x)\nmark = " + " ^ ".join(["a"] * 90)),
    "long graph": scan("", on="dag {\n" + lines(20_000, lambda k: f"n{k} -> n{k + 1}") + "\n}"),
    "bipartite graph": scan("", on=f"dag {{ {names(300, 'a')} -> {names(300, 'b')} }}"),
    "many scans on one graph": f"topology t = dag {{ {names(200, 'a')} -> {names(200, 'b')} }}\n"
    + lines(300, lambda k: f"scan s{k} on t {{ source = 1; transition = 1 }}"),
    "many equations of one gate": scan(
        "\n".join(f"mark2[out = a{i}, in = a{j}] = {i}" for i in range(16) for j in range(16))
        + "\nmark = sum(sum(mark2, over = out), over = in)",
        on=f"grid({names(16, 'a')})",
    ),
    "many scans": lines(2_000, lambda k: f"scan s{k} on chain(time) {{ source = 1; transition = 0.5 }}"),
    "many parameters": f"scan s({', '.join(f'p{k} = {k}' for k in range(10_000))}) on chain(t) {{ source = 1; transition = 1}}",
}
BAD = {
    "gates in a long circle": ("STM1008", scan("mark = g0\n" + lines(5_000, lambda k: f"g{k} = g{(k + 1) % 5_000}"))),
    "doubling definitions": (
        "STM2027",
        scan("mark = d40(linear(x))", "def d0(a) = a\n" + lines(40, lambda k: f"def d{k + 1}(a) = d{k}(a) * d{k}(a)")),
    ),
    "doubling arguments": ("STM2027", scan("mark = " + "square(" * 40 + "linear(x)" + ")" * 40, "def square(a) = a * a")),
    "deep definitions": (
        "STM2026",
        scan("mark = d5000(linear(x))", "def d0(a) = a\n" + lines(5_000, lambda k: f"def d{k + 1}(a) = exp(d{k}(a))")),
    ),
    "definitions in a long circle": (
        "STM1007",
        scan("mark = d0(1)", lines(2_000, lambda k: f"def d{k}(a) = d{(k + 1) % 2_000}(a)")),
    ),
    "many unknown names": ("STM1001", scan(lines(3_000, lambda k: f"g{k} = gg{k} + hh{k}"))),
    "many unknown functions": (
        "STM1002",
        scan(lines(3_000, lambda k: f"g{k} = ff{k}(1)"), lines(3_000, lambda k: f"def d{k}(a) = a")),
    ),
    "maps of maps, through definitions": (
        "STM2026",
        scan("mark = f150(1)", "def f0(a) = degree(in) * a\n" + lines(150, lambda k: f"def f{k + 1}(a) = linear(x, f{k}(a))")),
    ),
    "biases of biases, through definitions": (
        "STM2026",
        scan("mark = f150(1)", "def f0(a) = a\n" + lines(150, lambda k: f"def f{k + 1}(a) = linear(x, bias = f{k}(a))")),
    ),
    "spreads of spreads, through definitions": (
        "STM2026",
        scan(
            "mark = f150(1)",
            "def f0(a) = a\n" + lines(150, lambda k: f"def f{k + 1}(a) = linear(x, bias = spread(0, f{k}(a)))"),
        ),
    ),
    "topology names": (
        "STM3014",
        scan("", "topology t0 = chain(a)\n" + lines(3_000, lambda k: f"topology t{k + 1} = t{k}"), "t3000"),
    ),
    "topology products": (
        "STM3014",
        scan("", "topology t0 = chain(a)\n" + lines(60, lambda k: f"topology t{k + 1} = t{k} * t{k}"), "t60"),
    ),
    "a long cycle": ("STM3004", scan("", on="dag {\n" + lines(20_000, lambda k: f"n{k} -> n{(k + 1) % 20_000}") + "\n}")),
    "gates that all need each other": (
        "STM1008",
        scan("mark = g0\n" + lines(90, lambda k: f"g{k} = " + " + ".join(f"g{j}" for j in range(90) if j != k))),
    ),
    "definitions that all need each other": (
        "STM1007",
        scan("", lines(90, lambda k: f"def f{k}() = " + " + ".join(f"f{j}()" for j in range(90) if j != k))),
    ),
    "many parameters, called wrongly many times": (
        "STM1030",
        scan(
            lines(3_000, lambda k: f"g{k} = f(1)"), f"def f({names(3_000, 'a')}) = " + " + ".join(f"a{k}" for k in range(3_000))
        ),
    ),
    "many parameters, named wrongly many times": (
        "STM1031",
        scan(
            lines(3_000, lambda k: f"g{k} = f(b = 1)"),
            f"def f({names(3_000, 'a')}) = " + " + ".join(f"a{k}" for k in range(3_000)),
        ),
    ),
    "long names that are alike": ("STM1001", scan(lines(150, lambda k: f"{'x' * 500}{k} = {'x' * 500}y{k}"))),
    "many graphs of many edges": (
        "STM3009",
        lines(40, lambda k: f"scan s{k} on dag {{ {names(200, 'a')} -> {names(200, 'b')} }} {{ source = 1; transition = 1 }}"),
    ),
    "too many edges": ("STM3009", scan("", on=f"dag {{ {names(3_000, 'a')} -> {names(3_000, 'b')} }}")),
    "self loops in a product of lists": ("STM3005", scan("", on=f"dag {{ {names(300, 'a')} -> {names(300, 'a')} }}")),
    "too many axes": ("STM3014", scan("", on=f"grid({names(3_000, 'a')})")),
    "a huge number": ("STM2028", scan("mark = 10 ^ 10 ^ 10")),
    "a huge tree": ("STM3303", scan("", on="tree(arity = 2, depth = 2 ^ 30)")),
    "many arguments": ("STM1030", scan("mark = exp(" + ", ".join(["1"] * 20_000) + ")")),
    "many directions": ("STM2036", scan("directions " + ", ".join(["+a -b"] * 10_000), on="grid(a, b)")),
    "an index free in many places": ("STM2008", scan("a[out] = linear(x)\nmark = a" + " + a" * 20_000)),
    "one gate said many times": ("STM2009", scan(lines(10_000, lambda _: "mark = 1"))),
}


def answered(text: str) -> list[str]:
    """The codes of the diagnostics, none for a good text."""
    codes: list[str] = []
    shown: list[str] = []

    def answer() -> None:
        try:
            load(text)
        except SpecError as error:
            codes.extend(one.code for one in error.diagnostics)
            shown.extend(render(one) for one in error.diagnostics)

    assert calls(answer) < LIMIT
    assert sum(map(len, shown)) < 5_000_000
    return codes


@pytest.mark.parametrize("name", GOOD)
def test_long_but_right(name: str) -> None:
    assert answered(GOOD[name]) == []
    verify(load(GOOD[name]))


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    code, text = BAD[name]
    assert code in answered(text)


def words_of(text: str) -> list[str]:
    """The tokens of a text, line ends among them."""
    return [token.text if token.text.strip() else "\n" for token in lex(SourceFile("<text>", text)).tokens]


@pytest.mark.parametrize("seed", range(2))
def test_mutated_programs(seed: int) -> None:
    """Programs with some words exchanged check, or are refused with messages that can be printed; nothing else happens."""
    chance = random.Random(seed)
    programs = [words_of((PROGRAMS / "good" / name).read_text(encoding="utf-8-sig")) for name in PROGRAM_NAMES]
    known = sorted({word for program in programs for word in program})
    named = [word for word in known if word[0].isalpha()]
    messages: set[str] = set()
    with inside("good"):
        for _ in range(400):
            words = list(chance.choice(programs))
            for _ in range(chance.randint(1, 2)):
                at = chance.randrange(len(words))
                words[at] = chance.choice(named if words[at][:1].isalpha() else known)
            try:
                found = load(" ".join(words) + "\n")
            except SpecError as error:
                messages.update(render(one) for one in error.diagnostics)
            else:
                verify(found)
                assert show_scan(found)
    assert len(messages) > 100
