"""How the stabilizer makes a transition small enough, and how the analyses recognise that it is.

`T / max(1, |T|)` for the entries, `T / max(1, sum over out of |T|)` for the columns: what is small enough already is left as it
is. `|T|` is the magnitude of a number and the Frobenius norm of a matrix, which is no smaller than its spectral norm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stmlang.facts.rewrite import refer
from stmlang.scan.expression import (
    L2_EPSILON,
    STATE_INDICES,
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
    Sum,
)
from stmlang.scan.scan import Gate

EDGES = "transition.edges"
"""A transition that lacks the index `out`, with it. No spec can write this name."""

Pairs = Iterable[tuple[Index, Index]]


def entry_norm(ref: GateRef, pairs: Pairs) -> Expr:
    """The magnitude, or on matrix axes `sqrt(sum of squares + epsilon)`: the root has a slope at zero thanks to the epsilon."""
    span = ref.span
    axes: list[Index] = sorted((index for pair in pairs for index in pair), key=STATE_INDICES.index)
    if not axes:
        return Apply(Function.ABS, (ref,), span)
    squares: Expr = Power(ref, Number(2.0, span), span)
    for index in axes:
        squares = Reduce("sum", index, squares, span)
    return Apply(Function.SQRT, (Sum(((False, squares), (False, Number(L2_EPSILON, span))), span),), span)


def column_norm(ref: GateRef, pairs: Pairs) -> Expr:
    """The sum of the entries' norms over the outgoing edges."""
    return Reduce("sum", "out", entry_norm(ref, pairs), ref.span)


def divided(ref: GateRef, norm: Expr) -> Expr:
    """`ref / max(1, norm)`."""
    least = Apply(Function.MAXIMUM, (Number(1.0, ref.span), norm), ref.span)
    return Product(((False, ref), (True, least)), ref.span)


def small_entries(ref: GateRef, pairs: Pairs) -> Expr:
    """The gate with entries of at most one."""
    return divided(ref, entry_norm(ref, pairs)) if tuple(pairs) else Apply(Function.CAP, (ref,), ref.span)


def small_columns(ref: GateRef, edges: GateRef, pairs: Pairs) -> Expr:
    """The gate with column sums of at most one. `edges` is the same gate, with the index `out` if that lacks it."""
    if tuple(pairs) or ref != edges:
        return divided(ref, column_norm(edges, pairs))
    return Normalize("l1", "out", ref, ref.span)


def divided_by(expr: Product) -> tuple[GateRef, Expr] | None:
    """The gate and the norm of a `divided` one."""
    match expr.factors:
        case ((False, GateRef() as ref), (True, Apply(function=Function.MAXIMUM, arguments=(Number(value=1.0), norm)))):
            return ref, norm
        case _:
            return None


def has_small_entries(expr: Product, pairs: Pairs) -> bool:
    """Whether a product is `divided` by its own entries' norm."""
    found = divided_by(expr)
    return found is not None and found[1] == entry_norm(found[0], pairs)


def has_small_columns(expr: Product, pairs: Pairs, gates: Mapping[str, Gate]) -> bool:
    """Whether a product is `divided` by its own columns' norm, or by that of the gate `EDGES`, if that stands for it."""
    found = divided_by(expr)
    if found is None:
        return False
    ref, norm = found
    edges = gates.get(EDGES)
    if edges is not None and len(edges.clauses) == 1 and edges.clauses[0].value == ref:
        return norm == column_norm(refer(edges, ref.span), pairs)
    return norm == column_norm(ref, pairs)
