from __future__ import annotations

import subprocess
import sys

import pytest

from stmlang.source.diagnostic import SpecError
from stmlang.source.span import SourceFile
from stmlang.syntax import tree
from stmlang.syntax.parser import parse
from stmlang.syntax.show import show_expression
from tests.helpers.work import calls
from tests.syntax import samples


def parsed(text: str) -> tree.File:
    return parse(SourceFile("spec.stm", text))


def statement(text: str) -> tree.Equation | tree.Setting:
    item = parsed("scan s on chain(t) { " + text + " }").items[0]
    assert isinstance(item, tree.ScanItem)
    return item.body[0]


def value(text: str) -> tree.Expression:
    found = statement(f"a = {text}")
    assert isinstance(found, tree.Equation)
    return found.value


@pytest.mark.parametrize("text", samples.ALL)
def test_good_texts_parse(text: str) -> None:
    assert isinstance(parsed(text), tree.File)


def test_sums_and_products_are_flat() -> None:
    found = value("a - b + c * d / e")
    assert isinstance(found, tree.Sum)
    assert [negative for negative, _ in found.terms] == [False, True, False]
    product = found.terms[2][1]
    assert isinstance(product, tree.Product)
    assert [inverted for inverted, _ in product.factors] == [False, False, True]


def test_power_binds_tighter_than_minus_and_to_the_right() -> None:
    found = value("-a ^ -b ^ c")
    assert isinstance(found, tree.Negate)
    power = found.operand
    assert isinstance(power, tree.Power)
    assert isinstance(power.exponent, tree.Negate)
    assert isinstance(power.exponent.operand, tree.Power)


@pytest.mark.parametrize(("text", "number"), [("1", 1.0), (".5", 0.5), ("2.5e-3", 0.0025), ("1E+2", 100.0), ("007", 7.0)])
def test_numbers(text: str, number: float) -> None:
    found = value(text)
    assert isinstance(found, tree.Number)
    assert found.value == number


def test_indices_may_be_primed_and_pinned() -> None:
    found = statement("t[key', out = cols, on = in] = k[key'] + sum(k, over = key')")
    assert isinstance(found, tree.Equation)
    assert [(use.index.text, use.port.text if use.port else None) for use in found.indices] == [
        ("key'", None),
        ("out", "cols"),
        ("on", "in"),
    ]
    assert show_expression(found.value) == "k[key'] + sum(k, over = key')"


def test_words_of_the_language_are_names_where_they_can_be() -> None:
    text = "scan on(as, from, read) on dag { scan -> use; topology, read -> dag } { on = stabilize + tree(dag) + from }"
    item = parsed(text).items[0]
    assert isinstance(item, tree.ScanItem)
    assert item.name.text == "on"
    assert [parameter.name.text for parameter in item.parameters] == ["as", "from", "read"]
    assert isinstance(item.topology, tree.TopologyInline)
    assert [name.text for name in item.topology.arrows[1].tails] == ["topology", "read"]


def test_a_name_before_the_body_is_not_an_inline_graph() -> None:
    item = parsed("scan s on image {\n}").items[0]
    assert isinstance(item, tree.ScanItem)
    assert isinstance(item.topology, tree.TopologyName)


def test_arrows() -> None:
    item = parsed("topology t = tree { a, b -> c; -> a; c ->\n d, e }").items[0]
    assert isinstance(item, tree.TopologyItem)
    assert isinstance(item.value, tree.TopologyInline)
    shape = [(len(arrow.tails), arrow.arrow, len(arrow.heads)) for arrow in item.value.arrows]
    assert shape == [(2, True, 1), (0, True, 1), (1, True, 0), (2, False, 0)]


def test_settings_keep_their_words() -> None:
    found = statement("directions +rows -cols, -rows +cols concat")
    assert isinstance(found, tree.Setting)
    assert [word.text for word in found.words] == ["+", "rows", "-", "cols", ",", "-", "rows", "+", "cols", "concat"]


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 +\n 2; b = 3",
        "a = 1\n + 2\n b = 3",
        "a = 1\n  - 2\n b = 3",
        "a = (1\n\n +\n 2)\n b = 3",
        "a =\n 1\n b = 3",
        "a\n = 1\n b = 3",
        "a = f(x,\ny = 2\n)\n b = 3",
        "a = f(\ny = 2,\nz = 3)\n b = 3",
        "a = c\n ^ 2\n * 3\n / 4\n b = 3;",
        "; a = 1;; \n\n ; b = 3",
    ],
)
def test_lines_go_on(text: str) -> None:
    item = parsed("scan s on t {\n" + text + "\n}").items[0]
    assert isinstance(item, tree.ScanItem)
    assert [part.target.text for part in item.body if isinstance(part, tree.Equation)] == ["a", "b"]


def test_spans_are_the_text_they_name() -> None:
    file = parsed(samples.IMAGE)
    scan = file.items[1]
    assert isinstance(scan, tree.ScanItem)
    assert scan.span.text.startswith("scan plstm_p")
    assert scan.span.text.endswith("}")
    assert scan.body[0].span.text == "directions all"
    equation = scan.body[3]
    assert isinstance(equation, tree.Equation)
    assert equation.indices[0].span.text == "out"
    assert isinstance(equation.value, tree.Product)
    assert equation.value.factors[1][1].span.text == "split(angle)[out]"


def test_parentheses_belong_to_the_place_of_what_they_hold() -> None:
    found = value("(a + b) * c")
    assert found.span.text == "(a + b) * c"
    assert isinstance(found, tree.Product)
    assert found.factors[0][1].span.text == "(a + b)"


def test_comments_are_kept_with_their_kind_of_place() -> None:
    comments = parsed(samples.GRAPHS).comments
    assert [comment.own_line for comment in comments] == [False, True, False, False, False]
    assert comments[1].text == "# a node of its own"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_line_ends_and_byte_order_mark(newline: str, end: str) -> None:
    text = samples.IMAGE.rstrip("\n").replace("\n", newline) + end
    assert len(parsed("\ufeff" + text).items) == 2


def test_long_inputs_are_quick() -> None:
    terms = "scan s on chain(t) { a = " + " + ".join(["linear(x, e[out])"] * 9_000) + " }"
    names = "topology t = dag { " + ", ".join(f"node{k}" for k in range(8_000)) + " -> b }"
    lines = "scan s on chain(t) {\n" + "\n".join(f"g{k} = g{k - 1} * 2" for k in range(1, 10_000)) + "\n}"
    one = "scan s on chain(t) { a = " + "x * 2 - " * 7_000 + "y }"
    for text in (terms, names, lines, one):
        assert calls(lambda text=text: parsed(text)) < 30 * len(text)


def test_nesting_is_allowed_up_to_the_limit() -> None:
    for opening, closing in [("(", ")"), ("-", ""), ("2 ^ ", ""), ("f(", ")")]:
        value(opening * 98 + "1" + closing * 98)
        with pytest.raises(SpecError) as caught:
            value(opening * 101 + "1" + closing * 101)
        assert [found.code for found in caught.value.diagnostics] == ["STM0204"]


def test_parsing_does_not_import_lark() -> None:
    code = "import sys; from stmlang.syntax.parser import parse; assert 'lark' not in sys.modules and 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
