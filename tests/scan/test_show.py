"""Scans and expressions as text: minimal brackets, nothing lost, the same every time."""

from __future__ import annotations

import pytest

from stmlang.check import load
from stmlang.scan.show import show_number, show_scan, show_topology


@pytest.mark.parametrize(
    "text",
    [
        "a + b - a", "-a + b", "-(a + b)", "a * b / a", "1 / a / b", "a / (b * a)", "a - (b - a)", "(a + b) * a", "a ^ b",
        "(a ^ b) ^ a", "a ^ (b ^ a)", "(-a) ^ b", "exp(a + b)", "min(a, b)", "2 * (-1 + a)", "a * (-1)",
    ],
)  # fmt: skip
def test_expressions_read_as_written(text: str) -> None:
    """What is shown is what was written, and it means itself: shown again, it is the same."""
    from stmlang.scan.show import show_expr

    def shown(value: str) -> str:
        spec = f"scan s on chain(time) {{\na = linear(x)\nb = linear(x)\nsource = {value}\ntransition = a * b\n}}"
        return show_expr(load(spec).gate("source").clauses[0].value)

    assert shown(shown(text)) == shown(text)
    assert shown(text) == text


def test_topologies_read_as_written() -> None:
    for text in (
        "chain(time)", "grid(rows = 3, cols)", "tree(arity = 2, depth = 3)", "dag(nodes <= 4, edges <= 5)",
        "dag { a -> b; -> a; c }", "tree(nodes <= 4)",
        "tree { a -> b } * chain(time)",
    ):  # fmt: skip
        spec = f"scan s on {text} {{\nsource = 1\ntransition = 1\n}}"
        assert show_topology(load(spec).topology) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (0.1, "0.1"), (-2.5, "-2.5"), (1e-12, "1e-12"), (1e300, "1e+300"), (-0.0, "0")]
)
def test_numbers(value: float, text: str) -> None:
    assert show_number(value) == text


def test_a_scan() -> None:
    spec = """
        scan s(heads = 2, key = 3, value = 4) on grid(rows = 5, cols) {
            directions both concat
            source[out] = sigmoid(linear(x, bias = spread(-1, 1), weight = 0.5)) * given(0, 1)
            transition[out, in] = softmax(param(0), over = out)
            transition[out = rows, in = cols] = 0
            k = l2norm(k)
            stabilize P
        }
    """
    assert show_scan(load(spec)) == (
        "scan s\n"
        "    topology    grid(rows = 5, cols)\n"
        "    sizes       heads = 2, key = 3, value = 4, track = 1\n"
        "    directions  +rows +cols, -rows -cols concat\n"
        "    stabilize   P\n"
        "    normalize   none\n"
        "leaves\n"
        "    @source[out] = linear(x, bias = spread(-1, 1), weight = 0.5), per direction\n"
        "    @source.2[out] = given(low = 0, high = 1), per direction\n"
        "    @transition[out, in] = param(0), per direction\n"
        "gates\n"
        "    source[out] = sigmoid(@source[out]) * @source.2[out]    # per direction\n"
        "    transition[out, in] = softmax(@transition[out, in], over = out)    # per direction\n"
        "    transition[out = rows, in = cols] = 0    # per direction\n"
        "    k[key] = l2norm(@k[key], over = key)\n"
        "    mark = 1\n"
        "    direct = 0\n"
    )
