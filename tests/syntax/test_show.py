from __future__ import annotations

import pytest

from stmlang.source.span import SourceFile
from stmlang.syntax import tree
from stmlang.syntax.parser import parse
from stmlang.syntax.show import show_expression, show_number, show_tree
from stmlang.syntax.walk import tree_equal
from tests.syntax import samples


def equation(text: str) -> tuple[tree.File, tree.Expression]:
    file = parse(SourceFile("spec.stm", "def f() = " + text))
    item = file.items[0]
    assert isinstance(item, tree.DefinitionItem)
    return file, item.value


@pytest.mark.parametrize(("number", "text"), [(4.0, "4"), (0.0625, "0.0625"), (1e-7, "1e-07"), (1e22, "1e+22"), (0.1, "0.1")])
def test_numbers_read_back(number: float, text: str) -> None:
    assert show_number(number) == text
    assert float(text) == number


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-4", "-4"),
        ("1/16", "1 / 16"),
        ("((a)) + (b*c)", "a + b * c"),
        ("(a + b) * c - (d - e)", "(a + b) * c - (d - e)"),
        ("(a * b) / (c / d)", "(a * b) / (c / d)"),
        ("(-a)^2 + -a^2 + a^-b + (a^b)^c + a^b^c", "(-a) ^ 2 + -a ^ 2 + a ^ -b + (a ^ b) ^ c + a ^ b ^ c"),
        ("-(a + b) * --c", "-(a + b) * --c"),
        ("(a + b)[key] + f(x, over = key')[out, in = rows]", "(a + b)[key] + f(x, over = key')[out, in = rows]"),
        ("(a[key])[out] + (f(x))[out]", "(a[key])[out] + f(x)[out]"),
    ],
)
def test_expressions_read_back(text: str, shown: str) -> None:
    file, value = equation(text)
    assert show_expression(value) == shown
    assert tree_equal(file, equation(shown)[0])


def test_the_outline_of_a_tree() -> None:
    text = """\
use a.b (c)
topology t = dag { a, b -> c; -> d; e } * g(r = 2)
scan s(k) on dag(nodes <= 3) { a[out] = -2 / b; read after }
"""
    assert show_tree(parse(SourceFile("spec.stm", text))) == (
        "use a.b (c)\n"
        "topology t\n"
        "  product\n"
        "    inline dag\n"
        "      arrow a, b -> c\n"
        "      arrow -> d\n"
        "      nodes e\n"
        "    topology g\n"
        "      parameter r\n"
        "        = number 2\n"
        "scan s\n"
        "  parameter k\n"
        "  on run-time dag\n"
        "    limit nodes\n"
        "      <= number 3\n"
        "  equation a[out]\n"
        "    product\n"
        "      * negate\n"
        "        number 2\n"
        "      / reference b\n"
        "  setting read after\n"
    )


@pytest.mark.parametrize("text", samples.ALL)
def test_the_outline_does_not_depend_on_the_layout(text: str) -> None:
    assert show_tree(parse(SourceFile("a", text))) == show_tree(
        parse(SourceFile("b", text.replace("\n", "\n\n").replace("\t", "  ")))
    )


def test_trees_that_differ() -> None:
    one, two = (parse(SourceFile("spec.stm", f"def f() = {value}")) for value in ("a + b", "a - b"))
    assert not tree_equal(one, two)
    assert not tree_equal(one, parse(SourceFile("spec.stm", "def f() = a + b + c")))
    assert tree_equal(one, parse(SourceFile("other.stm", "def  f(  ) =\n\n a+(b)")))
