"""How the stabilizer makes a transition small enough, and how the analyses recognise that it is.

`T / max(1, |T|)` for the entries, `T / max(1, sum over out of |T|)` for the columns: what is small enough already is left as it
is, to the last bit, and so is what is larger than one by no more than `SLACK`. `|T|` is the magnitude of a number and the
spectral norm of a matrix.

The norm is a gate of its own, `NORM`, with an equation for each of the transition's. What numbers have to do with it stands
before it, `|a| |T|`, and so do matrices on different axes; for the rest it is

* `max over the axis of |d|` for a diagonal matrix, `eye * d`;
* `|a| max(1, |1 - b |u|^2|)` for `a * (eye - b * u * u')`, and `max(|a|, |a - b |u|^2|)` for `a * eye - b * u * u'`;
* `|u| |w|` for an outer product `u * w'`;
* `sqrt(a^2 + b^2)` for `[[a, -b], [b, a]]`, which multiplies a complex number, and 1 for a rotation;
* what `Spectral` computes for any other matrix, on one axis or on several.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from math import prod, sqrt

from stmlang.facts.factored import shifted
from stmlang.facts.rewrite import factors, product, refer
from stmlang.facts.stacks import is_rotation, scaled_rotation
from stmlang.facts.terms import PAIRS, Factor, Gates, opened
from stmlang.scan.expression import (
    Apply,
    Expr,
    Function,
    GateRef,
    Index,
    Normalize,
    Number,
    Power,
    Product,
    Reduce,
    Spectral,
    Sum,
    free_indices,
)
from stmlang.scan.scan import Clause, Gate, Scan
from stmlang.scan.sizes import dense_size
from stmlang.source.span import Span

RAW = "transition.raw"
"""The transition as the spec has it, once `transition` is what the stabilizer made of it. No spec can write this name."""

NORM = "transition.norm"
"""The norm of each of its entries. No spec can write this name."""

Pair = tuple[Index, Index]
Pairs = frozenset[Pair]


def norm_gate(scan: Scan, raw: Gate, pairs: Pairs, columns: bool) -> Gate:
    """The gate `NORM`, without the indices of `pairs`. If sums over `out` are asked for (`columns`), it has that index whether
    the transition has it or not."""
    gates = {gate.name: gate for gate in (*scan.gates, raw)}
    bound = {index for pair in pairs for index in pair}
    indices = tuple(index for index in raw.indices if index not in bound)
    if columns and "out" not in indices:
        indices = ("out", *indices)
    clauses = tuple(Clause(clause.ports, _norm(scan, gates, clause.value, pairs)) for clause in raw.clauses)
    if len(clauses) == 1 and isinstance(spectral := clauses[0].value, Spectral) and spectral.argument == raw.clauses[0].value:
        clauses = (Clause((), Spectral(spectral.pairs, refer(raw, spectral.span), spectral.span)),)
    return replace(raw, name=NORM, indices=indices, clauses=clauses)


def small_entries(raw: Gate, norm: Gate | None) -> Expr:
    """The gate with entries of at most one; `norm` is needed where they are matrices."""
    ref = refer(raw, raw.span)
    return Apply(Function.CAP, (ref,), raw.span) if norm is None else _divided(ref, refer(norm, raw.span))


def small_columns(raw: Gate, norm: Gate | None) -> Expr:
    """The gate with column sums of at most one; `norm` is needed where entries are matrices, or do not have the index `out`."""
    ref = refer(raw, raw.span)
    if norm is None:
        return Normalize("l1", "out", ref, raw.span)
    return _divided(ref, Reduce("sum", "out", refer(norm, raw.span), raw.span))


def _divided(ref: GateRef, norm: Expr) -> Expr:
    """`ref / max(1, norm)`."""
    return Product(((False, ref), (True, Apply(Function.DIVISOR, (norm,), ref.span))), ref.span)


def _divisor(expr: Product) -> Expr | None:
    """The norm that the raw transition is divided by, if that is what a product is."""
    match expr.factors:
        case ((False, GateRef(gate=name)), (True, Apply(function=Function.DIVISOR, arguments=(norm,)))) if name == RAW:
            return norm
        case _:
            return None


def has_small_entries(expr: Product) -> bool:
    """Whether a product is the raw transition with small entries: divided by their own norm."""
    norm = _divisor(expr)
    return isinstance(norm, GateRef) and norm.gate == NORM


def has_small_columns(expr: Product) -> bool:
    """Whether a product is the raw transition with small columns: divided by their own norm."""
    match _divisor(expr):
        case Reduce(kind="sum", over="out", argument=GateRef(gate=name)):
            return name == NORM
        case _:
            return False


# --- norms -----------------------------------------------------------------------------------------------------------


def _norm(scan: Scan, gates: Gates, expr: Expr, pairs: Pairs) -> Expr:
    """The norm of an expression as a matrix on the axes `pairs`; on none of them its magnitude.

    A number stands for the matrix all of whose entries it is, a vector for the one all of whose columns, or rows, it is.
    """
    whole, span = opened(expr, gates, deep=False), expr.span
    if not pairs:
        return _size(whole, span)
    if len(pairs) == 1 and (closed := _closed(scan, gates, whole, next(iter(pairs)))) is not None:
        return closed
    multiplied = factors(whole)[1]
    bound = {index for pair in pairs for index in pair}
    numbers = [factor for factor in multiplied if bound.isdisjoint(free_indices(factor[1]))]
    others = [factor for factor in multiplied if factor not in numbers]
    matrix = product(False, others, span) if numbers else expr
    groups = _by_axis(others, pairs)
    if groups is None:
        norms: list[Expr] = [Spectral(tuple(pair for pair in PAIRS if pair in pairs), matrix, span)]
    elif len(groups) == 1:
        norms = [_on_axis(scan, others, next(iter(groups)), matrix)]
    else:
        norms = [_norm(scan, gates, product(False, own, span), frozenset((pair,))) for pair, own in groups.items()]
    return _times([_size(product(False, numbers, span), span)] if numbers else [], norms, span)


def _by_axis(multiplied: list[Factor], pairs: Pairs) -> dict[Pair, list[Factor]] | None:
    """The factors of a Kronecker product; None where a factor has indices of several axes."""
    groups: dict[Pair, list[Factor]] = {pair: [] for pair in PAIRS if pair in pairs}
    for factor in multiplied:
        own = [pair for pair in groups if not set(pair).isdisjoint(free_indices(factor[1]))]
        if len(own) != 1:
            return None
        groups[own[0]].append(factor)
    return groups


def _closed(scan: Scan, gates: Gates, expr: Expr, pair: Pair) -> Expr | None:
    """The norm of a matrix with one row, or of a diagonal matrix and an outer product."""
    row, span = pair[0], expr.span
    if dense_size(scan, row) == 1:
        return reduce(lambda inside, index: _summed(scan, inside, index), pair, _size(expr, span))
    read = [form for deep in (False, True) if (form := shifted(expr, pair, gates, deep)) is not None]
    forms = [form for reading in read if (form := reading.factored(gates)) is not None]
    if forms:
        form, unit = forms[0], Number(1.0, span)
        turned = Product(((False, form.strength), (False, _squared(scan, form.u, row))), span)
        norm_of_reflection = Apply(Function.MAXIMUM, (unit, _size(Sum(((False, unit), (True, turned)), span), span)), span)
        return _times([] if form.scale == unit else [_size(form.scale, span)], [norm_of_reflection], span)
    if not read:
        return None
    reading = read[0]
    if reading.u is None:
        size = _size(reading.diagonal, span)
        return size if reading.uniform else Reduce("max", row, size, span)
    if not reading.uniform:
        return None
    outer = Product(((False, reading.weight), (False, _squared(scan, reading.u, row))), span)
    far = Sum(((False, reading.diagonal), (True, outer)), span)
    return Apply(Function.MAXIMUM, (_size(reading.diagonal, span), _size(far, span)), span)


def _squared(scan: Scan, vector: Expr, index: Index) -> Expr:
    """The squared length of a vector."""
    return _summed(scan, Power(vector, Number(2.0, vector.span), vector.span), index)


def _on_axis(scan: Scan, multiplied: list[Factor], pair: Pair, whole: Expr) -> Expr:
    """The norm of a product on one axis: of an outer product the lengths of its vectors."""
    span = whole.span
    if any(set(pair) <= set(free_indices(factor)) for _, factor in multiplied):
        return _turning(multiplied, pair, span) or Spectral((pair,), whole, span)
    lengths: list[Expr] = []
    for index in pair:
        own = [factor for factor in multiplied if index in free_indices(factor[1])]
        if not own:
            lengths.append(Number(sqrt(dense_size(scan, index)), span))
            continue
        squares = Power(product(False, own, span), Number(2.0, span), span)
        lengths.append(Apply(Function.SQRT, (Reduce("sum", index, squares, span),), span))
    return _times([], lengths, span)


def _turning(multiplied: list[Factor], pair: Pair, span: Span) -> Expr | None:
    """The norm of a rotation, or of one times a number, that stands alone; None of any other matrix."""
    if len(multiplied) != 1 or multiplied[0][0]:
        return None
    matrix = multiplied[0][1]
    halves = scaled_rotation(matrix, pair)
    if halves is None:
        return None
    if is_rotation(matrix, pair):
        return Number(1.0, span)
    squares = tuple((False, Power(half, Number(2.0, span), span)) for half in halves)
    return Apply(Function.SQRT, (Sum(squares, span),), span)


def _summed(scan: Scan, expr: Expr, index: Index) -> Expr:
    """The sum over an index that an expression may lack."""
    if index in free_indices(expr):
        return Reduce("sum", index, expr, expr.span)
    size = dense_size(scan, index)
    return expr if size == 1 else Product(((False, Number(float(size), expr.span)), (False, expr)), expr.span)


def _size(expr: Expr, span: Span) -> Expr:
    """The magnitude of a number."""
    match expr:
        case Number(value=value):
            return Number(abs(value), span)
        case Sum(terms=((_, term),)):
            return _size(term, span)
        case _:
            return Apply(Function.ABS, (expr,), span)


def _times(numbers: list[Expr], norms: list[Expr], span: Span) -> Expr:
    """The product of norms; numbers among them are multiplied here."""
    multiplied = [*numbers, *norms]
    known = prod(factor.value for factor in multiplied if isinstance(factor, Number))
    others = [(False, factor) for factor in multiplied if not isinstance(factor, Number)]
    return product(False, [(False, Number(known, span)), *others], span)
