"""Rank-one transitions: `transition[out, in] = f[out] * g[in]`, with both factors as expressions.

With one the states of a node's edges collapse to a single state: `s = sum over in of g[in] C[in]` comes in, `f[out] s` leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stmlang.facts.classes import PortClasses
from stmlang.facts.dependence import Dependence
from stmlang.facts.factored import PAIRS
from stmlang.facts.operators import Operators
from stmlang.facts.rewrite import factors, product, refer, renamed, small
from stmlang.scan.expression import (
    PORT_INDICES,
    STATE_INDICES,
    Apply,
    Bind,
    Expr,
    Function,
    GateRef,
    Index,
    LeafRef,
    LineMask,
    Neighbour,
    Normalize,
    Number,
    Power,
    Product,
    Split,
    Sum,
)
from stmlang.scan.fold import fold, rebuilt
from stmlang.scan.scan import Gate, Scan

DEEPEST = 60
"""Factors are looked for no deeper than this in brackets."""


@dataclass(frozen=True, slots=True)
class RankOne:
    """`out_factor` does not have the index `in`, `in_factor` not `out`. What depends on neither is in `out_factor`. At most one
    of the two is a matrix on a state axis, and then the other has none of that matrix's indices."""

    out_factor: Expr
    in_factor: Expr


class Ranks:
    """`gates[name]` for `transition` and each gate that declares both `out` and `in`: its factors, None if none were found."""

    def __init__(self, scan: Scan, classes: PortClasses, dependence: Dependence, operators: Operators) -> None:
        self.classes = classes
        self.dependence = dependence
        self.operators = operators
        self.gates: dict[str, RankOne | None] = {}
        self._bare: dict[tuple[str, Index], Expr] = {}
        for gate in scan.gates:
            self._learn(gate)
            if gate.name == "transition" or {"out", "in"} <= set(gate.indices):
                rank_one = self.gate(gate)
                self.gates[gate.name] = rank_one if rank_one is None or self._one_matrix(gate, rank_one) else None

    def gate(self, gate: Gate) -> RankOne | None:
        """A gate that lacks one of the indices in truth, whatever its clauses; or one with a single equation that factors."""
        varies = self.dependence.gates[gate.name].varies
        unit = Number(1.0, gate.span)
        if "in" not in gate.indices:
            return RankOne(refer(gate, gate.span), unit)
        if "out" not in gate.indices:
            return RankOne(unit, refer(gate, gate.span))
        if self.classes.regular and "in" not in varies:
            return RankOne(self._pinned(gate, "in"), unit)
        if self.classes.regular and "out" not in varies:
            return RankOne(unit, self._pinned(gate, "out"))
        value = gate.clauses[0].value
        if len(gate.clauses) > 1 or not small(value):
            return None
        rank_one = self.factor(value, DEEPEST)
        return rank_one if rank_one is not None and small(rank_one.out_factor) and small(rank_one.in_factor) else None

    def _pinned(self, gate: Gate, index: Index) -> Expr:
        """The gate at the first port, for one that is the same at all."""
        first = self.classes.names[0]
        bind = tuple(Bind(own, None, first) if own == index else Bind(own, own) for own in gate.indices)
        return GateRef(gate.name, bind, gate.span)

    def _one_matrix(self, gate: Gate, rank_one: RankOne) -> bool:
        """Whether one factor at most has indices of the gate's matrix axes."""
        axes = {index for pair in PAIRS if set(pair) <= set(gate.indices) for index in pair}
        vectors = (rank_one.out_factor, rank_one.in_factor)
        return sum(not self.operators.of(vector).free.isdisjoint(axes) for vector in vectors) <= 1

    def factor(self, expr: Expr, depth: int) -> RankOne | None:
        """The factorisation of an expression, through products, signs, magnitudes, whole powers and references."""
        varies, unit = self.dependence.of(expr).varies, Number(1.0, expr.span)
        if self.dependence.zeros.everywhere(expr):
            return RankOne(Number(0.0, expr.span), unit)
        if "in" not in varies and (bare := self.without(expr, "in")) is not None:
            return RankOne(bare, unit)
        if "out" not in varies and (bare := self.without(expr, "out")) is not None:
            return RankOne(unit, bare)
        if depth == 0:
            return None
        match expr:
            case Product() | Sum(terms=((_, _),)):
                return self._product(expr, depth)
            case GateRef(gate=name):
                return self._referred(expr, self.gates.get(name))
            case Apply(function=Function.ABS as function, arguments=(inside,), span=span):
                rank_one = self.factor(inside, depth - 1)
                return rank_one and _both(rank_one, lambda vector: Apply(function, (vector,), span))
            case Power(base=base, exponent=Number(value=value) as exponent, span=span) if value.is_integer():
                rank_one = self.factor(base, depth - 1)
                return rank_one and _both(rank_one, lambda vector: Power(vector, exponent, span))
            case _:
                return None

    def _product(self, expr: Expr, depth: int) -> RankOne | None:
        negative, multiplied = factors(expr)
        outs, ins = list[tuple[bool, Expr]](), list[tuple[bool, Expr]]()
        for inverted, factor in multiplied:
            rank_one = self.factor(factor, depth - 1)
            if rank_one is None:
                return None
            outs.append((inverted, rank_one.out_factor))
            ins.append((inverted, rank_one.in_factor))
        return RankOne(product(negative, outs, expr.span), product(False, ins, expr.span))

    def _referred(self, expr: GateRef, rank_one: RankOne | None) -> RankOne | None:
        """A gate's factors seen through a reference that keeps its port indices."""
        if rank_one is None or any(entry.index != entry.declared for entry in expr.bind if entry.declared in ("out", "in")):
            return None
        names = _state_names(expr.bind)
        out_factor, in_factor = renamed(rank_one.out_factor, names), renamed(rank_one.in_factor, names)
        return None if out_factor is None or in_factor is None else RankOne(out_factor, in_factor)

    def without(self, expr: Expr, index: Index) -> Expr | None:
        """An expression that does not vary along a port index, written without it; None where that takes more than leaving out
        the index of references."""
        if not small(expr):
            return None

        def rule(expr: Expr, operands: tuple[Expr | None, ...]) -> Expr | None:
            if index not in self.operators.of(expr).free:
                return expr
            known = [operand for operand in operands if operand is not None]
            match expr:
                case GateRef():
                    return self._reference_without(expr, index)
                case LeafRef() | Neighbour() | LineMask() | Split():
                    return None
                case Normalize(over=over) if over == index:
                    return None
                case _:
                    return rebuilt(expr, tuple(known)) if len(known) == len(operands) else None

        return fold(expr, rule, {})

    def _reference_without(self, expr: GateRef, index: Index) -> Expr | None:
        """A reference pinned to the first port of a regular topology, or on another the gate's equation in its place."""
        declared: set[Index] = {entry.declared for entry in expr.bind if entry.index == index}
        if declared & self.dependence.gates[expr.gate].varies:
            return None
        if self.classes.regular:
            first = self.classes.names[0]
            bind = tuple(Bind(entry.declared, None, first) if entry.declared in declared else entry for entry in expr.bind)
            return GateRef(expr.gate, bind, expr.span)
        bare = self._bare.get((expr.gate, index))
        if bare is None or any(entry.index is None for entry in expr.bind):
            return None
        return renamed(bare, _state_names(expr.bind))

    def _learn(self, gate: Gate) -> None:
        """Remember a gate's equation without a port index that it declares and does not vary along."""
        if self.classes.regular or len(gate.clauses) != 1:
            return
        varies = self.dependence.gates[gate.name].varies
        for index in PORT_INDICES:
            bare = self.without(gate.clauses[0].value, index) if index in gate.indices and index not in varies else None
            if bare is not None and small(bare):
                self._bare[gate.name, index] = bare


def _state_names(bind: tuple[Bind, ...]) -> dict[Index, Index]:
    names: dict[Index, Index] = {}
    for entry in bind:
        if entry.index is not None and entry.declared in STATE_INDICES:
            names[entry.declared] = entry.index
    return names


def _both(rank_one: RankOne, wrap: Callable[[Expr], Expr]) -> RankOne:
    """The same function of both factors; of a one it is one."""
    vectors = [
        vector if isinstance(vector, Number) and vector.value == 1 else wrap(vector)
        for vector in (rank_one.out_factor, rank_one.in_factor)
    ]
    return RankOne(vectors[0], vectors[1])
