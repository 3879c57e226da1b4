"""Facts about expressions, from the inside out and gate by gate, without recursion.

An expression may be nested deeper than Python recurses and a scan may chain thousands of gates; so a fact about an expression
is computed from the facts about its parts with a stack, and a reference to a gate looks up what is known of that gate, which
came earlier in the scan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np

from stmlang.facts.classes import PortClasses
from stmlang.scan.expression import Expr
from stmlang.scan.fold import fold
from stmlang.scan.scan import Gate, Scan

Fact = TypeVar("Fact")


class Analysis(ABC, Generic[Fact]):
    """One kind of fact about every expression (`of`) and every gate (`gates`) of a scan."""

    def __init__(self, scan: Scan, classes: PortClasses) -> None:
        self.scan = scan
        self.classes = classes
        self.gates: dict[str, Fact] = {}
        self._known: dict[int, tuple[Expr, Fact]] = {}

    def run(self) -> None:
        """Fill `gates`. Called once, at the end of a subclass's constructor."""
        with np.errstate(all="ignore"):
            for gate in self.scan.gates:
                self.gates[gate.name] = self.gate(gate, [self.of(clause.value) for clause in gate.clauses])

    def of(self, expr: Expr) -> Fact:
        """The fact about an expression over the scan's gates and leaves, whether or not the scan holds it."""
        known = self._known.get(id(expr))
        if known is not None:
            return known[1]
        with np.errstate(all="ignore"):
            return fold(expr, self.rule, self._known)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is remembered of expressions by identity, which a copy of them does not have."""
        return {**self.__dict__, "_known": {}}

    @abstractmethod
    def rule(self, expr: Expr, operands: tuple[Fact, ...]) -> Fact:
        """The fact about an expression, given those about `children(expr)`."""

    @abstractmethod
    def gate(self, gate: Gate, values: list[Fact]) -> Fact:
        """The fact about a gate, given those about its clauses' values."""
