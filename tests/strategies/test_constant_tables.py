"""Tables that are known while a program is made, as those of a program that is chosen for a call, give what tables that are
arguments give: for every strategy that a topology admits."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import stmlang
from stmlang.program.execute import run

BODY = "source = sigmoid(linear(x)); transition = 0.3 * sigmoid(linear(x)); mark = linear(x); direct = 0.5"
SPECS = {
    "chain": (f"scan s(heads = 1, key = 2, value = 2) on chain(t) {{ {BODY} }}", {"t": 5}),
    "grid": ("std:plstm/image_p", {"rows": 3, "cols": 4, "heads": 1, "key": 2, "value": 2}),
    "turns": ("std:plstm/image_d", {"rows": 3, "cols": 5, "heads": 1, "key": 2, "value": 2}),
    "dag": (f"scan s(heads = 1, key = 2, value = 2) on dag {{ a -> b, c; b, c -> d; d -> e }} {{ {BODY} }}", {}),
    "tree": (f"scan s(heads = 1, key = 2, value = 2) on tree(arity = 2, depth = 2) {{ {BODY} }}", {}),
}


@pytest.mark.parametrize("name", SPECS)
def test_tables_may_be_constants(name: str) -> None:
    spec, sizes = SPECS[name]
    op = stmlang.compile(spec, target="cpu", **sizes)
    q, k, v, gates = op.example()
    inputs = {"q": q, "k": k, "v": v}
    for choice in dict.fromkeys(entry.estimate.candidate.choice for entry in op.plan.ranked):
        program = op.compilation.program.by(choice)

        def called(tables, inputs, program=program):
            return run(program, tables, inputs, gates, None, False)[0]

        expected = jax.jit(called)(jax.device_put(program.tables), inputs)
        actual = jax.jit(lambda inputs, program=program: called(program.tables, inputs, program))(inputs)
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-6, err_msg=choice.label)
