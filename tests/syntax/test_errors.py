"""Every slip has its own words, in the right place, and hides no other."""

from __future__ import annotations

import pytest

from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import SourceFile
from stmlang.syntax.lexer import MAX_ERRORS
from stmlang.syntax.parser import parse


def errors(text: str) -> list[Diagnostic]:
    with pytest.raises(SpecError) as caught:
        parse(SourceFile("spec.stm", text))
    return list(caught.value.diagnostics)


def places(text: str) -> list[tuple[str, int, int]]:
    return [(found.code, *found.span.file.position(found.span.start)) for found in errors(text) if found.span]


def body(*lines: str) -> str:
    return "scan s on chain(t) {\n" + "".join(f"{line}\n" for line in lines) + "}\n"


@pytest.mark.parametrize(
    ("line", "code", "column", "words"),
    [
        ("source sigmoid(x)", "STM0205", 7, "`=` expected after `source`"),
        ("source[out] 3", "STM0205", 12, "`=` expected"),
        ("a * b = 3", "STM0205", 3, "name = value"),
        ("a =", "STM0208", 4, "a value is missing after `=`"),
        ("a = 1 +", "STM0208", 8, "a value is missing after `+`"),
        ("a = 1 * / 2", "STM0208", 9, "a value is missing after `*`"),
        ("a = +1", "STM0208", 5, "no leading `+`"),
        ("a = f(x,)", "STM0208", 8, "does not end with a comma"),
        ("a = key' * 2", "STM0208", 5, "is an index"),
        ('a = "text"', "STM0208", 5, "string"),
        ("a = f(x y)", "STM0207", 8, "`,` or `)` expected before `y`"),
        ("a[out in] = 1", "STM0207", 6, "`,` or `]` expected"),
        ("a = b c", "STM0209", 7, "`c` cannot follow `b`"),
        ("a = 1 b = 2", "STM0209", 7, "`b` cannot follow `1`"),
        ("a = b = c", "STM0201", 7, "one `=`"),
        ("a = b[out][in]", "STM0201", 11, "one bracket"),
        ("a = f(x; y)", "STM0201", 8, "found `;`"),
        ("a = b[2]", "STM0201", 7, "a name is expected"),
        ("a = 2 ** 3", "STM0102", 7, "`**`"),
        ("a := 2", "STM0102", 3, "`:=`"),
        ("a == 2", "STM0102", 3, "`==`"),
        ("a = 1 − 2", "STM0102", 7, "`−`"),
        ("a = 2 × 3", "STM0102", 7, "`×`"),
        ("a = 1 // one", "STM0102", 7, "`#`"),
        ("a = 1 /* one */ + 2", "STM0102", 7, "`#`"),
        ("a = 1..2", "STM0103", 5, "`1..2`"),
        ("a = 1e", "STM0103", 5, "`1e`"),
        ("a = 1.", "STM0103", 5, "`1.`"),
        ("a = 3x", "STM0103", 5, "`3x`"),
        ("a = 1_000", "STM0103", 5, "`1_000`"),
        ("a = 1e999", "STM0103", 5, "too large"),
        ("a = 1 $ 2", "STM0101", 7, "`$`"),
        ("a = k[key''']", "STM0101", 12, "stray character"),
        ("α = 1", "STM0105", 1, "`α` is not a name"),
        ("a = x²", "STM0105", 5, "`x²`"),
        ("a = (1 + 2", "STM0202", 11, "`(` is never closed"),
        ("a[out", "STM0202", 6, "`[` is never closed"),
        ("a = 1)", "STM0203", 6, "closes nothing"),
        ("a = (1 + 2]", "STM0203", 11, "cannot close `(`"),
        ("read = 3", "STM0206", 1, "`read` cannot be a name"),
        ("stabilize[out] = 3", "STM0206", 1, "`stabilize` cannot be a name"),
        ("scan = 3", "STM0206", 1, "`scan` cannot be a name"),
        ("a = 2 * topology", "STM0206", 9, "`topology` cannot be a name"),
        ("stabilize", "STM0201", 10, "needs a word"),
        ("directions *", "STM0201", 12, "cannot follow `directions`"),
        ("3 = a", "STM0201", 1, "number `3`"),
    ],
)
def test_slips_in_a_scan(line: str, code: str, column: int, words: str) -> None:
    # A fault before and one behind, to see that neither is lost.
    found = errors(body("first = $", line, "last = $"))
    middle = [part for part in found if part.span and part.span.file.position(part.span.start)[0] == 3]
    assert [part.code for part in found][:: len(found) - 1] == ["STM0101", "STM0101"]
    assert [(part.code, part.span.file.position(part.span.start)[1]) for part in middle if part.span] == [(code, column)]
    assert words in middle[0].message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topology t grid(a)", [("STM0205", 1, 11)]),
        ("topology = grid(a)", [("STM0206", 1, 1)]),
        ("topology t = ", [("STM0201", 1, 13)]),
        ("topology t = dag { a -> b -> c; 1 -> 2; x -> y }", [("STM0201", 1, 27), ("STM0201", 1, 33)]),
        ("topology t = dag(nodes <= 3, edges = 4)", [("STM0201", 1, 36)]),
        ("topology t = dag(nodes < 3)", [("STM0102", 1, 24)]),
        ('topology t = dag from "x', [("STM0104", 1, 23)]),
        ("topology t = dag from 'x'", [("STM0102", 1, 23)]),
        ("topology t = dag from x", [("STM0201", 1, 23)]),
        ("topology t = dag { a => b; b <- c; c → d }", [("STM0102", 1, 22), ("STM0102", 1, 30), ("STM0102", 1, 38)]),
        ("source = 1", [("STM0210", 1, 1)]),
        ("stabilize P", [("STM0210", 1, 1)]),
        ("Scan s on t { }", [("STM0210", 1, 1)]),
        ("use std.", [("STM0201", 1, 9)]),
        ("use std.gates (a b)", [("STM0207", 1, 17)]),
        ("def f(a) a", [("STM0205", 1, 9)]),
        ("def f = 3", [("STM0201", 1, 7)]),
        ("scan s { a = $ }", [("STM0201", 1, 8), ("STM0101", 1, 14)]),
        ("scan s(heads 3) on t { a = $ }", [("STM0207", 1, 13), ("STM0101", 1, 28)]),
        ("scan s on t", [("STM0201", 1, 12)]),
        ("scan s on t { a = 1", [("STM0202", 1, 20)]),
        ("scan s on t { a = 1 } }", [("STM0203", 1, 23)]),
        ("scan s(key = (1) on t { a = $ }", [("STM0207", 1, 17), ("STM0202", 1, 22), ("STM0101", 1, 29)]),
        ("scan s on t {\n a = 1\nscan r on t { b = $ }", [("STM0202", 2, 7), ("STM0101", 3, 19)]),
        ("scan s on t {\n a = f(1\nscan r on t { b = $ }", [("STM0202", 2, 9), ("STM0202", 2, 9), ("STM0101", 3, 19)]),
        ("def f(a) = (a\ndef g(b) = b $", [("STM0202", 1, 14), ("STM0101", 2, 14)]),
    ],
)
def test_slips_in_items(text: str, expected: list[tuple[str, int, int]]) -> None:
    found = places(text)
    assert [place for place in found if place in expected] == expected
    assert len(found) <= len(expected) + 1


def test_an_unclosed_bracket_shows_where_it_was_opened_and_ends_with_its_line() -> None:
    found = errors(body("a = sigmoid(linear(x)", "b = $"))
    assert [part.code for part in found] == ["STM0202", "STM0101"]
    assert found[0].labels[0].span.file.position(found[0].labels[0].span.start) == (2, 12)


def test_a_missing_comma_on_an_indented_line_is_no_unclosed_bracket() -> None:
    found = errors(body("a = linear(x", "    bias = 3)"))
    assert [part.code for part in found] == ["STM0207"]


def test_a_value_missing_at_the_end_of_a_line_does_not_swallow_the_next() -> None:
    assert places(body("a =", "b = $")) == [("STM0208", 2, 4), ("STM0101", 3, 5)]
    assert places(body("a = 2 *", "stabilize P", "b[out] = $")) == [("STM0208", 2, 8), ("STM0101", 4, 10)]


def test_the_end_of_the_text_is_just_behind_its_last_token() -> None:
    assert places("topology t =   \n\n\n# nothing\n")[0][1:] == (1, 13)


def test_several_errors_come_in_the_order_of_the_text() -> None:
    found = places(body("a = 1 +", "b = $", "c = f(1", "d = 2 3", "e = )"))
    assert [line for _, line, _ in found] == sorted(line for _, line, _ in found)
    assert {line for _, line, _ in found} >= {2, 3, 4, 5, 6}


def test_errors_are_limited() -> None:
    assert len(errors(body(*["a = $"] * 1000))) == MAX_ERRORS


def test_a_text_with_too_many_tokens_says_only_that() -> None:
    assert [found.code for found in errors(body("a = 1" + " + 1" * 60_000))] == ["STM0004"]


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "{" * 100_000, "-" * 100_000, "scan s on t { a = " + "2^" * 50_000, "}" * 50_000]
)
def test_endless_nesting_is_an_error_like_any_other(text: str) -> None:
    assert errors(text)


def test_long_words_are_cut_short_in_messages() -> None:
    assert all(len(found.message) < 200 for found in errors("é" * 10_000 + " = 1 2" + "x" * 10_000))


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("scan s on chain(t)\n a = 1\n b = 2\n c = 3\n}\n", "STM0201", (1, 19)),
        ("scan s on chain(t)\n a = 1\n b = 2\n", "STM0201", (1, 19)),
        ("scan s on chain(t):\n a = 1\n b = 2\n", "STM0101", (1, 19)),
        ("scan s on chain(t) a = 1\n b = 2\n}\n", "STM0201", (1, 19)),
        ("scan s\n a = 1\n b = 2\n}\n", "STM0201", (1, 7)),
        ("scan s on chain(t) { a = 1 }\n b = 2\n c = 3\n}\n", "STM0203", (1, 28)),
        ("scan s on chain(t) {\n a = 1\n b = 2\n", "STM0202", (3, 7)),
        ("scan s on dag { a -> b {\n a = 1\n}\n", "STM0202", (1, 23)),
        ("topology t = dag { a -> b\nscan s on t {\n a = 1\n}\n", "STM0202", (1, 26)),
        ('topology t = dag from "x.dot\nscan s on t {\n a = 1\n}\n', "STM0104", (1, 23)),
        ('scan s on dag from "x.dot {\n a = 1\n b = 2\n}\n', "STM0104", (1, 20)),
        ("scan s on dag from 'x.dot {\n a = 1\n b = 2\n}\n", "STM0102", (1, 20)),
        ("/* two\n lines */\nscan s on chain(t) {\n a = 1\n}\n", "STM0102", (1, 1)),
        ("scan s on chain(t) {\n def f(a) = a\n b = 2\n}\n", "STM0201", (2, 2)),
        ("a = 1\nb = 2\nc[out] = 3\n", "STM0210", (1, 1)),
    ],
)
def test_what_is_out_of_balance_is_one_finding(text: str, code: str, place: tuple[int, int]) -> None:
    assert [(one.code, one.span and one.span.file.position(one.span.start)) for one in errors(text)] == [(code, place)]


def test_many_brackets_and_heads_take_time_in_proportion() -> None:
    """What looks for missing braces looks at no token twice."""
    for text in ("scan s " + "a = " * 20_000, "scan s on t " + "* t " * 20_000, '"' + " " * 500_000, "/*\n" * 90_000):
        assert errors(text)
