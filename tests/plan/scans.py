"""Small scans written by hand, so that planning is tested without a parser."""

from __future__ import annotations

from dataclasses import replace

from stmlang.cost.candidate import Candidate, Rejection
from stmlang.cost.problem import Problem
from stmlang.cost.target import CPU
from stmlang.scan.expression import Index, Number
from stmlang.scan.scan import Clause, Direction, Gate, Leaf, Mode, Scan
from stmlang.scan.topology import Axis, Regular, Static, Topology, ports
from stmlang.source.span import SourceFile, Span
from stmlang.strategies.base import AnyStrategy, asked_for, proposed

SPAN = Span(SourceFile("hand", ""), 0, 0)


def grid(*sizes: int | None) -> Regular:
    return Regular(tuple(Axis(f"axis{at}", size) for at, size in enumerate(sizes)), SPAN)


def diamond() -> Static:
    """a -> b, c -> d, and one edge in from outside and one out."""
    return Static(("a", "b", "c", "d"), ((-1, 0), (0, 1), (0, 2), (1, 3), (2, 3), (3, -1)), False, SPAN)


def scan(topology: Topology, *, transition: tuple[Index, ...] = ("out", "in"), directions: int = 1, **changes: object) -> Scan:
    def gate(name: str, indices: tuple[Index, ...]) -> Gate:
        return Gate(name, indices, (Clause((), Number(1.0, SPAN)),), True, SPAN)

    gates = (gate("source", ("out",)), gate("transition", transition), gate("mark", ("in",)), gate("direct", ()))
    leaves = tuple(Leaf(entry.name, "linear", entry.indices, True) for entry in gates)
    made = Scan(
        name="demo",
        topology=topology,
        heads=2,
        key=8,
        value=16,
        track=1,
        gates=gates,
        leaves=leaves,
        directions=(Direction((1,) * len(ports(topology))),) * directions,
        combine="sum",
        stabilize=Mode.NONE,
        normalize="none",
        span=SPAN,
    )
    return replace(made, **changes)


def asked(strategy: AnyStrategy, given: Problem, settings: dict[str, object]) -> Candidate | Rejection:
    """A strategy with settings by name, on a CPU."""
    return asked_for(strategy, given, settings, CPU)


def offered(strategy: AnyStrategy, given: Problem) -> list[Candidate | Rejection]:
    """All that a strategy proposes, on a CPU."""
    return list(proposed(strategy, given, CPU))


def problem(topology: Topology, **changes: object) -> Problem:
    """A problem; the keywords of `Problem.of` and those of `scan` together."""
    own = {name: changes.pop(name) for name in ("dtype", "mode", "memory_limit", "batch") if name in changes}
    return Problem.of(scan(topology, **changes), None, **own)
