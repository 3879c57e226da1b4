"""Gate equations as JAX arrays: leaves placed, clauses chosen port by port, gates in the order of their dependence."""

from __future__ import annotations

from collections.abc import Container, Mapping

import jax.numpy as jnp
from jaxtyping import Array

from stmlang.lower.operands import input_axes
from stmlang.lower.sites import at_site, leaf_site, port_site
from stmlang.lower.values import Environment, Frame, Site, Value, clip, join, pick
from stmlang.program.expressions import Context, expression
from stmlang.scan.clauses import clause_for
from stmlang.scan.expression import INDICES, TERM_INDICES, Index
from stmlang.scan.scan import Clause, Gate, Leaf


def place(frame: Frame, leaves: Mapping[str, Array], inputs: Mapping[str, Array]) -> Context:
    """Leaves and inputs in the common layout.

    `leaves[name]` has the shape that `scan.Leaf` states, with a direction axis kept at size one where it has none; `inputs`
    holds q: (*sites, head, direction, [read], key), k: (*sites, head, direction, [write], key) and v: (*sites, head, direction,
    [write], value), the axis likewise.
    """
    return Context(
        frame,
        {leaf.name: _place_leaf(frame, leaf, leaves[leaf.name]) for leaf in frame.scan.leaves},
        {name: _place_input(frame, name, array) for name, array in inputs.items()},
    )


def evaluate(context: Context, names: Container[str]) -> Environment:
    """The wanted gates of the scan by name, and the inputs `q`, `k`, `v` where no gate redefines them."""
    environment: Environment = {}
    for gate in (gate for gate in context.frame.scan.gates if gate.name in names):
        environment[gate.name] = gate_value(context, environment, gate)
    return {**context.inputs, **environment}


def _place_leaf(frame: Frame, leaf: Leaf, array: Array) -> Value:
    """A leaf's array, `(*sites, head, direction, *indices)`, moved into the common layout and clamped to its bounds."""
    ragged = frame.sites is not None
    site_axes = 0 if leaf.kind == "param" else frame.site_axes
    indices = [index for index in leaf.indices if not (ragged and index in ("out", "in"))]
    order = sorted(range(len(indices)), key=lambda k: INDICES.index(indices[k]))
    array = jnp.transpose(array, [*range(site_axes + 2), *(site_axes + 2 + k for k in order)])
    sizes = dict(zip(sorted(indices, key=INDICES.index), array.shape[site_axes + 2 :], strict=True))
    tail = tuple(sizes.get(index, 1) for index in INDICES)
    lead = array.shape[:site_axes] if site_axes else (1,) * frame.site_axes
    array = array.reshape(*lead, *array.shape[site_axes : site_axes + 2], *tail)
    return Value(clip(array, leaf.low, leaf.high), leaf_site(leaf) if ragged else "node")


def _place_input(frame: Frame, name: str, array: Array) -> Value:
    axes = [index for index in input_axes(name) if index in frame.terms or index not in TERM_INDICES]
    lead = frame.site_axes + 2
    sizes = dict(zip(axes, array.shape[lead:], strict=True))
    tail = tuple(sizes.get(index, 1) for index in INDICES)
    return Value(array.reshape(*array.shape[:lead], *tail), "node")


# --- gates and clauses -----------------------------------------------------------------------------------------------


def gate_value(context: Context, environment: Environment, gate: Gate) -> Value:
    """A gate of what is in an environment."""
    values = [expression(context, environment, clause.value) for clause in gate.clauses]
    if len(values) == 1 and not gate.clauses[0].ports:
        return values[0]
    if context.frame.sites is None:
        return _dense_clauses(context.frame, gate, values)
    return _ragged_clauses(context.frame, gate, values)


def _dense_clauses(frame: Frame, gate: Gate, values: list[Value]) -> Value:
    """Assembled port by port, so that a clause that does not hold somewhere cannot touch the value or its gradient there."""
    out_axis, in_axis = frame.axis("out"), frame.axis("in")
    outs = frame.ports if "out" in gate.indices else (None,)
    ins = frame.ports if "in" in gate.indices else (None,)
    rows: list[Array] = []
    for o, out in enumerate(outs):
        cells: list[Array] = []
        for i, into in enumerate(ins):
            chosen: dict[Index, str] = {}
            if out is not None:
                chosen["out"] = out
            if into is not None:
                chosen["in"] = into
            number = clause_for(gate, chosen)
            if number is None:
                raise AssertionError(f"gate {gate.name} has no clause at {chosen}")
            cells.append(pick(pick(values[number].array, out_axis, o), in_axis, i))
        rows.append(join(cells, in_axis))
    return Value(join(rows, out_axis), "node")


def _ragged_clauses(frame: Frame, gate: Gate, values: list[Value]) -> Value:
    """Chosen by the port class of the edges at each site."""
    sites = frame.sites
    assert sites is not None
    target = port_site(gate.indices)
    result: Array | None = None
    order = sorted(range(len(values)), key=lambda number: len(gate.clauses[number].ports))
    for number in order:
        array = at_site(frame, values[number], target).array
        holds = _holds(frame, gate.clauses[number], target)
        result = array if result is None and holds is None else _where(holds, array, result)
    assert result is not None
    return Value(result, target)


def _holds(frame: Frame, clause: Clause, target: Site) -> Array | None:
    """Where a clause's pinned ports are met, shaped for broadcasting; None for the general clause."""
    sites = frame.sites
    assert sites is not None
    holds: Array | None = None
    for index, port in clause.ports:
        edges = sites.port
        if target == "line":
            assert sites.line is not None
            edges = edges[sites.line.out if index == "out" else sites.line.into]
        met = edges == frame.ports.index(port)
        holds = met if holds is None else holds & met
    return None if holds is None else holds.reshape(-1, *(1,) * (frame.rank - 1))


def _where(holds: Array | None, array: Array, otherwise: Array | None) -> Array:
    if holds is None:
        return array
    return jnp.where(holds, array, jnp.zeros((), array.dtype) if otherwise is None else otherwise)
