"""The gating matrix of a compiled scan: what may be asked for, and how it is computed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.cost import units
from stmlang.program.execute import gating
from stmlang.program.program import Bundle, Program
from stmlang.runtime.compilation import Compilation, on_device
from stmlang.runtime.signature import call_error, check_arguments
from stmlang.scan.expression import InputRef, inside
from stmlang.scan.scan import Scan


def gating_matrix(
    compilation: Compilation,
    program: Program,
    tables: tuple[Bundle, ...] | None,
    vectors: Mapping[str, Array | None],
    gates: Mapping[str, Array],
) -> Float[Array, "*nodes *nodes head *write *read"]:
    """The matrix by a program that forms it, with its own tables where none are given, of query, key and value as far as they
    are needed.

    Raises SpecError: STM5206 where gates act on keys or values, STM5209 where it would not fit the memory limit, STM5202 where
    gates depend on a vector that is not given, STM52xx for arguments that do not fit.
    """
    signature = compilation.signature
    _require_room(compilation, program)
    _require_scalar_gates(program)
    scan = compilation.facts.scan
    for name in sorted(_inputs_used(scan)):
        if vectors[name] is None:
            raise call_error("STM5202", f"the gates of scan `{scan.name}` depend on `{name}`: give it too")
    inputs = {
        name: jnp.zeros(shape, jnp.float32) if (vector := vectors[name]) is None else vector
        for name, shape in signature.inputs.items()
    }
    check_arguments(signature, inputs, gates, None, padded=compilation.at_run_time)
    return cast(Array, _gating(program, on_device(program.tables) if tables is None else tables, inputs, dict(gates)))


def _require_room(compilation: Compilation, program: Program) -> None:
    """Raises SpecError (STM5209) where the gating matrix would not fit the memory limit."""
    limit, nodes, scan = compilation.plan.circumstances.memory_limit, program.dag.node_count, compilation.facts.scan
    size = nodes**2 * scan.heads * scan.writes * scan.reads * jnp.dtype(program.accumulator).itemsize
    if size > limit:
        raise call_error(
            "STM5209",
            f"the gating matrix of {nodes:,} nodes takes {units.size(size)}; the memory limit is {units.size(limit)}",
            help="look at a smaller size of the same spec, or compile with a larger `memory_limit`",
        )


def _require_scalar_gates(program: Program) -> None:
    """Raises SpecError (STM5206) where gates act on keys or values, or weights are divided by their sum."""
    acting, scan = sorted(program.problem.state_indices - {"track", "track'"}), program.scan
    if acting or scan.normalize != "none":
        indices = ", ".join(acting) or "normalization"
        raise call_error("STM5206", f"scan `{scan.name}` has no gating matrix of scalars ({indices})")


@partial(jax.jit, static_argnums=0)
def _gating(program: Program, tables: tuple[Bundle, ...], inputs: dict[str, Array], gates: dict[str, Array]) -> Array:
    return gating(program, tables, inputs, gates).astype(program.dtype)


def _inputs_used(scan: Scan) -> set[str]:
    """Which of q, k, v the gates other than their own redefinitions depend on."""
    used: set[str] = set()
    redefined = {gate.name for gate in scan.gates} & {"q", "k", "v"}
    for expr in inside(*(clause.value for gate in scan.gates if gate.name not in ("q", "k", "v") for clause in gate.clauses)):
        if isinstance(expr, InputRef):
            used.add(expr.name)
        used |= {getattr(expr, "gate", "")} & redefined
    return used
