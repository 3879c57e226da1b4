"""Gate equations as JAX arrays.

Every value has the same axes in the same order, `(*sites, head, direction, out, in, key, key', value, value', track, track')`,
of size one where it does not vary, so that broadcasting by name is broadcasting by position.

On a regular topology the sites are the node axes, and `out`, `in` are dense axes of ports. On a ragged one there is a single
site axis: nodes, or edges seen from the node they leave (`out`) or enter (`in`), or line edges; the axes `out` and `in` stay of
size one. A ragged topology is evaluated for one direction at a time, since "leaves" and "enters" depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, assert_never

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from stmlang.scan.expression import (
    INDICES,
    L2_EPSILON,
    Apply,
    Bind,
    Expr,
    Eye,
    Function,
    GateRef,
    Index,
    InputRef,
    LeafRef,
    LineMask,
    Normalize,
    Number,
    Power,
    Product,
    Reduce,
    Split,
    Sum,
)
from stmlang.scan.scan import Clause, Gate, Leaf, Scan

Site = Literal["constant", "node", "out", "in", "line"]


class Sites(NamedTuple):
    """The index tables of a ragged topology in one direction. Open ends hold the number of nodes."""

    tail: Int[Array, " edges"]
    head: Int[Array, " edges"]
    line_in: Int[Array, " line_edges"]
    line_out: Int[Array, " line_edges"]
    line_node: Int[Array, " line_edges"]
    port: Int[Array, " edges"]
    mask: Array | None


@dataclass(frozen=True)
class Value:
    """An array in the layout above. `site` is "node" or "constant" on regular topologies, where both broadcast alike."""

    array: Array
    site: Site


@dataclass(frozen=True)
class Frame:
    """What evaluation needs besides the arrays: the scan, how many site axes there are, and the ragged tables."""

    scan: Scan
    ports: tuple[str, ...]
    site_axes: int
    nodes: int
    sites: Sites | None
    dtype: jnp.dtype

    def axis(self, index: Index) -> int:
        return self.site_axes + 2 + INDICES.index(index)

    @property
    def rank(self) -> int:
        return self.site_axes + 2 + len(INDICES)

    def size(self, index: Index) -> int:
        """The size of a state index."""
        return {"key": self.scan.key, "value": self.scan.value, "track": self.scan.track}[index.rstrip("'")]


Environment = dict[str, Value]


def evaluate(frame: Frame, leaves: Mapping[str, Array], inputs: Mapping[str, Array]) -> Environment:
    """Every gate of the scan by name, and the inputs `q`, `k`, `v` where no gate redefines them.

    `leaves[name]` has the shape that `scan.Leaf` states, with a direction axis kept at size one where it has none; `inputs`
    holds q, k: (*sites, head, key) and v: (*sites, head, value).
    """
    placed = {name: _place_input(frame, name, array) for name, array in inputs.items()}
    environment: Environment = {}
    context = _Context(frame, {leaf.name: _place_leaf(frame, leaf, leaves[leaf.name]) for leaf in frame.scan.leaves}, placed)
    for gate in frame.scan.gates:
        environment[gate.name] = _gate(context, environment, gate)
    return placed | environment


@dataclass(frozen=True)
class _Context:
    frame: Frame
    leaves: Mapping[str, Value]
    inputs: Mapping[str, Value]


def leaf_site(leaf: Leaf) -> Site:
    """Where a leaf's array lives on a ragged topology."""
    if leaf.kind == "param":
        return "constant"
    out, into = "out" in leaf.indices, "in" in leaf.indices
    return "line" if out and into else "out" if out else "in" if into else "node"


def _place_leaf(frame: Frame, leaf: Leaf, array: Array) -> Value:
    """A leaf's array, `(*sites, head, direction, *indices)`, moved into the common layout and clamped to its bounds."""
    array = jnp.asarray(array, frame.dtype)
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
    index: Index = "value" if name == "v" else "key"
    array = jnp.asarray(array, frame.dtype)
    tail = tuple(array.shape[-1] if entry == index else 1 for entry in INDICES)
    return Value(array.reshape(*array.shape[:-1], 1, *tail), "node")


def clip(x: Array, low: float, high: float) -> Array:
    """`min(max(x, low), high)` with gradient one on the closed interval and zero outside."""
    if low != float("-inf"):
        x = jnp.where(x < low, jnp.asarray(low, x.dtype), x)
    if high != float("inf"):
        x = jnp.where(x > high, jnp.asarray(high, x.dtype), x)
    return x


# --- gates and clauses -----------------------------------------------------------------------------------------------


def _gate(context: _Context, environment: Environment, gate: Gate) -> Value:
    values = [_expr(context, environment, clause.value) for clause in gate.clauses]
    if len(values) == 1 and not gate.clauses[0].ports:
        return values[0]
    if context.frame.sites is None:
        return _dense_clauses(context.frame, gate, values)
    return _ragged_clauses(context.frame, gate, values)


def clause_for(gate: Gate, chosen: Mapping[Index, str]) -> int | None:
    """The number of the clause that holds at the given ports: of those that match, the one that pins most."""
    best: int | None = None
    for number, clause in enumerate(gate.clauses):
        matches = all(chosen.get(index) == port for index, port in clause.ports)
        if matches and (best is None or len(clause.ports) > len(gate.clauses[best].ports)):
            best = number
    return best


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
            cells.append(_pick(_pick(values[number].array, out_axis, o), in_axis, i))
        rows.append(_concatenate(cells, in_axis))
    return Value(_concatenate(rows, out_axis), "node")


def _pick(array: Array, axis: int, position: int) -> Array:
    """One entry of an axis, kept at size one; an axis of size one is the same everywhere."""
    if array.shape[axis] == 1:
        return array
    return jax.lax.slice_in_dim(array, position, position + 1, axis=axis)


def _concatenate(parts: list[Array], axis: int) -> Array:
    if len(parts) == 1:
        return parts[0]
    shape = list(jnp.broadcast_shapes(*(part.shape for part in parts)))
    return jnp.concatenate([jnp.broadcast_to(part, shape) for part in parts], axis=axis)


def _ragged_clauses(frame: Frame, gate: Gate, values: list[Value]) -> Value:
    """Chosen by the port class of the edges at each site."""
    sites = frame.sites
    assert sites is not None
    target: Site = "line" if {"out", "in"} <= set(gate.indices) else "out" if "out" in gate.indices else "in"
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
        edges = sites.port if target in ("out", "in") else sites.port[sites.line_out if index == "out" else sites.line_in]
        met = edges == frame.ports.index(port)
        holds = met if holds is None else holds & met
    return None if holds is None else holds.reshape(-1, *(1,) * (frame.rank - 1))


def _where(holds: Array | None, array: Array, otherwise: Array | None) -> Array:
    if holds is None:
        return array
    return jnp.where(holds, array, jnp.zeros((), array.dtype) if otherwise is None else otherwise)


# --- sites of ragged topologies --------------------------------------------------------------------------------------


def at_site(frame: Frame, value: Value, target: Site) -> Value:
    """The same value seen from finer sites: from a node to its edges, from edges to the line edges they are part of."""
    sites = frame.sites
    if sites is None or value.site in ("constant", target):
        return value
    match (value.site, target):
        case ("node", "out"):
            table = sites.tail
        case ("node", "in"):
            table = sites.head
        case ("node", "line"):
            table = sites.line_node
        case ("out", "line"):
            table = sites.line_out
        case ("in", "line"):
            table = sites.line_in
        case _:
            raise AssertionError(f"no way from {value.site} to {target}")
    return Value(jnp.take(value.array, table, axis=0, mode="clip"), target)


def _common(frame: Frame, values: list[Value]) -> tuple[list[Array], Site]:
    """Arrays brought to the coarsest site that is finer than all of theirs."""
    found = {value.site for value in values} - {"constant"}
    site: Site
    if "line" in found or {"out", "in"} <= found:
        site = "line"
    else:
        site = "out" if "out" in found else "in" if "in" in found else "node" if "node" in found else "constant"
    return [at_site(frame, value, site).array for value in values], site


def _group(frame: Frame, value: Value, over: Index) -> tuple[Value, Array, int, Site]:
    """The value expanded along a ragged port index, the group of each entry, the number of groups, the site of the groups."""
    sites = frame.sites
    assert sites is not None
    if value.site in ("constant", "node"):
        expanded = at_site(frame, Value(_with_sites(frame, value), "node"), "out" if over == "out" else "in")
    elif value.site == over or value.site == "line":
        expanded = value
    else:
        expanded = at_site(frame, value, "line")
    if expanded.site == "line":
        edges = sites.tail.shape[0]
        return expanded, (sites.line_in if over == "out" else sites.line_out), edges, ("in" if over == "out" else "out")
    return expanded, (sites.tail if over == "out" else sites.head), frame.nodes, "node"


def _with_sites(frame: Frame, value: Value) -> Array:
    array = value.array
    return jnp.broadcast_to(array, (frame.nodes, *array.shape[1:])) if value.site == "constant" else array


# --- expressions -----------------------------------------------------------------------------------------------------


def _expr(context: _Context, environment: Environment, expr: Expr) -> Value:
    frame = context.frame
    match expr:
        case Number(value=number):
            return Value(jnp.full((1,) * frame.rank, number, frame.dtype), "constant")
        case LeafRef(leaf=name):
            return context.leaves[name]
        case InputRef(name=name, bind=bind):
            return _rebind(frame, context.inputs[name], bind)
        case GateRef(gate=name, bind=bind):
            return _rebind(frame, environment[name], bind)
        case Apply(function=function, arguments=arguments):
            arrays, site = _common(frame, [_expr(context, environment, part) for part in arguments])
            return Value(_apply(function, arrays, arguments), site)
        case Sum(terms=terms):
            arrays, site = _common(frame, [_expr(context, environment, part) for _, part in terms])
            return Value(_add([-a if negative else a for (negative, _), a in zip(terms, arrays, strict=True)]), site)
        case Product(factors=factors):
            arrays, site = _common(frame, [_expr(context, environment, part) for _, part in factors])
            return Value(_multiply(factors, arrays), site)
        case Power(base=base, exponent=exponent):
            arrays, site = _common(frame, [_expr(context, environment, part) for part in (base, exponent)])
            return Value(_power(arrays[0], arrays[1], exponent), site)
        case Reduce(kind=kind, over=over, argument=argument):
            return _reduce(frame, kind, over, _expr(context, environment, argument))
        case Normalize(kind=kind, over=over, argument=argument):
            return _normalize(frame, kind, over, _expr(context, environment, argument))
        case Split(arguments=arguments):
            arrays, site = _common(frame, [_expr(context, environment, part) for part in arguments])
            return Value(_split(frame, arrays), site)
        case Eye(first=first, second=second):
            return Value(_eye(frame, first, second), "constant")
        case LineMask():
            assert frame.sites is not None
            assert frame.sites.mask is not None
            mask = frame.sites.mask.astype(frame.dtype)
            return Value(mask.reshape(-1, *(1,) * (frame.rank - 1)), "line")
        case _:
            assert_never(expr)


def _rebind(frame: Frame, value: Value, bind: tuple[Bind, ...]) -> Value:
    """Axes renamed, or pinned to one port, as a reference says."""
    array, first = value.array, frame.site_axes + 2
    moved: dict[int, int] = {}
    for entry in bind:
        source = frame.axis(entry.declared)
        if entry.port is not None:
            array = _pick(array, source, frame.ports.index(entry.port))
        elif entry.index is not None and entry.index != entry.declared:
            moved[source] = frame.axis(entry.index)
    if not moved:
        return Value(array, value.site)
    kept = {frame.axis(entry.declared) for entry in bind if entry.index == entry.declared}
    targets = {target: source for source, target in moved.items()}
    spare = [axis for axis in range(first, frame.rank) if axis not in moved and axis not in kept]
    order = list(range(first))
    for axis in range(first, frame.rank):
        order.append(targets[axis] if axis in targets else axis if axis in kept else spare.pop())
    return Value(jnp.transpose(array, order), value.site)


def _add(arrays: list[Array]) -> Array:
    """A sum as a balanced tree: ten thousand terms round like fourteen."""
    while len(arrays) > 1:
        arrays = [a + b for a, b in zip(arrays[::2], arrays[1::2], strict=False)] + arrays[len(arrays) & ~1 :]
    return arrays[0]


def _multiply(factors: tuple[tuple[bool, Expr], ...], arrays: list[Array]) -> Array:
    result = 1 / arrays[0] if factors[0][0] else arrays[0]
    for (inverted, _), array in zip(factors[1:], arrays[1:], strict=True):
        result = result / array if inverted else result * array
    return result


def _power(base: Array, exponent: Array, written: Expr) -> Array:
    if isinstance(written, Number):
        whole = int(written.value) if written.value.is_integer() else None
        return jax.lax.integer_pow(base, whole) if whole is not None and abs(whole) < 2**31 else base**written.value
    return jnp.power(base, exponent)


def _constant(expr: Expr) -> float:
    match expr:
        case Number(value=value):
            return value
        case Sum(terms=((True, Number(value=value)),)):
            return -value
        case _:
            raise AssertionError("the bounds of clip are numbers")


def _apply(function: Function, arrays: list[Array], written: tuple[Expr, ...]) -> Array:
    x = arrays[0]
    match function:
        case Function.EXP:
            return jnp.exp(x)
        case Function.LOG:
            return jnp.log(x)
        case Function.SIGMOID:
            return jax.nn.sigmoid(x)
        case Function.TANH:
            return jnp.tanh(x)
        case Function.RELU:
            return jax.nn.relu(x)
        case Function.SOFTPLUS:
            return jax.nn.softplus(x)
        case Function.ABS:
            return jnp.abs(x)
        case Function.SQRT:
            return jnp.sqrt(x)
        case Function.SIN:
            return jnp.sin(x)
        case Function.COS:
            return jnp.cos(x)
        case Function.CAP:
            return clip(x, -1.0, 1.0)
        case Function.MINIMUM:
            return jnp.minimum(x, arrays[1])
        case Function.MAXIMUM:
            return jnp.maximum(x, arrays[1])
        case Function.CLIP:
            return clip(x, _constant(written[1]), _constant(written[2]))
        case _:
            assert_never(function)


def _reduce(frame: Frame, kind: Literal["sum", "mean", "max"], over: Index, value: Value) -> Value:
    if frame.sites is None or over not in ("out", "in"):
        array, axis = _spread(frame, value.array, over)
        total = _fold(array, axis, "max" if kind == "max" else "sum")
        return Value(total / array.shape[axis] if kind == "mean" else total, value.site)
    expanded, group, count, site = _group(frame, value, over)
    total = jax.ops.segment_sum(expanded.array, group, count)
    if kind == "sum":
        return Value(total, site)
    members = jax.ops.segment_sum(jnp.ones(group.shape, frame.dtype), group, count)
    members = members.reshape(-1, *(1,) * (frame.rank - 1))
    if kind == "mean":
        return Value(total / jnp.maximum(members, 1), site)
    largest = jax.ops.segment_max(expanded.array, group, count)
    return Value(jnp.where(members > 0, largest, 0), site)


def _spread(frame: Frame, array: Array, index: Index) -> tuple[Array, int]:
    """The array broadcast along a dense index, and the axis of that index."""
    axis = frame.axis(index)
    size = len(frame.ports) if index in ("out", "in") else frame.size(index)
    return jnp.broadcast_to(array, [size if k == axis else n for k, n in enumerate(array.shape)]), axis


def _fold(array: Array, axis: int, kind: Literal["sum", "max"]) -> Array:
    """The sum or largest along an axis, kept at size one. Reduced as a matrix: arrays here have more axes than XLA's CPU
    kernels are sure to take."""
    moved = jnp.moveaxis(array, axis, -1)
    flat = moved.reshape(-1, array.shape[axis])
    folded = jnp.sum(flat, axis=-1) if kind == "sum" else jnp.max(flat, axis=-1)
    return jnp.expand_dims(folded.reshape(moved.shape[:-1]), axis)


def _normalize(frame: Frame, kind: Literal["softmax", "l1", "l2"], over: Index, value: Value) -> Value:
    if frame.sites is None or over not in ("out", "in"):
        array, axis = _spread(frame, value.array, over)
        if kind == "softmax":
            array = jnp.exp(array - jax.lax.stop_gradient(_fold(array, axis, "max")))
            return Value(array / _fold(array, axis, "sum"), value.site)
        return Value(_rescale(kind, array, lambda part: _fold(part, axis, "sum")), value.site)
    expanded, group, count, _ = _group(frame, value, over)
    array = expanded.array

    def total(part: Array) -> Array:
        return jnp.take(jax.ops.segment_sum(part, group, count), group, axis=0, mode="clip")

    if kind == "softmax":
        member = (group < count).reshape(-1, *(1,) * (frame.rank - 1))
        array = jnp.where(member, array, 0)
        largest = jax.ops.segment_max(jax.lax.stop_gradient(array), group, count)
        array = jnp.exp(array - jnp.where(member, jnp.take(largest, group, axis=0, mode="clip"), 0))
        return Value(array / jnp.where(member, total(array), 1), expanded.site)
    return Value(_rescale(kind, array, total), expanded.site)


def _rescale(kind: Literal["l1", "l2"], array: Array, total: Callable[[Array], Array]) -> Array:
    if kind == "l2":
        return array * jax.lax.rsqrt(total(array * array) + L2_EPSILON)
    norm = total(jnp.abs(array))
    inside = norm <= 1
    return jnp.where(inside, array, array / jnp.where(inside, 1, norm))


def _split(frame: Frame, arrays: list[Array]) -> Array:
    """A stick broken at each argument in turn; every piece varies along `out` only by its place."""
    axis, rest, pieces = frame.axis("out"), jnp.ones((1,) * frame.rank, frame.dtype), []
    for array in arrays:
        pieces.append(rest * array)
        rest = rest * (1 - array)
    return _concatenate([*pieces, rest], axis)


def _eye(frame: Frame, first: Index, second: Index) -> Array:
    size = frame.size(first)
    shape = [size if axis in (frame.axis(first), frame.axis(second)) else 1 for axis in range(frame.rank)]
    return jnp.eye(size, dtype=frame.dtype).reshape(shape)
