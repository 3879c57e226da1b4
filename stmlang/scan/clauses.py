"""Which of a gate's equations holds at which ports."""

from __future__ import annotations

from collections.abc import Mapping

from stmlang.scan.expression import Index
from stmlang.scan.scan import Gate


def clause_for(gate: Gate, chosen: Mapping[Index, str]) -> int | None:
    """The number of the clause that holds at the given ports: of those that match, the one that pins most."""
    best: int | None = None
    for number, clause in enumerate(gate.clauses):
        matches = all(chosen.get(index) == port for index, port in clause.ports)
        if matches and (best is None or len(clause.ports) > len(gate.clauses[best].ports)):
            best = number
    return best
