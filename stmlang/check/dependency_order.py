"""Names in dependency order, gates before all, and circles among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stmlang.check.problems import Problems, arrows
from stmlang.source.diagnostic import Label
from stmlang.source.span import Span

Uses = Mapping[str, Mapping[str, Span]]
"""For each gate the gates its equations refer to, each with the place of the first reference."""


def in_order(problems: Problems, uses: Uses) -> list[str] | None:
    """Every gate after all those it refers to, otherwise in the order written; None if some are defined in a circle."""
    order, circles = followed(uses)
    for circle in circles:
        _report(problems, uses, circle)
    return None if circles else order


def followed(uses: Mapping[str, Iterable[str]]) -> tuple[list[str], list[list[str]]]:
    """Names after those that they use, otherwise in the order given, and circles among them, without which they have no such
    order. One circle a name is enough: among n names there may be n^2 of them."""
    done: dict[str, None] = {}
    state: dict[str, bool] = {}  # False while a name is being followed, True when done
    circular: set[str] = set()
    circles: list[list[str]] = []
    for start in uses:
        path: list[tuple[str, Iterator[str]]] = []
        if start not in state:
            state[start] = False
            path.append((start, iter(uses[start])))
        while path:
            name, unvisited = path[-1]
            following = next(unvisited, None)
            if following is None:
                state[name] = True
                done[name] = None
                path.pop()
            elif following not in uses:
                continue
            elif following not in state:
                state[following] = False
                path.append((following, iter(uses[following])))
            elif not state[following] and name not in circular and following not in circular:
                names = [at for at, _ in path]
                circles.append(names[names.index(following) :])
                circular.update(circles[-1])
    return list(done), circles


def reached(uses: Uses, roots: Iterable[str], barriers: Iterable[str] = ()) -> set[str]:
    """The gates that some gates rest on, themselves included; references to a barrier are not followed."""
    stopped = set(barriers)
    gates: set[str] = set()
    stack = [root for root in roots if root in uses]
    while stack:
        name = stack.pop()
        if name not in gates:
            gates.add(name)
            stack += [other for other in uses[name] if other in uses and other not in stopped]
    return gates


def _report(problems: Problems, uses: Uses, circle: list[str]) -> None:
    steps = list(zip(circle, circle[1:] + circle[:1], strict=True))
    places = [uses[gate][other] for gate, other in steps]
    labels = [Label(place, f"`{gate}` needs `{other}`") for place, (gate, other) in zip(places[1:8], steps[1:8], strict=True)]
    what = "is defined by itself" if len(circle) == 1 else f"is defined in a circle: `{arrows([*circle, circle[0]])}`"
    note = "what a state was before is read by `mark` and `transition`; gates are computed from features alone"
    help = None
    if any(name in ("q", "k", "v") for name in circle):
        help = "inside its own equation `k` is the key as given; everywhere else it is the one that the equation makes"
    problems.error("STM1008", f"`{circle[0]}` {what}", places[0], note, help=help, labels=labels)
