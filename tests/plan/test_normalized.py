"""A normalized scan treats all value columns alike, or is refused with the gate that does not."""

from __future__ import annotations

import pytest

import stmlang


@pytest.mark.parametrize("gate", ["source[value] = given()", "mark[value] = given()", "direct[value] = given()"])
def test_gates_on_the_value_axis_are_refused(gate: str) -> None:
    others = {"source": "source = 1", "transition": "transition = 0.5"}
    lines = [line for name, line in others.items() if not gate.startswith(name)]
    text = "scan s(key = 3, value = 2) on chain(t = 4) { " + "; ".join([gate, *lines, "normalize sum"]) + " }"
    with pytest.raises(stmlang.SpecError) as error:
        stmlang.compile(text)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "STM5011"
    assert diagnostic.span is not None
    assert stmlang.compile(text.replace("normalize sum", "normalize none")).plan.strategy in ("recurrent", "linear", "walk")
