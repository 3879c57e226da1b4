"""The factors that operands carry multiply to the transition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.lower.operands import STATE_AXES
from stmlang.program.direction_inputs import direction_inputs
from stmlang.strategies.base import Needs
from stmlang.strategies.registry import registered, strategy_named

SPECS: dict[str, tuple[str, dict[str, int]]] = {
    "P-mode": ("std:plstm/image_p", {"rows": 3, "cols": 4}),
    "matrix in a factor": (
        "scan s(key = 3, value = 2) on grid(a, b) {\n directions all\n source = 1\n"
        " f[out] = linear(x)\n m[key, key'] = linear(x)\n g[in] = linear(x)\n"
        " transition[out, in, key, key'] = f[out] * g[in] * m[key, key']\n}",
        {"a": 2, "b": 3},
    ),
    "elementwise": (
        "scan s(key = 3, value = 2, heads = 2) on dag { a -> b, c; b -> d; c -> d; d -> e, f } {\n"
        " directions both\n stabilize none\n source = 1\n"
        " f[out, key] = linear(x, e[out])\n g[in, value] = linear(x, e[in])\n"
        " transition[out, in, key, value] = f[out, key] * g[in, value]\n}",
        {},
    ),
    "normalized chain": (
        "scan s(key = 3, value = 2, heads = 2) on chain(t = 5) {\n"
        " directions both\n normalize mlstm\n source = exp(linear(x))\n"
        " transition = sigmoid(linear(x))\n}",
        {},
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_factors(name: str) -> None:
    text, sizes = SPECS[name]
    op: Any = stmlang.compile(text, strategy="recurrent", dtype="float64", **sizes)
    program = op.compilation.program
    q, k, v, gates = op.example(0)
    plain = direction_inputs(program, program.tables, {"q": q, "k": k, "v": v}, gates)
    with registered(replace(strategy_named("recurrent"), needs=Needs(factors=True))):
        program = replace(program)  # what it has found out by itself is for the strategy as it was
        found = direction_inputs(program, program.tables, {"q": q, "k": k, "v": v}, gates)
    for lane, whole in zip(found, (lane.operands.transition for lane in plain), strict=True):
        assert lane.operands.factors is not None
        out, into = lane.operands.factors
        if program.dag.regular is None:
            line = lane.context.dag.line_edges
            product = out[:, :, line[:, 1]] * into[:, :, line[:, 0]]
        else:
            product = jnp.expand_dims(out, -1 - STATE_AXES) * jnp.expand_dims(into, -2 - STATE_AXES)
        np.testing.assert_allclose(np.broadcast_to(product, whole.shape), whole, rtol=1e-12)
