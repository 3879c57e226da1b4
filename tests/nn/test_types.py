"""Data types at every door: by name, numpy's, JAX's; and numpy's float64 where JAX has none."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.nn import RMSNorm
from tests.nn.test_idioms import CHAIN

TYPES: dict[str, list[Any]] = {
    "float32": ["float32", np.float32, np.dtype("float32"), jnp.float32, jnp.ones(1, "float32").dtype],
    "float64": ["float64", np.float64, np.dtype("float64"), jnp.float64],
    "bfloat16": ["bfloat16", jnp.bfloat16, jnp.dtype("bfloat16"), jnp.ones(1, "bfloat16").dtype],
}


@pytest.mark.parametrize("name", TYPES)
def test_taken(name: str) -> None:
    for given in TYPES[name]:
        for op in (stmlang.compile(CHAIN, dtype=given, t=2), stmlang.compile(CHAIN, dtype=given)):
            assert op.dtype == name
        assert RMSNorm((3,), dtype=given).scale.dtype == jnp.dtype(name)


@pytest.mark.parametrize("given", [np.float16, jnp.int32, "f4", 32, None, np.ones(2, np.float32), float])
def test_refused(given: Any) -> None:
    with pytest.raises(stmlang.SpecError) as caught:
        stmlang.compile(CHAIN, dtype=given, t=2)
    assert caught.value.diagnostics[0].code == "STM5010"


def test_float64_of_numpy_is_taken_as_jax_takes_it() -> None:
    """Without a warning, at every door, in a process that computes in 32 bits."""
    script = f"""
import warnings
warnings.simplefilter("error")
import numpy as np, jax
import stmlang
from stmlang.nn import RMSNorm, ScanLayer

op = stmlang.compile({CHAIN!r}, t=4)
wide = lambda tree: jax.tree.map(lambda array: np.asarray(array, np.float64), tree)
arguments, zero = wide(op.example()), wide(op.zero_state())
x = np.ones((4, 3))
layer = ScanLayer(op, 3, key=jax.random.key(0))
op.export("{{path}}", batch=None, platforms=["cpu"])
for found in (
    op(*arguments), op(*arguments, zero, True), jax.vmap(op)(*jax.tree.map(lambda a: a[None], arguments)),
    layer(x), layer(x, initial=zero), layer.gates(x), RMSNorm((3,))(x), stmlang.load("{{path}}")(*arguments),
):
    assert all(leaf.dtype == "float32" for leaf in jax.tree.leaves(found))
try:
    RMSNorm((3,), dtype="float64")
except stmlang.SpecError as error:
    assert error.diagnostics[0].code == "STM5207"
else:
    raise AssertionError
"""
    import os
    import tempfile

    environment = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
    with tempfile.TemporaryDirectory() as folder:
        code = script.replace("{path}", f"{folder}/op.stmx")
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
