"""Leaves that are matrices where a number was meant: `exp(given(high = 0)) * (eye[key, key'] - ...)`.

A leaf has the indices of its equation. In one for a matrix it has both of the matrix, and so a value for each entry. That is
what is meant where it is a matrix by itself, `eye[key, key'] - linear(x)`. It is a slip where it multiplies the identity, or
what holds it, or an outer product beside it: of the identity it scales each entry of the diagonal by another number, and from
the rest it takes the form that makes the delta rule fast and provably stable.
"""

from __future__ import annotations

from collections.abc import Iterator

from stmlang.check.problems import Problems
from stmlang.scan.expression import Expr, Eye, GateRef, Index, LeafRef, Product, free_indices, inside
from stmlang.scan.scan import Gate, Scan

PAIRS: tuple[tuple[Index, Index], ...] = (("key", "key'"), ("value", "value'"), ("track", "track'"))
NAMES = ("a", "b", "c", "scale", "decay", "strength", "number")


def warn_matrices(problems: Problems, scan: Scan) -> None:
    """Warn of each leaf that multiplies an identity, or an outer product beside one, entry by entry."""
    taken = {gate.name for gate in scan.gates}
    name = next((name for name in NAMES if name not in taken), "number_1")
    for pair in PAIRS:
        holding: set[str] = set()
        for gate in scan.gates:
            if set(pair) <= set(gate.indices):
                for leaf in _slips(gate, pair, holding):
                    _warn(problems, leaf, pair, name)


def _warn(problems: Problems, leaf: LeafRef, pair: tuple[Index, Index], name: str) -> None:
    row, column = pair
    text = leaf.span.text
    problems.warn(
        "STM2043",
        f"this leaf has a value for each `{row}` and each `{column}`, and multiplies entry by entry",
        leaf.span,
        f"a leaf has the indices of its equation; what stands beside `eye[{row}, {column}]` is most often one number",
        help=f"for one number, make it a gate of its own, `{name} = {text}`, and write `{name}` here",
    )


def _slips(gate: Gate, pair: tuple[Index, Index], holding: set[str]) -> Iterator[LeafRef]:
    """The leaves of a gate that are meant. `holding` are the gates before it that hold an identity; it is added if it does."""
    for clause in gate.clauses:
        if not _holds(clause.value, pair, holding):
            continue
        for expr in inside(clause.value):
            if isinstance(expr, Product):
                yield from _multiplied(expr, pair, holding)
    if any(_holds(clause.value, pair, holding) for clause in gate.clauses):
        holding.add(gate.name)


def _multiplied(expr: Product, pair: tuple[Index, Index], holding: set[str]) -> Iterator[LeafRef]:
    """The leaves in a product that stand beside an identity, or beside vectors along rows and along columns."""
    factors = [factor for _, factor in expr.factors]
    indices = [set(free_indices(factor)) & set(pair) for factor in factors]
    identity = [_holds(factor, pair, holding) for factor in factors]
    outer = all({index} in indices for index in pair)
    for number, factor in enumerate(factors):
        if len(indices[number]) == 2 and not identity[number] and (any(identity) or outer):
            yield from (leaf for leaf in inside(factor) if isinstance(leaf, LeafRef) and set(pair) <= set(leaf.indices))


def _holds(expr: Expr, pair: tuple[Index, Index], holding: set[str]) -> bool:
    """Whether an identity on an axis stands in an expression, or in a gate that it refers to by both indices."""
    for inner in inside(expr):
        match inner:
            case Eye(first=first, second=second) if {first, second} == set(pair):
                return True
            case GateRef(gate=name, bind=bind) if name in holding and {entry.index for entry in bind} >= set(pair):
                return True
            case _:
                pass
    return False
