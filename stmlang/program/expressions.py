"""Expressions as arrays: one case for each kind of node of the typed tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Literal, assert_never

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from stmlang.lower.contractions import matrix_product
from stmlang.lower.sites import common, group_by
from stmlang.lower.tables import Indices
from stmlang.lower.values import Environment, Frame, Value, clip, join, join_pieces, pick
from stmlang.program.neighbours import neighbour
from stmlang.program.spectral import spectral_norm
from stmlang.scan.expression import (
    BOUND_INDICES,
    L2_EPSILON,
    SLACK,
    Apply,
    Bind,
    Degree,
    Expr,
    Eye,
    Finite,
    Function,
    GateRef,
    Index,
    InputRef,
    LeafRef,
    LineMask,
    Neighbour,
    Normalize,
    Number,
    Power,
    Product,
    Reduce,
    Spectral,
    Split,
    Spread,
    Stack,
    Sum,
    children,
    inside,
    ordered,
)


@dataclass(frozen=True)
class Context:
    """What expressions refer to besides gates: leaves and inputs in the common layout."""

    frame: Frame
    leaves: Mapping[str, Value]
    inputs: Mapping[str, Value]


def expression(context: Context, environment: Environment, expr: Expr) -> Value:
    """The value of an expression over gates, leaves and inputs."""
    bound = ordered({inner.over for inner in inside(expr) if isinstance(inner, Reduce) and inner.over in BOUND_INDICES})
    if not bound:
        return _evaluated(context, environment, expr)
    value = _evaluated(replace(context, frame=replace(context.frame, bound=bound)), environment, expr)
    return Value(value.array.reshape(value.array.shape[: context.frame.rank]), value.site)


def _evaluated(context: Context, environment: Environment, expr: Expr) -> Value:
    frame = context.frame
    match expr:
        case Number(value=number):
            return Value(jnp.full((1,) * frame.rank, number, frame.dtype), "constant")
        case Spread(low=low, high=high):
            return Value(_over_heads(frame, low, high), "constant")
        case LeafRef(leaf=name):
            return _widened(frame, context.leaves[name])
        case InputRef(name=name, bind=bind):
            return rebind(frame, context.inputs[name], bind)
        case GateRef(gate=name, bind=bind):
            return rebind(frame, environment[name], bind)
        case Apply() | Sum() | Product() | Power():
            return _elementwise(context, environment, expr)
        case Reduce(kind=kind, over=over, argument=argument):
            if kind == "sum" and over in BOUND_INDICES and isinstance(argument, Product):
                return _contracted(context, environment, over, argument)
            return _reduce(frame, kind, over, _evaluated(context, environment, argument))
        case Normalize(kind=kind, over=over, argument=argument):
            return _normalize(frame, kind, over, _evaluated(context, environment, argument))
        case Stack():
            return _stacked(context, environment, expr)
        case Split(arguments=arguments):
            arrays, site = common(frame, [_evaluated(context, environment, argument) for argument in arguments])
            return Value(_split(frame, arrays), site)
        case Eye(first=first, second=second):
            return Value(_eye(frame, first, second), "constant")
        case Spectral(pairs=pairs, argument=argument):
            return _spectral(frame, pairs, _evaluated(context, environment, argument))
        case Degree(over=over):
            return _degree(frame, over)
        case Neighbour(over=over):
            return neighbour(frame, over)
        case Finite(argument=argument):
            value = _evaluated(context, environment, argument)
            return Value(jnp.where(jnp.isfinite(value.array), value.array, 0), value.site)
        case LineMask():
            return _kept_line_edges(frame)
        case _:
            assert_never(expr)


def _elementwise(context: Context, environment: Environment, expr: Apply | Sum | Product | Power) -> Value:
    """What is made of numbers site by site and index by index."""
    arrays, site = common(context.frame, [_evaluated(context, environment, operand) for operand in children(expr)])
    match expr:
        case Apply(function=function):
            return Value(_apply(function, arrays), site)
        case Sum(terms=terms):
            return Value(_add([-a if negative else a for (negative, _), a in zip(terms, arrays, strict=True)]), site)
        case Product(factors=factors):
            return Value(_multiply(factors, arrays), site)
        case Power(exponent=exponent):
            return Value(_power(arrays[0], arrays[1], exponent), site)


def _kept_line_edges(frame: Frame) -> Value:
    """One at the line edges that a multitree keeps, else zero."""
    assert frame.sites is not None
    assert frame.sites.mask is not None
    mask = jnp.asarray(frame.sites.mask, frame.dtype)
    return Value(mask.reshape(-1, *(1,) * (frame.rank - 1)), "line")


def _widened(frame: Frame, value: Value) -> Value:
    """A value with axes for the bound indices."""
    array = value.array
    return Value(array.reshape(*array.shape, *(1,) * (frame.rank - array.ndim)), value.site)


def rebind(frame: Frame, value: Value, bind: tuple[Bind, ...]) -> Value:
    """Axes renamed, or pinned to one port, as a reference says."""
    array, first = _widened(frame, value).array, frame.site_axes + 2
    moved: dict[int, int] = {}
    for entry in bind:
        source = frame.axis(entry.declared)
        if entry.port is not None:
            array = pick(array, source, frame.ports.index(entry.port))
        elif entry.place is not None:
            array = pick(array, source, entry.place)
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
        if whole is not None and abs(whole) < 2**31:
            return jax.lax.integer_pow(base, whole)
        return _rooted(lambda base: base**written.value, base, base == 0) if written.value > 0 else base**written.value
    rooted = (base == 0) & (exponent > 0) & (exponent != 1)
    return _rooted(lambda base: jnp.power(base, exponent), base, rooted)


def _rooted(function: Callable[[Array], Array], x: Array, zero: Array) -> Array:
    """A function that is zero where `zero` holds, and flat there: its slope, or a higher one, is infinite, and a gate that has
    underflowed would turn it into NaN (infinity times a slope of zero)."""
    return jnp.where(zero, 0, function(jnp.where(zero, 1, x)))


def _apply(function: Function, arrays: list[Array]) -> Array:
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
            return _rooted(jnp.sqrt, x, x == 0)
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
        case Function.DIVISOR:
            return jnp.where(x > 1 + SLACK, x, jnp.where(jnp.isnan(x), x, 1))
        case Function.CLIP:
            return clip(x, arrays[1], arrays[2])
        case _:
            assert_never(function)


def _reduce(frame: Frame, kind: Literal["sum", "mean", "max"], over: Index, value: Value) -> Value:
    if frame.sites is None or over not in ("out", "in"):
        array, axis = _spread(frame, value.array, over)
        total = _fold(array, axis, "max" if kind == "max" else "sum")
        return Value(total / array.shape[axis] if kind == "mean" else total, value.site)
    expanded, group, count, site = group_by(frame, value, over)
    total = jax.ops.segment_sum(expanded.array, group, count)
    if kind == "sum":
        return Value(total, site)
    members = _members(frame, group, count)
    if kind == "mean":
        return Value(total / jnp.maximum(members, 1), site)
    largest = jax.ops.segment_max(expanded.array, group, count)
    return Value(jnp.where(members > 0, largest, 0), site)


def _contracted(context: Context, environment: Environment, over: Index, product: Product) -> Value:
    """A product summed over a bound index, `sum(a[key, key''] * b[key'', key'], over = key'')`: as a product of matrices, whose
    terms are never all held at once."""
    frame = context.frame
    arrays, site = common(frame, [_evaluated(context, environment, factor) for _, factor in product.factors])
    axis = frame.axis(over)
    along = [
        array for (inverted, _), array in zip(product.factors, arrays, strict=True) if array.shape[axis] > 1 and not inverted
    ]
    divided = any(inverted and array.shape[axis] > 1 for (inverted, _), array in zip(product.factors, arrays, strict=True))
    if len(along) < 2 or divided:
        return _reduce(frame, "sum", over, Value(_multiply(product.factors, arrays), site))
    whole = matrix_product(_multiply_all(along[:-1]), along[-1], axis)
    for (inverted, _), array in zip(product.factors, arrays, strict=True):
        if array.shape[axis] == 1:
            whole = whole / array if inverted else whole * array
    return Value(whole, site)


def _multiply_all(arrays: list[Array]) -> Array:
    return reduce(jnp.multiply, arrays)


def _members(frame: Frame, group: Indices, count: int) -> Array:
    """How many entries each group has."""
    counts = jax.ops.segment_sum(jnp.ones(group.shape, frame.dtype), group, count)
    return counts.reshape(-1, *(1,) * (frame.rank - 1))


def _degree(frame: Frame, over: Literal["out", "in"]) -> Value:
    """The number of edges that leave or enter each node."""
    sites = frame.sites
    assert sites is not None, "on a regular topology a degree is a number"
    return Value(_members(frame, sites.tail if over == "out" else sites.head, frame.nodes), "node")


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
        return Value(_rescale(kind, array, lambda values: _fold(values, axis, "sum")), value.site)
    expanded, group, count, _ = group_by(frame, value, over)
    array = expanded.array

    def total(values: Array) -> Array:
        return jnp.take(jax.ops.segment_sum(values, group, count), group, axis=0, mode="clip")

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
    return join([*pieces, rest], axis)


def _over_heads(frame: Frame, low: float, high: float) -> Array:
    heads = frame.scan.heads
    values = np.linspace(low, high, heads) if heads > 1 else np.asarray([(low + high) / 2])
    return jnp.asarray(values, frame.dtype).reshape(*(1,) * frame.site_axes, heads, *(1,) * (frame.rank - frame.site_axes - 1))


def _stacked(context: Context, environment: Environment, expr: Stack) -> Value:
    """Entries joined along their index: runs of positions without one are cut from the rest."""
    frame = context.frame
    axis, size = frame.axis(expr.index), frame.size(expr.index)
    written = [_evaluated(context, environment, entry) for entry in children(expr)]
    arrays, site = common(frame, written)
    entries = {place: array for (place, _), array in zip(expr.entries, arrays, strict=False)}
    pieces, start = list[Array](), 0
    for place in [*sorted(entries), size]:
        if place > start:
            rest, _ = _spread(frame, arrays[-1], expr.index)
            pieces.append(jax.lax.slice_in_dim(rest, start, place, axis=axis))
        if place < size:
            pieces.append(pick(entries[place], axis, place))
        start = place + 1
    return Value(join_pieces(pieces, axis), site)


def _spectral(frame: Frame, pairs: tuple[tuple[Index, Index], ...], value: Value) -> Value:
    """The norm of a matrix of all rows and all columns, one axis behind the other."""
    array = value.array
    for pair in pairs:
        for index in pair:
            array, _ = _spread(frame, array, index)
    rows, columns = ([frame.axis(pair[side]) for pair in pairs] for side in (0, 1))
    moved = jnp.moveaxis(array, [*rows, *columns], range(-2 * len(pairs), 0))
    size = prod(frame.size(row) for row, _ in pairs)
    norms = spectral_norm(moved.reshape(-1, size, size)).reshape(moved.shape[: -2 * len(pairs)])
    return Value(jnp.expand_dims(norms, [*rows, *columns]), value.site)


def _eye(frame: Frame, first: Index, second: Index) -> Array:
    size = frame.size(first)
    shape = [size if axis in (frame.axis(first), frame.axis(second)) else 1 for axis in range(frame.rank)]
    return jnp.eye(size, dtype=frame.dtype).reshape(shape)
