"""Port classes: facts that differ from port to port are arrays over pairs of them.

Such an array has shape `(out, in)`; an axis along which the fact is the same has length one, so that facts broadcast as the
values they speak of do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, assert_never

import numpy as np
import numpy.typing as npt

from stmlang.graph.dag import DAG, OPEN
from stmlang.scan.expression import Bind, Index
from stmlang.scan.scan import Gate, Scan
from stmlang.scan.topology import CompleteTree, FromFile, Product, Regular, Runtime, Static, Topology, ports

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, eq=False)
class PortClasses:
    """The ports of a scan. `ragged[p]`: a node may have any number of edges of port `p`, else exactly one each way.

    `leaving[p]`, `entering[p]`: the largest number of edges that leave (enter) a node in any direction of the scan, infinite
    where nothing is known.
    """

    names: tuple[str, ...]
    ragged: Bools
    leaving: Floats
    entering: Floats

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def regular(self) -> bool:
        return not bool(self.ragged.any())

    @property
    def single(self) -> bool:
        """Whether a node has exactly one edge in and one out: a chain."""
        return self.count == 1 and self.regular

    def edges(self, index: Index) -> Floats:
        """The largest number of edges that a port index can range over, class by class."""
        return self.leaving if index == "out" else self.entering

    def along(self, array: npt.NDArray[Scalar], axis: int) -> npt.NDArray[Scalar]:
        """An array with the axis at full length."""
        shape = list(array.shape)
        shape[axis] = self.count
        return np.broadcast_to(array, shape)

    def holding(self, gate: Gate) -> Ints:
        """Which clause of a gate holds at each pair of ports, by number: of those that match, the one that pins most."""
        pinned = {index for clause in gate.clauses for index, _ in clause.ports}
        result = np.full((self.count if "out" in pinned else 1, self.count if "in" in pinned else 1), -1, np.int64)
        for number in sorted(range(len(gate.clauses)), key=lambda number: len(gate.clauses[number].ports)):
            place: list[int | slice] = [slice(None), slice(None)]
            for index, port in gate.clauses[number].ports:
                place[0 if index == "out" else 1] = self.names.index(port)
            result[tuple(place)] = number
        return result

    def assemble(self, gate: Gate, values: Sequence[npt.NDArray[Scalar]]) -> npt.NDArray[Scalar]:
        """A gate's array out of its clauses' arrays."""
        if len(values) == 1:
            return values[0]
        holding = self.holding(gate)
        result: npt.NDArray[Any] = values[0]
        for number, value in enumerate(values):
            result = np.where(holding == number, value, result)
        return result

    def rebind(self, array: npt.NDArray[Scalar], bind: tuple[Bind, ...]) -> npt.NDArray[Scalar]:
        """A gate's array as a reference to it sees it: port indices renamed or pinned."""
        ranges: dict[Index | None, Ints] = {"out": np.arange(self.count)[:, None], "in": np.arange(self.count)[None, :]}
        chosen: list[Ints] = [np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64)]
        for entry in bind:
            if entry.declared in ("out", "in"):
                axis = 0 if entry.declared == "out" else 1
                if array.shape[axis] > 1:
                    fixed = np.full((1, 1), 0 if entry.port is None else self.names.index(entry.port), np.int64)
                    chosen[axis] = ranges.get(entry.index, fixed)
        return array[chosen[0], chosen[1]]


def port_classes(scan: Scan, dag: DAG | None) -> PortClasses:
    """The port classes of a scan; degrees are read off the graph where it is given."""
    all_ports = ports(scan.topology)
    ragged = np.array([port.ragged for port in all_ports], dtype=np.bool_)
    forward, backward = _degrees(scan.topology)
    if dag is not None:
        forward = np.minimum(forward, [_largest(dag.tail, dag.port == number) for number in range(len(all_ports))])
        backward = np.minimum(backward, [_largest(dag.head, dag.port == number) for number in range(len(all_ports))])
    leaving, entering = np.zeros(len(all_ports)), np.zeros(len(all_ports))
    for direction in scan.directions:
        along = np.array(direction.senses) > 0
        leaving = np.maximum(leaving, np.where(along, forward, backward))
        entering = np.maximum(entering, np.where(along, backward, forward))
    ones = np.ones(len(all_ports))
    return PortClasses(
        tuple(port.name for port in all_ports), ragged, np.where(ragged, leaving, ones), np.where(ragged, entering, ones)
    )


def _largest(ends: Ints, chosen: Bools) -> float:
    """The largest number of chosen edges that share an end."""
    nodes = ends[chosen & (ends != OPEN)]
    return float(np.bincount(nodes).max()) if len(nodes) else 0.0


def _degrees(topology: Topology) -> tuple[Floats, Floats]:
    """For each port the largest number of edges that leave and that enter a node along the declared sense, by kind alone."""
    unknown = np.full(1, np.inf)
    match topology:
        case Regular(axes=axes):
            return np.ones(len(axes)), np.ones(len(axes))
        case CompleteTree(arity=arity):
            return np.ones(1), np.full(1, float("inf") if arity is None else float(arity))
        case Static(tree=tree) | FromFile(tree=tree) | Runtime(tree=tree):
            return (np.ones(1) if tree else unknown), unknown
        case Product(factors=factors):
            pairs = [_degrees(factor) for factor in factors]
            return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])
        case _:
            assert_never(topology)
