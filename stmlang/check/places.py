"""Equations of one gate for single positions on state axes, `source[track = 0] = 1`, as the one expression that they are.

Which equation holds is decided as for ports: of those that match a choice of positions, the one with the most pinned indices.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from stmlang.check.clauses import Written
from stmlang.check.problems import Problems
from stmlang.scan.expression import Expr, Index, Stack
from stmlang.source.diagnostic import Label

OTHER = -1
"""Any position that no equation names."""
Typed = tuple[Written, Expr]


def by_places(
    problems: Problems,
    gate: str,
    indices: tuple[Index, ...],
    typed: list[Typed],
    size: Mapping[Index, int],
    *,
    quiet: bool = False,
) -> Expr | None:
    """The value of a gate out of those of its equations for the same ports; None after an error. `size` is that of each
    index that is pinned. Where it is `quiet`, what is wrong was said of the other half of a complex gate."""
    named: dict[Index, list[int]] = {
        index: sorted({dict(written.places).get(index, OTHER) for written, _ in typed} - {OTHER}) for index in indices
    }
    pinned: list[Index] = [index for index in indices if named[index]]
    if not pinned:
        return typed[0][1]
    choices: dict[Index, list[int]] = {
        index: [*named[index], *([OTHER] if len(named[index]) < size[index] else [])] for index in pinned
    }
    table: dict[tuple[int, ...], Expr] = {}
    held = set[int]()
    for choice in product(*(choices[index] for index in pinned)):
        holding = _holding(None if quiet else problems, gate, pinned, choice, typed)
        if holding is None:
            return None
        table[choice] = typed[holding][1]
        held.add(holding)
    for number, (written, _) in enumerate(typed):
        if number not in held and not quiet:
            note = "more specific ones hold for all of its positions"
            problems.warn("STM2042", "this equation never holds", written.head, note)
    return _stacked(table, pinned, choices, ())


def _holding(
    problems: Problems | None, gate: str, pinned: list[Index], choice: tuple[int, ...], typed: list[Typed]
) -> int | None:
    """The number of the equation that holds for a choice of positions; None where none does or several, which is reported."""
    chosen = dict(zip(pinned, choice, strict=True))
    matching = [
        number for number, (written, _) in enumerate(typed) if all(chosen[index] == place for index, place in written.places)
    ]
    most = max((len(typed[number][0].places) for number in matching), default=0)
    best = [number for number in matching if len(typed[number][0].places) == most]
    if len(best) == 1:
        return best[0]
    if problems is None:
        return None
    shown = ", ".join(f"{index} = {place}" if place != OTHER else index for index, place in chosen.items())
    if best:
        first, second = (typed[number][0] for number in best[:2])
        note = "of several equations the one with the most pinned indices holds, and here both have as many"
        message = f"two equations of `{gate}` hold for `{shown}`"
        problems.error("STM2009", message, second.head, note, labels=[Label(first.head, "the other one")])
        return None
    note = f"there is no equation for `{gate}[{shown}]`"
    problems.error("STM2010", f"the equations of `{gate}` leave gaps", typed[0][0].head, note)
    return None


def _stacked(
    table: Mapping[tuple[int, ...], Expr], pinned: list[Index], choices: Mapping[Index, list[int]], chosen: tuple[int, ...]
) -> Expr:
    """Stacks inside each other, one for each pinned index."""
    if len(chosen) == len(pinned):
        return table[chosen]
    index = pinned[len(chosen)]
    inner = {place: _stacked(table, pinned, choices, (*chosen, place)) for place in choices[index]}
    rest = inner.pop(OTHER, None)
    return Stack(index, tuple(inner.items()), rest, next(iter(inner.values())).span)
