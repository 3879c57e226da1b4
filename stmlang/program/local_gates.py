"""Gates for strategies that evaluate them node by node: the early values laid out, and the rest as a function of them."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Bool

from stmlang.cost.late_gates import LateGates
from stmlang.lower.gates import straight
from stmlang.lower.node_gates import AtPort, LocalGates, NodeGates, Values
from stmlang.lower.operands import STATE_AXES, flip, matrix_axes
from stmlang.lower.values import Environment, Frame, Value, pick
from stmlang.program.expressions import Context, expression
from stmlang.scan.expression import Expr, Index
from stmlang.scan.scan import Direction

OWN, CLOSED = "own", "closed"
"""The names of the mask among the values of a node, one where it is a direction's own, else zero, and of borders between
segments, one for each port along which nothing comes in. No others have them."""


def local_gates(
    context: Context,
    environment: Environment,
    late: LateGates,
    sizes: tuple[int, ...],
    own: Bool[Array, "direction *nodes"] | None,
    closed: Bool[Array, "direction *nodes in"] | None,
) -> LocalGates:
    """The gates of a regular topology with axes of these sizes. Nodes that are not a direction's `own` write nothing and pass
    nothing on, or, on a chain, pass the state as it is; what comes in where it is `closed` is neither
    read nor passed on."""
    frame, rank = context.frame, len(sizes)
    nodes: dict[str, Array] = {}
    shared: dict[str, Array] = {}
    for name, expr in late.early.items():
        array = expression(context, environment, expr).array
        if array.shape[:rank] == (1,) * rank:
            shared[name] = array.reshape(array.shape[rank:])
        else:
            nodes[name] = _oriented(array, sizes, frame.scan.directions)
    if own is not None:
        nodes[OWN] = jnp.moveaxis(own, 0, -1)[..., None, :].astype(frame.dtype)
    if closed is not None:
        nodes[CLOSED] = jnp.moveaxis(closed, 0, -2)[..., None, :, :].astype(frame.dtype)
    return LocalGates(nodes, shared, partial(_at_node, frame, late), late.adds_direct)


def _oriented(array: Array, sizes: tuple[int, ...], directions: tuple[Direction, ...]) -> Array:
    """A value in every direction's own coordinates, directions on an axis behind the heads."""
    axis = len(sizes) + 1
    array = jnp.broadcast_to(array, (*sizes, *array.shape[len(sizes) :]))
    if all(sense > 0 for direction in directions for sense in direction.senses):
        return array
    turned = [flip(pick(array, axis, number), direction.senses, 0) for number, direction in enumerate(directions)]
    return jnp.concatenate(turned, axis)


def _at_node(frame: Frame, late: LateGates, values: Values, shared: Values) -> NodeGates:
    lead = (1,) * frame.site_axes
    held = {name: array for name, array in {**shared, **values}.items() if name not in (OWN, CLOSED)}
    leaves = {name: Value(array.reshape(*lead, *array.shape), "node") for name, array in held.items()}
    context = Context(frame, leaves, {})
    for name, expr in late.late.items():
        leaves[name] = expression(context, {}, expr)
    arrays = {expr: expression(context, {}, expr).array for expr in late.distinct}
    gates: dict[tuple[Expr, int, int, tuple[Index, ...], str, int | None], Array] = {}

    def at(name: str, expr: Expr | None, out: int = 0, into: int = 0) -> AtPort:
        """A gate at a port. What is the same at two ports, or in two gates, is one array."""
        if expr is None:
            return None
        array, matrices, entering = arrays[expr], matrix_axes(frame, name), into
        out, into = min(out, array.shape[frame.axis("out")] - 1), min(into, array.shape[frame.axis("in")] - 1)
        idle = "" if OWN not in values else "passes" if name == "transition" and frame.site_axes == 1 else "stops"
        shut = CLOSED in values and name in ("transition", "mark")
        entry = (expr, out, into, matrices, idle, entering if shut else None)
        if entry not in gates:
            picked = pick(pick(array, frame.axis("out"), out), frame.axis("in"), into)
            gate = _whole_matrices(frame, matrices, picked)
            gate = gate.reshape(*gate.shape[frame.site_axes : frame.site_axes + 2], *gate.shape[gate.ndim - STATE_AXES :])
            gate = _where_own(gate, values[OWN], idle) if idle else gate
            gates[entry] = _where_open(gate, values[CLOSED][..., entering]) if shut else gate
        return gates[entry]

    return NodeGates(
        tuple(at("source", expr, out=port) for port, expr in enumerate(late.source)),
        tuple(
            tuple(at("transition", expr, out, into) for into, expr in enumerate(row)) for out, row in enumerate(late.transition)
        ),
        tuple(at("mark", expr, into=port) for port, expr in enumerate(late.mark)),
        at("direct", late.direct),
    )


def _whole_matrices(frame: Frame, matrices: tuple[Index, ...], array: Array) -> Array:
    """The axes that a gate acts on as a matrix are whole: the same number everywhere is no multiple of the identity."""
    for index in matrices:
        axes = (frame.axis(index), frame.axis(index) - 1)
        array = jnp.broadcast_to(array, [frame.size(index) if k in axes else n for k, n in enumerate(array.shape)])
    return array


def _where_open(gate: Array, closed: Array) -> Array:
    """A gate `(head, direction, *state)` that is zero where the port that it takes from is closed, `(1, direction)`."""
    return jnp.where(closed.reshape(*closed.shape, *(1,) * STATE_AXES) > 0, jnp.zeros((1,) * gate.ndim, gate.dtype), gate)


def _where_own(gate: Array, own: Array, idle: str) -> Array:
    """A gate `(head, direction, *state)` that, where a node is not a direction's own, is zero or passes the state as it is."""
    own = own > 0
    if idle == "stops":
        return jnp.where(own.reshape(*own.shape, *(1,) * STATE_AXES), gate, jnp.zeros((1,) * gate.ndim, gate.dtype))
    by_direction = jnp.broadcast_to(jnp.swapaxes(gate, 0, 1), (own.shape[1], gate.shape[0], *gate.shape[2:]))
    return jnp.swapaxes(straight(~own[0], by_direction), 0, 1)
