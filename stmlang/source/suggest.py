"""The nearest of the names that exist, for "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from stmlang.source.opposites import opposed

MOST = 8
EMPTY: Mapping[str, str] = MappingProxyType({})


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a name is most likely a misspelling of, or None where there is none.

    One that differs in case only comes first; else the one at the smallest edit distance (insertions, deletions,
    substitutions, swaps of neighbours), which may be a third of the name's length, at least 1 and at most 4. Ties go to the
    candidate that comes first, unless they are opposites, of which none is guessed. What says something else than the name,
    such as its opposite, is no misspelling of it, however alike the two are.
    """
    closest: list[str] = []
    limit = min(4, max(1, len(name) // 3))
    for candidate in candidates:
        if candidate == name:
            continue
        if candidate.lower() == name.lower():
            return candidate
        # Replacing all of a one- or two-letter name is no likeness.
        distance = edit_distance(name.lower(), candidate.lower(), limit)
        if distance > limit or distance >= min(len(name), len(candidate)) or opposed(name, candidate, _distance):
            continue
        closest = [*closest, candidate] if distance == limit and closest else [candidate]
        limit = distance
    if not closest or any(opposed(other, closest[0], _distance) for other in closest[1:]):
        return None
    return closest[0]


def did_you_mean(name: object, candidates: Iterable[str], form: str = "{}", instead: Mapping[str, str] = EMPTY) -> str | None:
    """`did you mean ...?` for what is none of the candidates, where one of them is near; `form` is how it is written there.

    `instead` says what to do for names that people bring from elsewhere, or from what they know: `{"undirected": "say ..."}`.
    """
    if not isinstance(name, str):
        return None
    if name.lower() in instead:
        return instead[name.lower()]
    near = nearest(name, (*candidates, *instead))
    if near is None:
        return None
    return instead[near] if near in instead else f"did you mean `{form.format(near)}`?"


def _distance(left: str, right: str) -> int:
    """The edit distance, capped where it is far more than a misspelling."""
    return edit_distance(left, right, MOST)


def edit_distance(left: str, right: str, limit: int) -> int:
    """The Damerau-Levenshtein distance (each place edited once), or `limit + 1` if it is larger than `limit`.

    Takes time in proportion to the length times `limit`: what lies further than that from the diagonal of the table of
    distances cannot matter.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    far = limit + 1
    before: list[int] = []
    # Entry `d` of a row stands for the first `i + d - limit` characters of `right`.
    previous = [d - limit if d >= limit else far for d in range(2 * limit + 1)]
    for i, a in enumerate(left, 1):
        row: list[int] = []
        for d in range(2 * limit + 1):
            j = i + d - limit
            if not 1 <= j <= len(right):
                row.append(i if j == 0 else far)
                continue
            b = right[j - 1]
            cost = previous[d] + (a != b)
            if d and row[-1] < cost:
                cost = row[-1] + 1
            if d < 2 * limit and previous[d + 1] < cost:
                cost = previous[d + 1] + 1
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b and before[d] < cost:
                cost = before[d] + 1
            row.append(cost)
        if min(row) > limit:
            return far
        before, previous = previous, row
    return min(previous[len(right) - len(left) + limit], far)
