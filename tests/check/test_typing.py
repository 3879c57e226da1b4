"""What expressions become: leaves and their names, references and what their brackets do, definitions, constants."""

from __future__ import annotations

import math

import pytest

from stmlang.scan.expression import Bind, Eye, GateRef, InputRef, LeafRef, Number, Product
from stmlang.scan.scan import Feature, Initial, Mode
from stmlang.scan.show import show_expr
from stmlang.scan.topology import Axis, CompleteTree, Regular, Runtime, Static
from stmlang.scan.topology import Product as TopologyProduct
from tests.check.helpers import codes, scan_of

GRID = "grid(rows, cols)"


def value_of(body: str, gate: str = "mark", **more: object) -> str:
    return show_expr(scan_of(body, **more).gate(gate).clauses[0].value)


# --- leaves


def test_leaves_are_named_after_their_gate_and_have_its_indices() -> None:
    scan = scan_of(
        "source[out] = linear(x) * given(0, 1)\ntransition[out, in] = param(0.5)\n"
        "transition[out = rows, in = cols] = linear(x)",
        on=GRID,
    )
    names = {leaf.name: leaf.indices for leaf in scan.leaves}
    assert names == {"source": ("out",), "source.2": ("out",), "transition": ("out", "in"), "transition[rows,cols]": ()}


def test_leaves_of_partly_pinned_equations() -> None:
    scan = scan_of("transition[out = rows, in] = linear(x)\ntransition[out = cols, in] = linear(x)", on=GRID)
    assert [(leaf.name, leaf.indices) for leaf in scan.leaves] == [
        ("transition[rows,in]", ("in",)),
        ("transition[cols,in]", ("in",)),
    ]


def test_leaf_parameters() -> None:
    scan = scan_of(
        "source[out] = linear(x, e[out], bias = spread(-2, g), weight = 0)\nmark = given(high = 1)\n"
        "direct = param(spread(3, 3))",
        on="dag { a -> b }",
        head="(g = 2)",
    )
    source, mark, direct = scan.leaf("source"), scan.leaf("mark"), scan.leaf("direct")
    assert source.features == (Feature("x"), Feature("e", "out"))
    assert (source.bias, source.weight) == (Initial(-2, 2), 0)
    assert (mark.low, mark.high) == (-math.inf, 1)
    assert direct.bias == Initial(3, 3)
    assert scan_of("mark = linear(x)").leaf("mark").weight == pytest.approx(math.sqrt(0.4))


def test_unused_gates_are_left_out_with_their_leaves() -> None:
    scan = scan_of("unused = linear(x)\nsource = linear(x)")
    assert [leaf.name for leaf in scan.leaves] == ["source"]
    assert "unused" not in [gate.name for gate in scan.gates]


# --- directions


def test_what_is_per_direction() -> None:
    scan = scan_of("directions both\na = linear(x)\nsource = a\nmark = linear(x)\ndirect = a + linear(x)\nk = k * linear(x)")
    assert {leaf.name: leaf.directional for leaf in scan.leaves} == {"a": True, "mark": True, "direct": False, "k": False}
    assert {gate.name: gate.directional for gate in scan.gates} == {
        "a": True, "source": True, "mark": True, "direct": True, "k": False, "transition": False,
    }  # fmt: skip


def test_inputs_are_shared_even_where_states_rest_on_them() -> None:
    scan = scan_of("directions both\nk = k * linear(x)\nsource = sum(k, over = key)")
    assert not any(leaf.directional for leaf in scan.leaves)


def test_one_direction_has_nothing_per_direction() -> None:
    scan = scan_of("directions backward\nsource = linear(x)")
    assert not any(leaf.directional for leaf in scan.leaves)
    assert scan.directions[0].senses == (-1,)


def test_order_of_directions() -> None:
    assert [one.senses for one in scan_of("directions all", on=GRID).directions] == [(1, 1), (-1, 1), (1, -1), (-1, -1)]
    scan = scan_of("directions -cols +rows, +cols -rows concat", on=GRID)
    assert [one.senses for one in scan.directions] == [(1, -1), (-1, 1)]
    assert scan.combine == "concat"
    assert [one.senses for one in scan_of("directions both", on="tree(nodes <= 4) * chain(time)").directions] == [
        (1, 1),
        (-1, -1),
    ]


# --- references


def test_brackets_rename_and_pin() -> None:
    scan = scan_of(
        "a[out, key] = linear(x)\ntransition[out, in, key] = a[in, key] * a[out = rows]\n"
        "w[key'] = k[key'] * a[out = cols, key']\nmark = sum(w, over = key')",
        on=GRID,
    )
    value = scan.gate("transition").clauses[0].value
    assert isinstance(value, Product)
    assert [factor.bind for _, factor in value.factors] == [
        (Bind("out", "in"), Bind("key", "key")),
        (Bind("out", None, "rows"), Bind("key", "key")),
    ]
    assert show_expr(scan.gate("w").clauses[0].value) == "@k[key'] * a[out = cols, key']"


def test_inputs_inside_and_outside_of_their_equation() -> None:
    scan = scan_of("k = 2 * k\nmark = sum(k * q, over = key)")
    assert isinstance(scan.gate("k").clauses[0].value.factors[1][1], InputRef)
    inner = scan.gate("mark").clauses[0].value.argument
    assert [type(factor) for _, factor in inner.factors] == [GateRef, InputRef]


def test_eye() -> None:
    scan = scan_of("transition[key, key'] = eye[key', key]")
    assert scan.gate("transition").clauses[0].value == Eye("key'", "key", scan.span)


def test_dependency_order_is_that_of_writing_where_it_can_be() -> None:
    scan = scan_of("source = b + a\na = 1\nb = a\ntransition = 0.5")
    assert [gate.name for gate in scan.gates] == ["a", "b", "source", "transition", "mark", "direct"]


# --- read after


def test_read_after_on_a_chain() -> None:
    scan = scan_of("transition[out, in, key] = linear(x)\nsource[out] = 1\nread after")
    assert scan.gate("mark").indices == ("in", "key")
    assert show_expr(scan.gate("mark").clauses[0].value) == "transition[out = time, in, key]"
    assert show_expr(scan.gate("direct").clauses[0].value) == "source[out = time]"


def test_read_after_with_a_matrix() -> None:
    scan = scan_of("transition[key, key'] = eye[key, key']\nread after")
    assert scan.gate("mark").indices == ("key", "key'")


# --- definitions


def test_a_leaf_in_an_argument_is_one_leaf() -> None:
    scan = scan_of("mark = square(linear(x))", before="def square(a) = a * a")
    assert [leaf.name for leaf in scan.leaves] == ["mark"]
    assert show_expr(scan.gate("mark").clauses[0].value) == "@mark * @mark"


def test_a_leaf_in_a_body_is_one_for_each_call() -> None:
    assert value_of("mark = f() + f()", before="def f() = linear(x)") == "@mark + @mark.2"


def test_definitions_see_their_own_names() -> None:
    before = "def f(a) = a + g(2 * a)\ndef g(a) = a ^ 2"
    assert value_of("a = linear(x)\nmark = f(a)", before=before) == "a + (2 * a) ^ 2"


def test_definitions_pass_on_features_indices_and_initial_values() -> None:
    before = "def outer(f, i, b) = inner(f, i, b)\ndef inner(f, i, b) = softmax(linear(f, bias = b), over = i)"
    scan = scan_of("transition[out, in] = outer(e[in], out, spread(0, 1))", on="dag { a -> b }", before=before)
    assert scan.leaf("transition").features == (Feature("e", "in"),)
    assert scan.leaf("transition").bias == Initial(0, 1)


def test_brackets_on_a_parameter_that_is_a_gate() -> None:
    assert value_of("mark[key, key'] = outer(k)", before="def outer(a) = a[key] * a[key']") == "@k[key] * @k[key']"


# --- constants


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2 ^ 3 ^ 2", 512), ("-2 ^ 2", -4), ("2 ^ -1", 0.5), ("1 / 2 / 2", 0.25), ("1 - 2 - 3", -4), ("pi", math.pi),
        ("sigmoid(0)", 0.5), ("softplus(0)", math.log(2)), ("cap(-3)", -1), ("clip(5, -1, 2)", 2), ("min(1, 2) + max(1, 2)", 3),
        ("relu(-1) + abs(-2)", 2), ("key / value * heads", 0.5), ("sqrt(key)", 2),
        ("exp(0) + log(1) + sin(0) + cos(0) + tanh(0)", 2),
        ("sigmoid(-1000) + tanh(1000)", 1), ("--3", 3), ("time", 7),
    ],
)  # fmt: skip
def test_constants(text: str, number: float) -> None:
    scan = scan_of(f"mark = {text}", head="(heads = 1, key = 4, value = 8)", on="chain(time = 7)")
    value = scan.gate("mark").clauses[0].value
    assert isinstance(value, Number)
    assert isinstance(value.value, float)
    assert value.value == pytest.approx(number, abs=1e-15)


def test_folding_stops_at_what_is_learned() -> None:
    assert value_of("mark = 2 * 3 + (2 + 3) * linear(x)") == "6 + 5 * @mark"


# --- topologies and sizes


def test_sizes_come_from_outside_then_the_head_then_the_topology() -> None:
    topology = "topology t = grid(a = 1, b = 2, c = 3, d)"
    scan = scan_of("", before=topology, on="t", head="(b = 20, c = 30)", c=300)
    assert scan.topology == Regular((Axis("a", 1), Axis("b", 20), Axis("c", 300), Axis("d", None)), scan.span)


def test_products() -> None:
    scan = scan_of("", on="chain(a = 2) * dag { p -> r } * grid(b, c)")
    assert isinstance(scan.topology, TopologyProduct)
    first, second = scan.topology.factors
    assert first == Regular((Axis("a", 2), Axis("b", None), Axis("c", None)), scan.span)
    assert second == Static(("p", "r"), ((0, 1),), False, scan.span)


def test_runtime_and_complete() -> None:
    assert scan_of("", on="tree(nodes <= 8)").topology == Runtime(8, 8, True, scan_of("").span)
    assert scan_of("", on="dag(edges <= 2 * 8, nodes <= 8)", nodes=5).topology == Runtime(5, 16, False, scan_of("").span)
    assert scan_of("", on="tree(arity = 2, depth = 3)", depth=4).topology == CompleteTree(2, 4, scan_of("").span)


def test_open_edges() -> None:
    graph = scan_of("", on="dag { -> a; -> a; a -> b; b ->; c }").topology
    assert isinstance(graph, Static)
    assert graph.nodes == ("a", "b", "c")
    assert graph.edges == ((-1, 0), (-1, 0), (0, 1), (1, -1))


def test_modes() -> None:
    scan = scan_of("stabilize D\nnormalize sum")
    assert (scan.stabilize, scan.normalize, scan.combine) == (Mode.D, "sum", "sum")
    assert scan_of("").stabilize is Mode.AUTO


# --- nothing is said twice


@pytest.mark.parametrize(
    "body",
    [
        "a = nowhere\nb = a * 2\nmark = b + a[key]",
        "a[nothing] = 1\nmark = a + a[out]",
        "a = nosuch(1)\nmark = a",
        "mark = clip(1)\ndirect = mark",
        "a[out = nowhere] = 1\nmark = a",
    ],
)
def test_no_cascades(body: str) -> None:
    assert len([code for code in codes(body) if code != "STM2011"]) == 1


def test_errors_are_in_the_order_of_the_text() -> None:
    text = "stabilize Q\nmark = nowhere\ndirect = nosuch(1)\ndirections left"
    assert codes(text) == ["STM2033", "STM1001", "STM1002", "STM2033"]


def test_leaf_indices_carry_over_to_references() -> None:
    scan = scan_of("source[key] = linear(x)")
    assert scan.gate("source").clauses[0].value == LeafRef("source", ("key",), scan.span)
