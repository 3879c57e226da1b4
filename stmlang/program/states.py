"""States on open edges: as callers hold them, by direction and port, and as strategies do, edge after edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import index_size
from stmlang.lower.operands import flip
from stmlang.program.direction_inputs import DirectionInputs
from stmlang.program.program import Program
from stmlang.scan.scan import Scan, has_scale

State = tuple[dict[str, Array], ...]
"""For each direction and port the states of open edges: see `stmlang.graph.shapes.state_shapes`. Of a scan that has a scale of
its own, also `LOG_SCALE` for each direction, where they are held at one."""

LOG_SCALE = "log scale"
"""`(head,)`: states are `exp` of it times the arrays beside it. Of `normalize mlstm(eps = ...)` it is `(2, head)`, the second
row the logarithm of the largest term so far. No port has a blank in its name."""


def scale_shape(scan: Scan) -> tuple[int, ...] | None:
    """The shape of `LOG_SCALE`; None where states have no scale."""
    if not has_scale(scan):
        return None
    return (2, scan.heads) if scan.epsilon else (scan.heads,)


def unit_scale(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """`LOG_SCALE` of states that are held at one, with no term so far."""
    zero = jnp.zeros(shape, dtype)
    return zero if len(shape) == 1 else zero.at[1].set(-jnp.inf)


def entering_scales(program: Program, initial: State | None) -> Float[Array, "direction *scale"] | None:
    """The logarithms of the scales that an initial state is held at, zero where it is held at one; None of a scan without."""
    shape = scale_shape(program.scan)
    if shape is None:
        return None
    unit = unit_scale(shape, program.accumulator)
    if initial is None:
        return jnp.stack([unit] * len(program.scan.directions))
    return jnp.stack([jnp.asarray(states.get(LOG_SCALE, unit), program.accumulator) for states in initial])


def at_scale_one(state: State) -> State:
    """The same state without a scale: numbers as they are, however large."""
    return tuple(_at_scale_one(states) for states in state)


def _at_scale_one(states: Mapping[str, Array]) -> dict[str, Array]:
    scale = states.get(LOG_SCALE)
    ports = {port: array for port, array in states.items() if port != LOG_SCALE}
    if scale is None:
        return ports
    factor = jnp.exp(scale if scale.ndim == 1 else scale[0])
    return {port: array * factor.reshape(-1, *(1,) * (array.ndim - 1)) for port, array in ports.items()}


def _edge_state(program: Program) -> tuple[int, int, int]:
    scan = program.scan
    return scan.track, scan.key, index_size(scan, "value") + (scan.normalize != "none")


def entering_state(
    program: Program, bundle: int, lane: DirectionInputs, initial: State
) -> Float[Array, "direction head edge track key value"]:
    """The state on the open edges in the order of the strategies."""
    directions = len(program.scan.directions) if program.dag.regular is not None else 1
    dag = lane.context.dag
    return jnp.stack([_in_order(program, dag, initial[bundle + k], bundle + k) for k in range(directions)])


def _in_order(program: Program, dag: DAG, state: Mapping[str, Array], direction: int) -> Array:
    """One direction's state, `(head, edge, track, key, value)`."""
    scan, port_states = program.scan, list[Array]()
    for number, port in enumerate(dag.ports):
        array = jnp.asarray(state[port], program.accumulator)
        lead = array.ndim - (4 if scan.track > 1 else 3)
        if dag.regular is not None:
            senses = scan.directions[direction].senses
            array = flip(array, senses[:number] + senses[number + 1 :], 0)
        array = jnp.moveaxis(array, lead, 0).reshape(scan.heads, -1, *_edge_state(program))
        port_states.append(array)
    together = jnp.concatenate(port_states, axis=1)
    return together if dag.regular is not None else jnp.take(together, _by_port(dag, dag.entering), axis=1)


def _by_port(dag: DAG, edges: np.ndarray) -> np.ndarray:
    """Where each of the edges stands once they are sorted by port."""
    return np.argsort(np.argsort(dag.port[edges], kind="stable")).astype(np.int32)


def leaving_state(program: Program, leaving: Sequence[Array]) -> State:
    """The states that leave each bundle, by direction and port."""
    states: list[dict[str, Array]] = []
    for bundle, (context, stacked) in enumerate(zip(program.contexts, leaving, strict=True)):
        for k in range(stacked.shape[0]):
            states.append(_taken_apart(program, context.dag, stacked[k], bundle + k))
    return tuple(states)


def _taken_apart(program: Program, dag: DAG, state: Array, direction: int) -> dict[str, Array]:
    """`(head, edge, track, key, value)` as one array for each port."""
    scan = program.scan
    state = jnp.moveaxis(state, 0, 1)
    if scan.track == 1:
        state = jnp.squeeze(state, 2)
    by_port: dict[str, Array] = {}
    start = 0
    for number, port in enumerate(dag.ports):
        if dag.regular is None:
            by_port[port] = jnp.take(state, np.flatnonzero(dag.port[dag.leaving] == number), axis=0)
            continue
        others = dag.regular[:number] + dag.regular[number + 1 :]
        count = int(np.prod(others, dtype=np.int64))
        lines = state[start : start + count].reshape(*others, *state.shape[1:])
        senses = scan.directions[direction].senses
        by_port[port] = flip(lines, senses[:number] + senses[number + 1 :], 0)
        start += count
    return by_port
