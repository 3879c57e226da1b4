"""The programs of steps: what one row of a chain or grid, or one node of a DAG does, compiled once."""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from stmlang.lower.empty import hollow, solid
from stmlang.program.execute import run
from stmlang.program.node_step import NodeState, NodeTables, run_node
from stmlang.program.program import Bundle
from stmlang.program.states import LOG_SCALE, State
from stmlang.runtime.compilation import Compilation
from stmlang.runtime.signature import call_error, flag, is_array


def step_cache_size() -> int:
    """How many programs of steps JAX keeps, by scan, shapes and types."""
    return sum(cast(Any, function)._cache_size() for function in _STEPS)


# --- the steps as programs -------------------------------------------------------------------------------------------


def _row_step(
    compilation: Compilation,
    tables: tuple[Bundle, ...],
    state: State,
    inputs: dict[str, Array],
    gates: dict[str, Array],
    sides: State,
    advance: Array | None,
) -> tuple[Array, State]:
    program = compilation.program
    entering = tuple({**states, **others} for states, others in zip(state, sides, strict=True))
    h, leaving = run(program, solid(hollow(tables)), inputs, gates, entering, True, scaled=True)
    assert leaving is not None
    port = program.dag.ports[0]
    behind = tuple({name: states[name] for name in (port, LOG_SCALE) if name in states} for states in leaving)
    return _advanced(advance, h[0], state, behind)


def _node_step(
    compilation: Compilation,
    tables: NodeTables,
    state: NodeState,
    inputs: dict[str, Array],
    gates: dict[str, Array],
    advance: Array | None,
) -> tuple[Array, NodeState]:
    h, behind = run_node(compilation.program, solid(hollow(tables)), state, inputs, gates)
    return _advanced(advance, h, state, behind)


def _advanced(advance: Array | None, h: Array, before: Any, behind: Any) -> tuple[Array, Any]:
    """A step, if it is to be taken."""
    if advance is None:
        return h, behind

    def kept(new: Array, old: Array) -> Array:
        return jnp.where(advance, new, old.astype(new.dtype))

    return jnp.where(advance, h, jnp.zeros_like(h)), jax.tree.map(kept, behind, before)


_row = jax.jit(_row_step, static_argnums=0)
_row_donating = jax.jit(_row_step, static_argnums=0, donate_argnums=2)
_node = jax.jit(_node_step, static_argnums=0)
_node_donating = jax.jit(_node_step, static_argnums=0, donate_argnums=2)
_STEPS = (_row, _row_donating, _node, _node_donating)


def row_step(donate: Any, *arguments: Any) -> tuple[Array, State]:
    """One row: of a compilation, its tables, a state, inputs, gates, what enters beside, and whether to advance."""
    return cast(Any, _row_donating if flag("donate", donate) else _row)(*arguments)


def node_step(donate: Any, *arguments: Any) -> tuple[Array, NodeState]:
    """One node: of a compilation, the tables of the walk, a state, inputs, gates, and whether to advance."""
    return cast(Any, _node_donating if flag("donate", donate) else _node)(*arguments)


def require_advance(advance: Any) -> Any:
    """Whether a step is to be taken, a truth value that may be traced. Raises SpecError (STM5210) for anything else."""
    if advance is None:
        return None
    if isinstance(advance, (bool, np.bool_)) or (is_array(advance) and advance.dtype == jnp.bool_ and advance.ndim == 0):
        return jnp.asarray(advance)
    shape = f"an array of {advance.dtype} of the shape {tuple(advance.shape)}" if is_array(advance) else type(advance).__name__
    help = "for a batch map over states, arrays and truth values with `jax.vmap`"
    raise call_error("STM5210", f"`advance` must be one truth value, not {shape}", help=help)
