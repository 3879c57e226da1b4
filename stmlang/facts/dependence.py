"""What each gate depends on: indices along which it varies, leaves and inputs below it, and whether the node matters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import assert_never

from stmlang.facts.classes import PortClasses
from stmlang.facts.walk import Analysis
from stmlang.facts.zeros import Zeros
from stmlang.scan.expression import (
    PORT_INDICES,
    Apply,
    Bind,
    Degree,
    Expr,
    Eye,
    Finite,
    GateRef,
    Index,
    InputRef,
    LeafRef,
    LineMask,
    Neighbour,
    Normalize,
    Number,
    Power,
    Product,
    Reduce,
    Spectral,
    Split,
    Spread,
    Stack,
    Sum,
)
from stmlang.scan.scan import Gate, Leaf, Scan


@dataclass(frozen=True, slots=True)
class Depends:
    """What a value may depend on; whatever is not in here it does not depend on (but for the sign of a structural zero).

    `varies`: its indices, without those along which it is the same. `inputs`: those of `q`, `k`, `v` (as given to the layer)
    and of the features `x`, `e` of learned maps. `leaf_bits`: bit n for the scan's n-th leaf. `graph`: whether a node's place
    or degree matters by itself. `nodes`: whether the value may differ between nodes at all.
    """

    varies: frozenset[Index] = frozenset()
    inputs: frozenset[str] = frozenset()
    leaf_bits: int = 0
    graph: bool = False
    nodes: bool = False


NOTHING = Depends()
GRAPH = Depends(frozenset(PORT_INDICES), graph=True, nodes=True)


def union(operands: list[Depends]) -> Depends:
    """All that several values depend on together."""
    return Depends(
        frozenset[Index]().union(*(operand.varies for operand in operands)),
        frozenset[str]().union(*(operand.inputs for operand in operands)),
        reduce(int.__or__, (operand.leaf_bits for operand in operands), 0),
        any(operand.graph for operand in operands),
        any(operand.nodes for operand in operands),
    )


class Dependence(Analysis[Depends]):
    """`gates[name]` for gates, `of(clause.value)` for single clauses."""

    def __init__(self, scan: Scan, classes: PortClasses, zeros: Zeros) -> None:
        super().__init__(scan, classes)
        self.zeros = zeros
        self.numbers: dict[str, int] = {leaf.name: number for number, leaf in enumerate(scan.leaves)}
        self.run()

    def leaves(self, depends: Depends) -> tuple[Leaf, ...]:
        """The leaves below a value, in the scan's order."""
        return tuple(leaf for number, leaf in enumerate(self.scan.leaves) if depends.leaf_bits >> number & 1)

    def directional(self, depends: Depends) -> bool:
        """Whether a value may differ between the directions of the scan by more than their graphs do."""
        return len(self.scan.directions) > 1 and any(leaf.directional for leaf in self.leaves(depends))

    @property
    def constant(self) -> bool:
        """Whether source, transition and mark are the same at every node: then the gating matrix depends on where a target
        lies from its source, and not on where both are."""
        return not any(self.gates[name].nodes for name in ("source", "transition", "mark"))

    def gate(self, gate: Gate, values: list[Depends]) -> Depends:
        """The union of the clauses that hold somewhere, and the indices that choose between them."""
        if len(values) == 1:
            return values[0]
        holding = self.classes.holding(gate)
        together = union([value for number, value in enumerate(values) if (holding == number).any()])
        varies = set(together.varies)
        for axis, index in enumerate(PORT_INDICES):
            if (holding != holding.take([0], axis=axis)).any():
                varies.add(index)
        return Depends(frozenset(varies), together.inputs, together.leaf_bits, together.graph, together.nodes)

    def rule(self, expr: Expr, operands: tuple[Depends, ...]) -> Depends:
        if self.zeros.everywhere(expr):
            return NOTHING
        depends = self.structural(expr, operands)
        if self.classes.single and not depends.varies.isdisjoint(PORT_INDICES):
            return Depends(depends.varies - set(PORT_INDICES), depends.inputs, depends.leaf_bits, depends.graph, depends.nodes)
        return depends

    def structural(self, expr: Expr, operands: tuple[Depends, ...]) -> Depends:
        match expr:
            case Number() | Spread():
                return NOTHING
            case LeafRef(leaf=name, indices=indices):
                leaf = self.scan.leaves[self.numbers[name]]
                features = frozenset(feature.name for feature in leaf.features)
                nodes = leaf.kind != "param" or leaf.stepped
                return Depends(frozenset(indices), features, 1 << self.numbers[name], False, nodes)
            case InputRef(name=name, bind=bind):
                varies = frozenset[Index](entry.index for entry in bind if entry.index is not None)
                return Depends(varies, frozenset({name}), nodes=True)
            case GateRef(gate=name, bind=bind):
                return _renamed(self.gates[name], bind)
            case Apply() | Sum() | Product() | Power() | Finite():
                return union(list(operands))
            case Reduce(over=over) | Normalize(over=over):
                return self.along(operands[0], over, rescales=isinstance(expr, Normalize))
            case Spectral():
                depends = operands[0]
                return Depends(depends.varies - expr.indices, depends.inputs, depends.leaf_bits, depends.graph, depends.nodes)
            case Stack(index=index):
                return union([Depends(frozenset({index})), *operands])
            case Split():
                return union([Depends(frozenset({"out"})), *operands])
            case Eye(first=first, second=second):
                return Depends(frozenset({first, second}))
            case Degree():
                return Depends(graph=True, nodes=True)
            case Neighbour(over=over):
                return Depends(frozenset({over}), graph=True, nodes=True)
            case LineMask():
                return GRAPH
            case _:
                assert_never(expr)

    def along(self, operand: Depends, over: Index, rescales: bool) -> Depends:
        """A reduction forgets its index. Over the ragged edges of a node the number of terms matters too. A rescaling by
        what does not vary along its index does not either."""
        varies = operand.varies if rescales else operand.varies - {over}
        degree = over in PORT_INDICES and not self.classes.regular
        return Depends(varies, operand.inputs, operand.leaf_bits, operand.graph or degree, operand.nodes or degree)


def _renamed(depends: Depends, bind: tuple[Bind, ...]) -> Depends:
    names: dict[Index, Index | None] = {entry.declared: entry.index for entry in bind}
    varies = frozenset[Index](name for index in depends.varies if (name := names.get(index, index)) is not None)
    return Depends(varies, depends.inputs, depends.leaf_bits, depends.graph, depends.nodes)
