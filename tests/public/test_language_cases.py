"""Texts that are cut off, too long, too deep, or import in circles: what other front ends stumbled over.

C31 (lark-parser/lark#1474, also #43 and #654). An error at the end of a text named no line, and 40,000 lines had to be
bisected by hand. Here it names the last word and the bracket that is still open. The case asks for exit code 2; here a bad
text is 1, and 2 is for bad usage.

C33 (lark-parser/lark#181). Long or deep texts ended in a RecursionError of the tree's walker. Here long ones are read, and
too deep ones are one error that has a place and names the limit.

C35 (google/xls#685, cython/cython#1390, stan-dev/stan#2716, apache/thrift#2851). Files that import each other were read for
ever, or until the process died; imports within imports were passed over. Here the circle is printed, and each file is read
once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from stmlang.check import load
from stmlang.check.modules import Loader
from stmlang.fuzz.frontend import TEXT_CHECKS
from stmlang.scan.show import show_scan
from stmlang.source.diagnostic import Diagnostic, SpecError, render
from stmlang.source.span import SourceFile
from stmlang.syntax.lexer import Token, lex
from tests.cli.command import Command
from tests.helpers.work import calls
from tests.syntax import samples

WHOLE = """\
use lib (half)
def twice(a) = 2 * a
topology small = dag { a -> b, c; b -> d
    c -> d }

scan s(heads = 2, key = 3) on small {
    share[out] = softmax(linear(x, e[out],
                                bias = -4), over = out)
    source[out] = half(share)
    transition[out, in] = (1 / twice(2)) *
        share[out]
    stabilize P
}
"""
LIBRARY = "def half(a) = a / 2\n"
WORDS: list[Token] = [token for token in lex(SourceFile("whole.stm", WHOLE)).tokens if token.text.strip()]
CLOSING = {"(": ")", "[": "]", "{": "}"}


@pytest.fixture
def stmlang(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


def write(folder: Path, **texts: str) -> Path:
    """Files of these texts, `a__b` being `a/b.stm`; returns the first one's path."""
    paths = [folder / f"{name.replace('__', '/')}.stm" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return paths[0]


def refused(spec: str | Path) -> tuple[Diagnostic, ...]:
    with pytest.raises(SpecError) as caught:
        load(spec)
    return caught.value.diagnostics


# --- C31: the end of the text


def open_brackets(tokens: list[Token]) -> list[Token]:
    """The brackets that are open at the end of some tokens, the outermost first."""
    stack: list[Token] = []
    for token in tokens:
        if token.text in CLOSING:
            stack.append(token)
        elif token.text in CLOSING.values():
            stack.pop()
    return stack


@pytest.mark.parametrize("count", range(1, len(WORDS)))
def test_C31_a_text_cut_off_behind_any_word_says_where(count: int, tmp_path: Path) -> None:
    """The place of the last word, that of the unclosed bracket, and in words what is missing; a whole text is none of this."""
    cut = WHOLE[: WORDS[count - 1].end]
    path = write(tmp_path, cut=cut, lib=LIBRARY)
    opened = open_brackets(WORDS[:count])
    found = refused(path)
    if not any(one.code.startswith("STM0") for one in found):
        return  # it ends where an item does: what it lacks is a scan
    *_, last = (span for one in found if (span := one.span) is not None)
    assert last.end >= WORDS[max(0, count - 2)].end  # a `;` at the end is not seen
    line, column = SourceFile("cut.stm", cut).position(last.start)
    assert any(f"{path}:{line}:{column}" in render(one) for one in found)
    if opened:
        unclosed = [one for one in found if one.code == "STM0202"]
        assert f"`{CLOSING[opened[-1].text]}` expected" in unclosed[0].message
        assert [label.span.start for label in unclosed[0].labels] == [opened[-1].start]


def test_C31_the_exit_status_is_1(stmlang: Command, tmp_path: Path) -> None:
    """The case asks for 2; here 2 means a bad command line, and 1 a bad spec."""
    path = write(tmp_path, cut=WHOLE[: WHOLE.index("over = out")], lib=LIBRARY)
    result = stmlang("check", path)
    assert result.status == 1
    assert f"{path}:8:44" in result.err
    assert "error[STM0202]: `(` is never closed: `)` expected" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("cut", ["def half(a) = a /", "def half(a) = (a", "def half(", "def half(a) = sum(a, over = {"])
def test_C31_an_imported_file_that_is_cut_off_is_named(cut: str, tmp_path: Path) -> None:
    """The error lies in the file that ends too early, and says which import led there."""
    path = write(tmp_path, main=WHOLE, lib=cut)
    found = refused(path)
    shown = "\n".join(map(render, found))
    assert all(one.span is not None and one.span.file.name == str(tmp_path / "lib.stm") for one in found)
    assert f"{tmp_path / 'lib.stm'}:1:" in shown
    assert f"{path}:1:5" in shown  # and where it is imported


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r", "\n\n", "  ", " # note", "\n# note", ";"])
def test_C31_the_last_line_needs_no_end(end: str, tmp_path: Path) -> None:
    """Nor does it mind any."""
    path = write(tmp_path, whole=WHOLE.rstrip() + end, lib=LIBRARY.rstrip())
    assert show_scan(load(path)) == show_scan(load(write(tmp_path, again=WHOLE)))


# --- C33: long and deep


def spec(body: str, before: str = "") -> str:
    return f"{before}\nscan s on chain(time = 4) {{\nsource = linear(x)\ntransition = 0.5\n{body}\n}}\n"


def lines(count: int, form: Callable[[int], str]) -> str:
    return "\n".join(form(k) for k in range(count))


LONG = {
    "sum": spec("mark = linear(x)" + " + 1" * 10_000),
    "difference": spec("mark = linear(x)" + " - source" * 1_000),
    "product": spec("mark = linear(x)" + " * 1.5" * 1_000),
    "quotient": spec("mark = linear(x)" + " / 2" * 300),
    "signs of a sum": spec("mark = linear(x)" + " - -1" * 1_000),
    "gates in a chain": spec("g0 = linear(x)\n" + lines(1_000, lambda k: f"g{k + 1} = g{k}") + "\nmark = g1000"),
    "definitions side by side": spec("mark = d7(linear(x))", lines(1_000, lambda k: f"def d{k}(a) = {k} * a")),
    "just deep enough": spec("mark = " + "(" * 98 + "linear(x)" + ")" * 98),
}
DEEP = {
    "parentheses": ("STM0204", "nested more than 100 deep", spec("mark = " + "(" * 2_000 + "1" + ")" * 2_000)),
    "parentheses left open": ("STM0204", "nested more than 100 deep", spec("mark = " + "(" * 2_000)),
    "brackets": ("STM0204", "nested more than 100 deep", spec("mark = a" + "[" * 2_000)),
    "minus signs": ("STM0204", "nested more than 100 deep", spec("mark = " + "-" * 2_000 + "1")),
    "powers": ("STM0204", "nested more than 100 deep", spec("mark = " + "2 ^ " * 2_000 + "1")),
    "calls": ("STM0204", "nested more than 100 deep", spec("mark = " + "exp(" * 2_000 + "1" + ")" * 2_000)),
    "definitions in a chain": (
        "STM2026",
        "at most 200 deep",
        spec("mark = d5000(linear(x))", "def d0(a) = a\n" + lines(5_000, lambda k: f"def d{k + 1}(a) = exp(d{k}(a))")),
    ),
    "arguments of arguments": (
        "STM2026",
        "at most 200 deep",
        spec("mark = " + "f(" * 90 + "linear(x)" + ")" * 90, "def f(a) = exp(exp(exp(a)))"),
    ),
    "topologies in a chain": (
        "STM3014",
        "100 times",
        "topology t0 = chain(a)\n"
        + lines(5_000, lambda k: f"topology t{k + 1} = t{k}")
        + "\nscan s on t5000 { source = 1; transition = 1 }",
    ),
}
"""Code, what names the limit, text."""


@pytest.mark.parametrize("name", LONG)
def test_C33_long_texts_check_and_go_round(name: str) -> None:
    """Checked, shown, formatted and written from their trees, with work in proportion."""
    text = LONG[name]
    assert calls(lambda: show_scan(load(text))) < 6_000_000
    for check in ("formats", "reads_back", "keeps_its_type"):
        assert TEXT_CHECKS[check](text.encode()) is None


@pytest.mark.parametrize("name", DEEP)
def test_C33_too_deep_is_one_located_error_that_names_the_limit(name: str) -> None:
    """Parentheses, names of names, blocks: whatever is nested, no RecursionError and no second error from it."""
    code, limit, text = DEEP[name]
    found = refused(text)
    assert [one.code for one in found].count(code) == 1
    deep = next(one for one in found if one.code == code)
    assert deep.span is not None
    assert limit in render(deep)


# --- C35: imports


SCAN = "scan s on chain(time) {\n    source = f(1)\n    transition = 0.5\n}\n"
CIRCLES: dict[str, dict[str, str]] = {
    "two files": {"a": "use b (g)\ndef f(x1) = g(x1)\n" + SCAN, "b": "\nuse a (f)\ndef g(x1) = x1\n"},
    "a file and itself": {"a": "# first line\nuse a (f)\n" + SCAN},
    "three files": {"a": "use b (f)\n" + SCAN, "b": "\n\nuse c (f)\n", "c": "use a (f)\n"},
    "behind a good one": {"a": "use b (f)\n" + SCAN, "b": "use c (f)\n", "c": "use b (f)\n"},
    "in folders": {"a": "use sub.b (f)\n" + SCAN, "sub__b": "use c (f)\n", "sub__c": "use b (f)\n"},
}


@pytest.mark.parametrize("name", CIRCLES)
@pytest.mark.parametrize("way", ["absolute", "relative", "dotted", "link"])
def test_C35_a_circle_is_printed_with_the_line_of_each_import(
    name: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the first file is reached, each file is known by where it really lies."""
    path = write(tmp_path, **CIRCLES[name])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.stm").symlink_to(path)
    spec = {"absolute": path, "relative": Path("a.stm"), "dotted": Path("./x/../a.stm"), "link": Path("link.stm")}[way]
    (tmp_path / "x").mkdir()
    circles = [one for one in refused(spec) if one.code == "STM1022"]
    assert len(circles) == 1
    uses = [span for span in (circles[0].span, *(label.span for label in circles[0].labels)) if span is not None]
    in_circle = {"behind a good one": {"b", "c"}, "in folders": {"b", "c"}}.get(name, set(CIRCLES[name]))
    # The use that closes the circle, and one for each file on the way; the first file may be reached by another name.
    assert {Path(span.file.name).resolve().stem for span in uses} >= in_circle
    for span in uses:
        line, _ = span.file.position(span.start)
        assert span.file.line(line).startswith("use ")
        assert f"{span.file.name}:{line}:" in render(circles[0])


def test_C35_a_circle_through_a_link(tmp_path: Path) -> None:
    """A symbolic link to the first file is the first file."""
    path = write(tmp_path, a="use b (f)\n" + SCAN, b="use c (f)\n")
    (tmp_path / "c.stm").symlink_to(path)
    assert [one.code for one in refused(path)] == ["STM1022"]


def test_C35_a_diamond_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files import a third, one of them through a link: it is opened once, and what it defines is one thing."""
    parts = {"top": "use left (l)\nuse right (r)\ndef f(a) = l(a) + r(a)\n" + SCAN}
    parts |= {
        "left": "use base (b)\ndef l(a) = b(a)\n",
        "right": "use alias (b)\ndef r(a) = b(a)\n",
        "base": "def b(a) = 2 * a\n",
    }
    path = write(tmp_path, **parts)
    (tmp_path / "alias.stm").symlink_to(tmp_path / "base.stm")
    loaded: list[str] = []
    module = Loader.module

    def counting(self: Loader, source: SourceFile, *rest: object) -> object:
        loaded.append(Path(source.name).resolve().stem)
        return module(self, source, *rest)  # pyright: ignore

    monkeypatch.setattr(Loader, "module", counting)
    assert load(path).gate("source").clauses[0].value.value == 4.0  # pyright: ignore
    assert sorted(loaded) == ["base", "left", "right", "top"]


def test_C35_three_levels_each_relative_to_the_importing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the same name beside the first one, or in the current folder, is not the one that is meant."""
    path = write(
        tmp_path,
        a="use one.b (f)\n" + SCAN,
        one__b="use two.c (g)\ndef f(x1) = g(x1)\n",
        one__two__c="use d (h)\ndef g(x1) = h(x1)\n",
        one__two__d="def h(x1) = 3 * x1\n",
        two__c="def g(x1) = 5 * x1\n",
        d="def h(x1) = 7 * x1\n",
    )
    for folder in (tmp_path, tmp_path / "one", Path("/")):
        monkeypatch.chdir(folder)
        assert load(os.path.relpath(path)).gate("source").clauses[0].value.value == 3.0  # pyright: ignore


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_C35_a_missing_file_points_at_the_import(depth: int, tmp_path: Path) -> None:
    """Also where it is a file deep down that is missing; nothing is skipped in silence."""
    chain = {f"f{k}": f"# line\nuse f{k + 1} (f)\ndef g(a) = f(a)\n" for k in range(depth)}
    path = write(tmp_path, a="use f0 (f)\n" + SCAN, **chain)
    (missing, *others) = [one for one in refused(path) if one.code == "STM1020"]
    assert not others
    assert missing.span is not None
    assert missing.span.text == f"f{depth}"
    assert Path(missing.span.file.name).stem == ("a" if depth == 0 else f"f{depth - 1}")
    assert f"`f{depth}.stm`" in missing.message


@pytest.mark.parametrize("text", [*samples.ALL, WHOLE])
def test_C33_what_is_formatted_reads_back(text: str) -> None:
    """Long and deep texts go through every check that the fuzzer makes of a text."""
    for check in TEXT_CHECKS:
        if check != "in_time":
            assert TEXT_CHECKS[check](text.encode()) is None
