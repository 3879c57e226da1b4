"""Corners: attention on grids of two axes on which paths turn once, whose decays are one for each entry of the key (or value).

In a direction's own coordinates `(y, x)` a path from `(y0, x0)` goes along its line to the corner `(y0, x)`, turns, and goes on
to `(y, x)`. With c the port along x and r the other one, per entry i of the key

    E[x][y0, x0]  =  S_c(y0, x0) k(y0, x0) (prod of T_cc(y0, u) over x0 < u < x)                     x0 < x, else 0
    A[x][y0, x0]  =  T_rc(y0, x) E[x][y0, x0],  and  S_r k  at x0 = x                                 keys at the corner
    B[y0][y, x]   =  q(y, x) M_r(y, x) (prod of T_rr(w, x) over y0 < w < y)                           y > y0, else 0

    h[y, x]  =  sum over y0, x0 of (A[x][y0, x0] . B[y0][y, x]) v[y0, x0]  +  sum over x0 of (q M_c . E[x][y, x0]) v[y, x0]

so that the scores are a product of matrices over the key for each corner, and no larger than those of attention. `E` is carried
along x and `B` against y, by multiplication alone; one column of corners is worked on at a time. Decays of the value weigh
values at the corner and results behind it instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from stmlang.cost.lines import lines_of
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.contractions import contract
from stmlang.lower.mesh_axes import alike
from stmlang.lower.node_gates import AtPort, LocalGates, NodeGates, Values
from stmlang.lower.node_walk import walked
from stmlang.lower.operands import STATE_AXES, Operands
from stmlang.lower.strategy import Call, Lowering, LoweringContext, Result, Tables, no_tables

KEPT = 1
"""Where states are asked for, the grid is walked; then they are kept at every line."""


class PortGates(NamedTuple):
    """Gates by port in a direction's own coordinates, one number for each entry of the key or of the value."""

    source_first: Float[Array, "y x lane index"]
    source_last: Float[Array, "y x lane index"]
    first: Float[Array, "y x lane index"]
    last: Float[Array, "y x lane index"]
    turn: Float[Array, "y x lane index"]
    mark_first: Float[Array, "y x lane index"]
    mark_last: Float[Array, "y x lane index"]
    direct: Float[Array, "y x lane index"]


class Inputs(NamedTuple):
    """Query, key and value in a direction's own coordinates."""

    query: Float[Array, "y x lane key"]
    key: Float[Array, "y x lane key"]
    value: Float[Array, "y x lane value"]


def _run(call: Call) -> Result:
    if call.entering is not None or call.leaving:
        return _WALK.run(call)
    return _ATTENTION.run(call)


def _walk(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    assert context.axes is not None
    return walked(operands, initial, context.axes, KEPT)


def _attention(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    facts, axes, local = context.problem.facts, context.axes, operands.local
    assert facts is not None
    assert axes is not None
    assert local is not None
    first = lines_of(facts, axes).first
    directions, heads = operands.value.shape[:2]

    def laid(array: Array) -> Array:
        """`(direction, head, *axes, index)` as `(y, x, lane, index)`."""
        array = jnp.moveaxis(array, (0, 1), (3, 2))
        array = array if first == 1 else jnp.swapaxes(array, 0, 1)
        return array.reshape(*array.shape[:2], heads * directions, -1)

    inputs = Inputs(*(laid(array) for array in operands.inputs))
    scan = context.problem.scan
    by_value = any("value" in scan.gate(name).indices for name in ("source", "transition", "mark", "direct"))
    gates = _everywhere(local, operands, first)
    outputs = (_by_value if by_value else _by_key)(gates, inputs)
    outputs = outputs.reshape(*outputs.shape[:2], heads, directions, -1)
    outputs = outputs if first == 1 else jnp.swapaxes(outputs, 0, 1)
    return jnp.moveaxis(outputs, (3, 2), (0, 1)), initial


def _everywhere(local: LocalGates, operands: Operands, first: int) -> PortGates:
    """The gates of all nodes."""
    directions, heads = operands.value.shape[:2]
    sizes = operands.value.shape[2:4]
    lanes = heads * directions

    def at(values: tuple[Values, Array]) -> NodeGates:
        return local.at(values[0], local.shared)

    # The key is there for its node axes: gates may have none.
    gates: NodeGates = jax.vmap(jax.vmap(at))((local.nodes, jnp.moveaxis(operands.key, (0, 1), (-2, -3))))

    def laid(gate: AtPort) -> Array:
        if gate is None:
            gate = alike(jnp.zeros((*sizes, 1, 1, *(1,) * STATE_AXES), operands.value.dtype), operands)
        numbers = gate.reshape(*gate.shape[: gate.ndim - STATE_AXES], -1)
        numbers = jnp.broadcast_to(numbers, (*sizes, heads, directions, numbers.shape[-1]))
        numbers = numbers if first == 1 else jnp.swapaxes(numbers, 0, 1)
        return numbers.reshape(*numbers.shape[:2], lanes, numbers.shape[-1])

    last = 1 - first
    return PortGates(
        source_first=laid(gates.source[first]),
        source_last=laid(gates.source[last]),
        first=laid(gates.transition[first][first]),
        last=laid(gates.transition[last][last]),
        turn=laid(gates.transition[last][first]),
        mark_first=laid(gates.mark[first]),
        mark_last=laid(gates.mark[last]),
        direct=laid(gates.direct),
    )


def _by_key(gates: PortGates, inputs: Inputs) -> Array:
    query, key, value = inputs
    values = jnp.moveaxis(value, 2, 0)
    ones = jnp.ones((key.shape[-1], 1), key.dtype)

    def column(corner: Corner, fixed: tuple[Array, Array]) -> Array:
        values, ones = fixed
        behind = _against(corner.gates.last, corner.gates.mark_last * corner.inputs.query)
        scores = contract("ylti,ylsi->ylts", behind, corner.turned)
        own = (corner.gates.mark_first * corner.inputs.query)[:, :, None] * corner.arriving
        level = contract("ylsi,io->yls", own, ones)
        return contract("ylts,lysv->tlv", scores, values) + contract("yls,lysv->ylv", level, values)

    outputs = _columns(gates, inputs, key, column, (values, ones))
    return outputs + jnp.sum(query * gates.direct * key, -1, keepdims=True) * value


def _by_value(gates: PortGates, inputs: Inputs) -> Array:
    query, key, value = inputs

    def column(corner: Corner, keys: Array) -> Array:
        mark = jnp.broadcast_to(corner.gates.mark_last, corner.inputs.value.shape)
        behind = _against(corner.gates.last, mark)
        scores = contract("tlk,lysk->ylts", corner.inputs.query, keys)
        met = contract("ylts,ylsi->ylti", scores, corner.turned)
        level = contract("ylk,lysk->yls", corner.inputs.query, keys)
        own = corner.gates.mark_first * contract("yls,ylsi->yli", level, corner.arriving)
        return jnp.swapaxes(jnp.sum(met * behind, 0), 0, 1) + own

    outputs = _columns(gates, inputs, value, column, jnp.moveaxis(key, 2, 0))
    return outputs + jnp.sum(query * key, -1, keepdims=True) * gates.direct * value


class Corner(NamedTuple):
    """A column of corners: its nodes' gates and inputs `(y, lane, index)`, and what its lines carried to it, E and A."""

    gates: PortGates
    inputs: Inputs
    arriving: Float[Array, "y lane x0 index"]
    turned: Float[Array, "y lane x0 index"]


def _columns(
    gates: PortGates,
    inputs: Inputs,
    carried: Float[Array, "y x lane index"],
    column: Callable[[Corner, Any], Array],
    fixed: Any,
) -> Float[Array, "y x lane value"]:
    """What `column` makes of every column of corners, one after the other, so that all of a column is in cache. Training keeps
    what arrives at each and makes the rest again."""
    y, x, lane, index = carried.shape
    places = jnp.arange(x)

    def step(arriving: Array, at: tuple[Array, Array, PortGates, Inputs]) -> tuple[Array, Array]:
        place, carried, gates, inputs = at
        here = (places == place)[:, None]
        turned = gates.turn[:, :, None] * arriving + jnp.where(here, (gates.source_last * carried)[:, :, None], 0)
        read = column(Corner(gates, inputs, arriving, turned), fixed)
        return gates.first[:, :, None] * arriving + jnp.where(here, (gates.source_first * carried)[:, :, None], 0), read

    def by_column(array: Array) -> Array:
        return jnp.swapaxes(array, 0, 1)

    nothing = alike(jnp.zeros((y, lane, x, index), carried.dtype), carried, gates)
    columns = jax.tree.map(by_column, (carried, gates, inputs))
    again = cast("Callable[..., tuple[Array, Array]]", jax.checkpoint(step, prevent_cse=False))
    return by_column(lax.scan(again, nothing, (places, *columns))[1])


def _against(decay: Float[Array, "y lane #index"], read: Float[Array, "y lane index"]) -> Float[Array, "y0 lane y index"]:
    """B of a column: of what is read at each of its nodes, `q M_r`, or `M_r` alone."""
    places = jnp.arange(read.shape[0])

    def step(behind: Array, at: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        place, decay, read = at
        here = (places == place)[:, None]
        return decay[:, None] * behind + jnp.where(here, read[:, None], 0), behind

    nothing = alike(jnp.zeros((read.shape[1], read.shape[0], read.shape[2]), read.dtype), read, decay)
    return lax.scan(step, nothing, (places, decay, read), reverse=True)[1]


_WALK = direction_by_direction(no_tables, _walk)
_ATTENTION = direction_by_direction(no_tables, _attention)
LOWERING = Lowering(no_tables, _run)
