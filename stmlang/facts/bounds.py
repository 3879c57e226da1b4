"""All analyses of a scan's gates together, in the order in which they build on each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stmlang.facts.classes import Bools, Floats, PortClasses, Scalar, port_classes
from stmlang.facts.dependence import Dependence
from stmlang.facts.intervals import Intervals
from stmlang.facts.lengths import Lengths
from stmlang.facts.operators import Operators, Pair
from stmlang.facts.simplex import Simplex
from stmlang.facts.zeros import Zeros
from stmlang.graph.dag import DAG
from stmlang.scan.scan import Scan
from stmlang.source import short

ROUNDING = 1e-12
"""How far beyond one a bound may lie and still count as one: bounds are computed in float64."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is known of the values of a scan's gates."""

    scan: Scan
    classes: PortClasses
    intervals: Intervals
    zeros: Zeros
    dependence: Dependence
    lengths: Lengths
    operators: Operators
    simplex: Simplex

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<Bounds of {self.scan.name}>"

    @classmethod
    def of(cls, scan: Scan, dag: DAG | None) -> Bounds:
        """Analyse a scan; the graph's degrees help where it is given."""
        classes = port_classes(scan, dag)
        intervals = Intervals(scan, classes)
        zeros = Zeros(scan, classes, intervals)
        dependence = Dependence(scan, classes, zeros)
        lengths = Lengths(scan, classes, intervals)
        operators = Operators(scan, classes, intervals, lengths)
        return cls(
            scan, classes, intervals, zeros, dependence, lengths, operators, Simplex(scan, classes, intervals, operators)
        )

    @property
    def pairs(self) -> frozenset[Pair]:
        """The state axes on which the transition is a matrix."""
        return self.operators.gates["transition"].pairs

    @property
    def allowed(self) -> Bools:
        """`[out, in]`: where the transition is not structurally zero."""
        return ~self._square(self.zeros.gates["transition"])

    @property
    def entries(self) -> Floats:
        """`[out, in]`: bounds on the norm of the transition's entries, zero where it is structurally zero."""
        return np.where(self.allowed, self._square(self.operators.gates["transition"].norm), 0.0)

    @property
    def columns(self) -> Floats:
        """`[in]`: bounds on the column sums of the transition."""
        total = self.simplex.gates["transition"].total
        return self.classes.along(total, 1)[0]

    def _square(self, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        return self.classes.along(self.classes.along(array, 0), 1)

    @property
    def small_entries(self) -> bool:
        return bool((self.entries <= 1 + ROUNDING).all())

    @property
    def small_columns(self) -> bool:
        return bool((self.columns <= 1 + ROUNDING).all())
