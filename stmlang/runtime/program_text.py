"""The text of the program that a call of a compiled scan is."""

from __future__ import annotations

from typing import Literal

import jax
from jaxtyping import Array

from stmlang.program.execute import run
from stmlang.program.program import Bundle, Program
from stmlang.runtime.signature import Signature


def lower_text(program: Program, tables: tuple[Bundle, ...], signature: Signature, kind: Literal["jaxpr", "stablehlo"]) -> str:
    """The jaxpr or the StableHLO text of one unbatched call, tables included as arguments."""
    dtype = program.dtype
    inputs = {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape in signature.inputs.items()}
    gates = {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape in signature.gates.items()}

    def call(tables: tuple[Bundle, ...], inputs: dict[str, Array], gates: dict[str, Array]) -> Array:
        return run(program, tables, inputs, gates, None, False)[0]

    if kind == "jaxpr":
        return str(jax.make_jaxpr(call)(tables, inputs, gates))
    return jax.jit(call).lower(tables, inputs, gates).as_text()
