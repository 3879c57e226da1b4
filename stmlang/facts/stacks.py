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
    return np.ones((1, 1)) if _rotation(entries) else nothing


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


def _rotation(entries: list[list[Expr]]) -> bool:
    """Whether a matrix is `[[cos(a), -sin(a)], [sin(a), cos(a)]]`, or its transpose, for one `a`."""
    if [len(row) for row in entries] != [2, 2]:
        return False
    (a, b), (c, d) = entries
    if not (isinstance(a, Apply) and a.function is Function.COS and a == d):
        return False
    turned = Apply(Function.SIN, a.arguments, a.span)
    return any(plus == turned and minus == Sum(((True, turned),), a.span) for minus, plus in ((b, c), (c, b)))
