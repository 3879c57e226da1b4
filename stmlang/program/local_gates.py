"""Gates for strategies that evaluate them node by node: the early values laid out, and the rest as a function of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Bool

from stmlang.cost.late_gates import Erasing, LateGates
from stmlang.lower.gates import straight
from stmlang.lower.node_gates import AtPort, Erasure, Gate, LocalGates, NodeGates, Values, Written
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
    gates: dict[Hashable, Gate | Erasure] = {}

    def at(name: str, expr: Expr | Erasing | None, out: int = 0, into: int = 0) -> AtPort:
        """A gate at a port. What is the same at two ports, or in two gates, is one object."""
        if expr is None:
            return None
        idle = "" if OWN not in values else "passes" if name == "transition" and frame.site_axes == 1 else "stops"
        shut = CLOSED in values and name in ("transition", "mark")
        made = expr.values if isinstance(expr, Erasing) else (expr,)
        places = [(_port(frame, arrays[each], "out", out), _port(frame, arrays[each], "in", into)) for each in made]
        matrices = () if isinstance(expr, Erasing) else matrix_axes(frame, name)
        entry = (expr, tuple(places), matrices, idle, into if shut else None)
        if entry not in gates:
            picked = [_picked(frame, matrices, arrays[each], *place) for each, place in zip(made, places, strict=True)]
            gate = _erasure(expr, dict(zip(made, picked, strict=True))) if isinstance(expr, Erasing) else picked[0]
            gate = _where_own(gate, values[OWN], idle) if idle else gate
            gates[entry] = _where_open(gate, values[CLOSED][..., into]) if shut else gate
        return gates[entry]

    def written(name: str, expr: Expr | None, out: int = 0) -> Written:
        gate = at(name, expr, out)
        assert not isinstance(gate, Erasure)
        return gate

    return NodeGates(
        tuple(written("source", expr, port) for port, expr in enumerate(late.source)),
        tuple(
            tuple(at("transition", expr, out, into) for into, expr in enumerate(row)) for out, row in enumerate(late.transition)
        ),
        tuple(at("mark", expr, into=port) for port, expr in enumerate(late.mark)),
        written("direct", late.direct),
    )


def _port(frame: Frame, array: Array, index: Index, port: int) -> int:
    """Which entry of a value is that of a port: the first one where it is the same at all of them."""
    return min(port, array.shape[frame.axis(index)] - 1)


def _picked(frame: Frame, matrices: tuple[Index, ...], array: Array, out: int, into: int) -> Gate:
    """The entry of a value at two ports, `(head, direction, *state)`."""
    picked = _whole_matrices(frame, matrices, pick(pick(array, frame.axis("out"), out), frame.axis("in"), into))
    return picked.reshape(*picked.shape[frame.site_axes : frame.site_axes + 2], *picked.shape[picked.ndim - STATE_AXES :])


def _erasure(form: Erasing, gates: Mapping[Expr, Gate]) -> Erasure:
    scale, u = (None if expr is None else gates[expr] for expr in (form.scale, form.u))
    return Erasure(form.index, scale, gates[form.strength], u)


def _whole_matrices(frame: Frame, matrices: tuple[Index, ...], array: Array) -> Array:
    """The axes that a gate acts on as a matrix are whole: the same number everywhere is no multiple of the identity."""
    for index in matrices:
        axes = (frame.axis(index), frame.axis(index) - 1)
        array = jnp.broadcast_to(array, [frame.size(index) if k in axes else n for k, n in enumerate(array.shape)])
    return array


def _where_open(gate: Gate | Erasure, closed: Array) -> Gate | Erasure:
    """A gate that is zero where the port that it takes from is closed, `(1, direction)`."""
    return _zero_where(closed.reshape(*closed.shape, *(1,) * STATE_AXES) > 0, gate)


def _zero_where(absent: Array, gate: Gate | Erasure) -> Gate | Erasure:
    if isinstance(gate, Erasure):
        scale = jnp.ones_like(gate.strength) if gate.scale is None else gate.scale
        return replace(gate, scale=jnp.where(absent, 0, scale))
    return jnp.where(absent, jnp.zeros((1,) * gate.ndim, gate.dtype), gate)


def _where_own(gate: Gate | Erasure, own: Array, idle: str) -> Gate | Erasure:
    """A gate that, where a node is not a direction's own, is zero or passes the state as it is."""
    own = own > 0
    whole = own.reshape(*own.shape, *(1,) * STATE_AXES)
    if idle == "stops":
        return _zero_where(~whole, gate)
    if isinstance(gate, Erasure):
        scale = None if gate.scale is None else jnp.where(whole, gate.scale, 1)
        return replace(gate, scale=scale, strength=jnp.where(whole, gate.strength, 0))
    by_direction = jnp.broadcast_to(jnp.swapaxes(gate, 0, 1), (own.shape[1], gate.shape[0], *gate.shape[2:]))
    return jnp.swapaxes(straight(~own[0], by_direction), 0, 1)
