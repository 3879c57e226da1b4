"""Gates cut in two: what is evaluated for all nodes, and what is left to each."""

from __future__ import annotations

from stmlang.check import load
from stmlang.compiler import Call, prepare
from stmlang.cost.late_gates import LateGates, late_gates
from stmlang.scan.expression import LeafRef, Number, inside
from tests.helpers.cases import KEY_TURN, MAMBA, MAMBA_2D, NONE


def cut(body: str, topology: str = "chain(t = 64)", key: int = 16, value: int = 32) -> LateGates:
    text = f"scan test(heads = 2, key = {key}, value = {value}) on {topology} {{\n{body}}}\n"
    return late_gates(prepare(load(text), Call()).problem)


def test_an_outer_product_is_left_to_the_nodes() -> None:
    """Of Mamba's transition the steps are held, one for each value of a node, and the rates once."""
    late = cut(MAMBA)
    assert late.held == 64 * 32 + 16 * 32
    assert list(late.late) == ["late transition"]
    assert late.mark == late.transition[0]
    assert late.source == (late.direct,)
    assert late.adds_direct


def test_nothing_is_left_of_gates_that_are_not_expanded() -> None:
    """Nor of one number a head that is multiplied by few others: a node would do many times what is done once for all."""
    late = cut("    source = sigmoid(linear(x))\n    transition[key] = sigmoid(linear(x)) ^ 0.5\n    direct = 1\n")
    assert all(isinstance(expr, LeafRef | Number) for expr in late.distinct)
    assert late.held == 64 * (1 + 16)


def test_what_is_as_large_as_the_state_is_left_to_the_nodes() -> None:
    late = cut("    source = 1\n    transition[key, value] = tanh(given())\n")
    assert late.held == 64 * 16 * 32
    assert isinstance(late.early["early 0"], LeafRef)


def test_few_nodes_are_not_worth_a_cut() -> None:
    """Where an outer product is no larger than its factors."""
    late = cut(
        "    a[key] = sigmoid(linear(x))\n    source = 1\n    transition[key] = a * sigmoid(linear(x))\n", key=1, value=1
    )
    assert late.held <= 2 * 64


def test_zeros_of_ports_are_known() -> None:
    late = cut(MAMBA_2D, "grid(rows = 3, cols = 4)")
    assert [[gate is not None for gate in row] for row in late.transition] == [[True, True], [False, True]]
    assert len(late.distinct) == 2


def test_a_shared_direct_gate_is_added_once() -> None:
    body = KEY_TURN.format("cols", "rows").replace("direct = given()", "direct = 1")
    assert cut(body + NONE, "grid(rows = 3, cols = 4)").adds_direct
    late = cut(body + "    directions all\n" + NONE, "grid(rows = 3, cols = 4)")
    assert not late.adds_direct
    assert late.direct is None


def test_gates_are_written_out_once() -> None:
    """Though each is referred to twice, forty times over."""
    helpers = "".join(f"    g{n + 1}[key, value] = g{n} * g{n}\n" for n in range(40))
    late = cut(f"    g0[key, value] = tanh(given())\n{helpers}    source = 1\n    transition[key, value] = tanh(g40)\n")
    assert late.held == 64 * 16 * 32
    assert len(late.late) == 42
    assert max(sum(1 for _ in inside(value)) for value in late.late.values()) == 3
