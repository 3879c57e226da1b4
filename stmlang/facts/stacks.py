"""Matrices written out on a state axis, `[[a, b], [c, d]][track, track']`: bounds on their norms."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from stmlang.facts.classes import Floats
from stmlang.scan.expression import Apply, Expr, Function, Index, Number, Stack, Sum, free_indices

Pair = tuple[Index, Index]


def stacked_norm(expr: Stack, pairs: frozenset[Pair]) -> Floats:
    """The spectral norm of a matrix of numbers, and one for a rotation; infinite for any other matrix."""
    nothing = np.full((1, 1), np.inf)
    if len(pairs) != 1:
        return nothing
    (pair,) = pairs
    entries = matrix_entries(expr, pair)
    if entries is None:
        return nothing
    if all(isinstance(entry, Number) for row in entries for entry in row):
        numbers = [[entry.value if isinstance(entry, Number) else 0.0 for entry in row] for row in entries]
        return np.full((1, 1), float(np.linalg.norm(np.asarray(numbers), 2)))
    return np.ones((1, 1)) if is_rotation(expr, pair) else nothing


def matrix_entries(expr: Stack, pair: Pair) -> list[list[Expr]] | None:
    """The entries of a matrix by row and column; None unless it is written out entry by entry."""
    outer, sides = expr.index, set(pair)
    inner = next(iter(sides - {outer}))
    if outer not in sides or expr.rest is not None:
        return None
    table: dict[tuple[int, int], Expr] = {}
    for place, row in expr.entries:
        if not isinstance(row, Stack) or row.index != inner or row.rest is not None:
            return None
        for other, entry in row.entries:
            if not sides.isdisjoint(free_indices(entry)):
                return None
            table[(place, other) if outer == pair[0] else (other, place)] = entry
    rows, columns = (1 + max(place[side] for place in table) for side in (0, 1))
    if len(table) != prod((rows, columns)):
        return None
    ordered = [table[place] for place in product(range(rows), range(columns))]
    return [ordered[row * columns : (row + 1) * columns] for row in range(rows)]


def scaled_rotation(expr: Expr, pair: Pair) -> tuple[Expr, Expr] | None:
    """`a` and `b` of a matrix `[[a, -b], [b, a]]`, or of its transpose: what multiplies a complex number by `a + i b`. Its norm
    is `sqrt(a^2 + b^2)`."""
    entries = matrix_entries(expr, pair) if isinstance(expr, Stack) else None
    if entries is None or [len(row) for row in entries] != [2, 2]:
        return None
    (a, b), (c, d) = entries
    if a != d:
        return None
    for plus, minus in ((c, b), (b, c)):
        if minus == Sum(((True, plus),), plus.span):
            return a, plus
    return None


def is_rotation(expr: Expr, pair: Pair) -> bool:
    """Whether a matrix is `[[cos(a), -sin(a)], [sin(a), cos(a)]]`, or its transpose, for one `a`."""
    match scaled_rotation(expr, pair):
        case Apply(function=Function.COS, arguments=angle), Apply(function=Function.SIN, arguments=other):
            return angle == other
        case _:
            return False
