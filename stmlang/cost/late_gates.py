"""The gates of a recurrence cut in two: what is evaluated for all nodes at once, and what a node evaluates for itself.

A transition `exp(-rate[key, value] * step[value])` has as many numbers at a node as the state. Made for all nodes, these would
be most of what a sweep reads, and training would hold them and their cotangents. Its parts are few: `step` is evaluated for all
nodes, `rate` once, and their product and its exponential at the node that uses them, while they are in cache.

On a regular topology every gate is local: it depends on what its own node holds. So any equation can be cut anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from stmlang.cost.problem import Problem
from stmlang.facts.factored import Factored, factored_value
from stmlang.facts.overwriting import is_key
from stmlang.facts.rewrite import small
from stmlang.facts.terms import PAIRS
from stmlang.scan.clauses import clause_for
from stmlang.scan.expression import (
    PORT_INDICES,
    Apply,
    Expr,
    GateRef,
    Index,
    InputRef,
    LeafRef,
    Neighbour,
    Number,
    Power,
    Product,
    Sum,
    children,
    free_indices,
    inside,
)
from stmlang.scan.scan import Gate, adds_direct_once
from stmlang.scan.topology import ports

WORTH = 2
"""An expression is left to the nodes where it has so many times the numbers of all that it is made of; one that is as large as
the state already where it has as many, since it is used within one loop over the state."""


@dataclass(frozen=True, slots=True)
class Erasing:
    """A gate that is never made as a matrix, `scale * (eye - strength * u u^T)` on the state axis `index`: `u` has that index,
    `strength` none of a state and `scale` none of this axis, where it may act elementwise on the others. `scale` is None where
    it is one, `u` where it is the key that values are written under."""

    index: Index
    scale: Expr | None
    strength: Expr
    u: Expr | None

    @property
    def values(self) -> tuple[Expr, ...]:
        return tuple(expr for expr in (self.scale, self.strength, self.u) if expr is not None)


Written = Expr | None
"""What a source or the direct gate is at a port, as in `AtPort`."""
AtPort = Expr | Erasing | None
"""What a gate is where a port is still to be picked of its free indices; None where it is zero by the equations."""


@dataclass(frozen=True)
class LateGates:
    """The gates of a recurrence on a regular topology, port by port, as expressions that refer to numbers and leaves alone.

    The leaves are values by name: `early` ones, expressions of the scan that are evaluated for all nodes, `held` numbers for
    each head and direction, and `late` ones, evaluated at the node, which refer to those before them. The direct gate is there
    if it can be added in each direction (`adds_direct`): not where directions are summed that share it, since it counts once,
    and not with tracks, which it has none of."""

    early: Mapping[str, Expr]
    late: Mapping[str, Expr]
    held: int
    source: tuple[Written, ...]
    transition: tuple[tuple[AtPort, ...], ...]
    mark: tuple[AtPort, ...]
    direct: Written
    adds_direct: bool

    @property
    def distinct(self) -> tuple[Expr, ...]:
        """The gates' expressions, each once, of those that erase the ones that they are made of."""
        return _distinct([*self.source, *(gate for row in self.transition for gate in row), *self.mark, self.direct])


def _distinct(gates: Iterable[AtPort]) -> tuple[Expr, ...]:
    def values(gate: AtPort) -> tuple[Expr, ...]:
        return gate.values if isinstance(gate, Erasing) else () if gate is None else (gate,)

    return tuple(dict.fromkeys(expr for gate in gates for expr in values(gate)))


def late_gates(problem: Problem) -> LateGates:
    """The cut by which few numbers are held: see `WORTH`."""
    scan, cutter = problem.scan, _Cutter(problem)
    names = [port.name for port in ports(scan.topology)]
    every = range(len(names))

    def clause(name: str, chosen: Mapping[Index, int]) -> tuple[Gate, int] | None:
        gate = scan.gate(name)
        number = clause_for(gate, {index: names[port] for index, port in chosen.items()})
        assert number is not None
        value = gate.clauses[number].value
        return None if isinstance(value, Number) and value.value == 0 else (gate, number)

    def written(name: str, chosen: Mapping[Index, int]) -> Written:
        entry = clause(name, chosen)
        return None if entry is None else cutter.clause(*entry)

    def applied(name: str, chosen: Mapping[Index, int]) -> AtPort:
        entry = clause(name, chosen)
        return None if entry is None else cutter.erasing(*entry) or cutter.clause(*entry)

    def turn(out: int, into: int) -> AtPort:
        facts = problem.facts
        allowed = facts is None or bool(facts.bounds.allowed[out, into])
        return applied("transition", {"out": out, "in": into}) if allowed else None

    source = tuple(written("source", {"out": port}) for port in every)
    mark = tuple(applied("mark", {"in": port}) for port in every)
    transition = tuple(tuple(turn(out, into) for into in every) for out in every)
    adds_direct = scan.track == 1 and (len(scan.directions) == 1 or not adds_direct_once(scan))
    direct = written("direct", {}) if adds_direct else None
    early, late = cutter.used(_distinct([*source, *(gate for row in transition for gate in row), *mark, direct]))
    held = sum(map(cutter.numbers, early.values()))
    return LateGates(early, late, held, source, transition, mark, direct, adds_direct)


@dataclass
class _Cutter:
    """Cuts expressions. `names` are those of the values that it has cut off, `late` holds what gates are at a node. What is
    known of expressions is kept by identity, those of the scan and of the forms; gates are looked at in the order of their
    dependence, so that nothing follows a reference."""

    problem: Problem
    names: dict[Expr, str] = field(default_factory=dict[Expr, str])
    late: dict[str, Expr] = field(default_factory=dict[str, Expr])
    _gates: dict[str, Expr] = field(default_factory=dict[str, Expr])
    _fewest: dict[int, int] = field(default_factory=dict[int, int])
    _varying: dict[int, bool] = field(default_factory=dict[int, bool])
    _forms: dict[tuple[str, int], Factored | None] = field(default_factory=dict[tuple[str, int], Factored | None])

    def __post_init__(self) -> None:
        for gate in self.problem.scan.gates:
            for clause in gate.clauses:
                self._least(clause.value)
            if _is_plain(gate):
                self._gates[gate.name] = self._named(gate)

    def erasing(self, gate: Gate, number: int) -> Erasing | None:
        """One of a gate's clauses by what it erases; None where it has another form."""
        form, key = self._form(gate, number), PAIRS[0][0]
        if form is None:
            return None
        scale = None if isinstance(form.scale, Number) and form.scale.value == 1 else self._cut(form.scale)
        u = None if form.pair[0] == key and is_key(self.problem.scan, form.u) else self._cut(form.u)
        return Erasing(form.pair[0], scale, self._cut(form.strength), u)

    def _form(self, gate: Gate, number: int) -> Factored | None:
        """A clause as a number on the diagonal and what is erased, where nothing else mixes the entries of a state."""
        if (gate.name, number) not in self._forms:
            value, known = gate.clauses[number].value, {other.name: other for other in self.problem.scan.gates}
            form = factored_value(value, known) if small(value) else None
            self._forms[gate.name, number] = None if form is None or not _erases(form) else form
        return self._forms[gate.name, number]

    def clause(self, gate: Gate, number: int) -> Expr:
        """One of a gate's clauses, as an expression."""
        return self._gates[gate.name] if gate.name in self._gates else self._cut(gate.clauses[number].value)

    def used(self, gates: Iterable[Expr]) -> tuple[dict[str, Expr], dict[str, Expr]]:
        """The early and the late values that some expressions rest on, in order."""
        early = {name: expr for expr, name in self.names.items()}
        reached, waiting = set[str](), list(gates)
        while waiting:
            for expr in inside(waiting.pop()):
                if isinstance(expr, LeafRef) and expr.leaf not in reached:
                    reached.add(expr.leaf)
                    waiting.extend([self.late[expr.leaf]] if expr.leaf in self.late else [])
        return (
            {name: early[name] for name in early if name in reached},
            {name: self.late[name] for name in self.late if name in reached},
        )

    def _named(self, gate: Gate) -> Expr:
        value = gate.clauses[0].value
        cut = self._cut(value)
        if isinstance(cut, LeafRef | Number):
            return cut
        self.late[f"late {gate.name}"] = cut
        return LeafRef(f"late {gate.name}", free_indices(value), value.span)

    def _cut(self, expr: Expr) -> Expr:
        """An expression with values in the places of what is evaluated early."""
        if isinstance(expr, Number):
            return expr
        gate = self._plainly(expr)
        if gate is not None:
            return self._gates[gate.name]
        if isinstance(expr, Apply | Sum | Product | Power) and self._is_late(expr):
            return _rebuilt(expr, self._cut)
        return LeafRef(self.names.setdefault(expr, f"early {len(self.names)}"), free_indices(expr), expr.span)

    def _plainly(self, expr: Expr) -> Gate | None:
        """The gate of a reference that renames and pins nothing, if it has one equation for all ports."""
        if not isinstance(expr, GateRef) or any(entry.index != entry.declared for entry in expr.bind):
            return None
        gate = self.problem.scan.gate(expr.gate)
        return gate if _is_plain(gate) else None

    def _is_late(self, expr: Expr) -> bool:
        worth = 1 if self._at_node(expr) >= self.problem.state else WORTH
        return self._varies(expr) and self.numbers(expr) >= worth * self._held(expr)

    def _held(self, expr: Expr) -> int:
        """Numbers that are evaluated early if this expression is not."""
        return sum(self._least(operand) for operand in dict.fromkeys(children(expr)))

    def _least(self, expr: Expr) -> int:
        """Numbers that are evaluated early of an expression, in the better of the two ways."""
        if id(expr) not in self._fewest:
            gate = self._plainly(expr)
            if isinstance(expr, Number):
                fewest = 0
            elif gate is not None:
                fewest = self._least(gate.clauses[0].value)
            elif isinstance(expr, Apply | Sum | Product | Power) and self._is_late(expr):
                fewest = self._held(expr)
            else:
                fewest = self.numbers(expr)
            self._fewest[id(expr)] = fewest
        return self._fewest[id(expr)]

    def numbers(self, expr: Expr) -> int:
        """Of a value, at all nodes, for a head and a direction."""
        return self._at_node(expr) * (self.problem.counts.nodes if self._varies(expr) else 1)

    def _at_node(self, expr: Expr) -> int:
        """The same at one node."""
        problem = self.problem
        sizes = {"key": problem.key, "value": problem.scan.value, "track": problem.track}
        ports = len(problem.axes or ())
        return prod(sizes.get(index.rstrip("'"), ports) for index in free_indices(expr))

    def _varies(self, expr: Expr) -> bool:
        """Whether a value may differ between nodes."""
        if id(expr) not in self._varying:
            self._varying[id(expr)] = self._own_variation(expr) or any(self._varies(operand) for operand in children(expr))
        return self._varying[id(expr)]

    def _own_variation(self, expr: Expr) -> bool:
        match expr:
            case InputRef() | Neighbour():
                return True
            case LeafRef(leaf=name):
                return self.problem.scan.leaf(name).kind != "param"
            case GateRef(gate=name):
                return any(self._varies(clause.value) for clause in self.problem.scan.gate(name).clauses)
            case _:
                return False


def _erases(form: Factored) -> bool:
    """Whether a form is all that mixes the entries of a state."""
    own = form.pair[0]
    elementwise = {pair[0] for pair in PAIRS} - {own}
    return (
        set(free_indices(form.scale)) <= {*PORT_INDICES, *elementwise}
        and set(free_indices(form.strength)) <= set(PORT_INDICES)
        and set(free_indices(form.u)) <= {*PORT_INDICES, own}
    )


def _is_plain(gate: Gate) -> bool:
    """Whether a gate has one equation for all ports."""
    return len(gate.clauses) == 1 and not gate.clauses[0].ports


def _rebuilt(expr: Apply | Sum | Product | Power, each: Callable[[Expr], Expr]) -> Expr:
    """An expression of other operands."""
    match expr:
        case Apply(arguments=arguments):
            return replace(expr, arguments=tuple(each(operand) for operand in arguments))
        case Sum(terms=terms):
            return replace(expr, terms=tuple((negative, each(operand)) for negative, operand in terms))
        case Product(factors=factors):
            return replace(expr, factors=tuple((inverted, each(operand)) for inverted, operand in factors))
        case Power(base=base, exponent=exponent):
            return replace(expr, base=each(base), exponent=each(exponent))
