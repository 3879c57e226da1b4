"""What holds of every checked scan, stated as assertions."""

from __future__ import annotations

from itertools import product
from math import isfinite

from stmlang.check.vocabulary import ALLOWED, CORE, INPUTS
from stmlang.scan.expression import (
    PORT_INDICES,
    Degree,
    Expr,
    Eye,
    GateRef,
    InputRef,
    LeafRef,
    LineMask,
    Neighbour,
    Normalize,
    Number,
    Reduce,
    Spectral,
    Split,
    Stack,
    free_indices,
    inside,
)
from stmlang.scan.scan import Clause, Gate, Scan, own_inputs
from stmlang.scan.topology import Product, Regular, is_regular, ports


def verify(scan: Scan) -> None:
    """Assert the invariants of `Scan`. An AssertionError is a fault of the compiler, never of the spec."""
    _topology(scan)
    _directions(scan)
    names = [gate.name for gate in scan.gates]
    assert len(set(names)) == len(names), "gate names are distinct"
    assert set(CORE) <= set(names), "the four gates of the recurrence are there"
    leaves = [leaf.name for leaf in scan.leaves]
    assert len(set(leaves)) == len(leaves), "leaf names are distinct"
    assert min(scan.heads, scan.key, scan.value, scan.track, scan.writes, scan.reads) >= 1, "sizes are positive"
    tracked = any(index in ("track", "track'") for gate in scan.gates for index in gate.indices)
    assert scan.track == 1 or tracked, "a scan without the index `track` has one track"
    earlier: dict[str, Gate] = {}
    used: set[str] = set()
    for gate in scan.gates:
        _gate(scan, gate, earlier, used)
        earlier[gate.name] = gate
    assert used == set(leaves), "the leaves are those that the gates refer to"
    for leaf in scan.leaves:
        assert leaf.low <= leaf.high
        assert leaf.weight >= 0
        assert (leaf.kind == "linear") == bool(leaf.features)
        for feature in leaf.features:
            assert feature.index is None or (feature.index in leaf.indices and not is_regular(scan.topology))


def _topology(scan: Scan) -> None:
    names = [port.name for port in ports(scan.topology)]
    assert len(set(names)) == len(names), "port names are distinct"
    if isinstance(scan.topology, Product):
        factors = scan.topology.factors
        assert sum(isinstance(factor, Regular) for factor in factors) <= 1, "regular factors are one"
        assert any(not isinstance(factor, Regular) for factor in factors), "a product has a factor that is not regular"


def _directions(scan: Scan) -> None:
    count = len(ports(scan.topology))
    assert scan.directions, "there is a direction"
    assert len(set(scan.directions)) == len(scan.directions), "directions are distinct"
    assert scan.own == tuple(name for name in INPUTS if name in scan.own), "own inputs stand in the order of inputs"
    for direction in scan.directions:
        assert len(direction.senses) == count
        assert set(direction.senses) <= {-1, 1}
        assert is_regular(scan.topology) or len(set(direction.senses)) == 1, "ragged topologies turn as a whole"


def _gate(scan: Scan, gate: Gate, earlier: dict[str, Gate], used: set[str]) -> None:
    assert set(gate.indices) <= set(ALLOWED.get(gate.name, gate.indices)), "core gates have the indices they may have"
    for clause in gate.clauses:
        _clause(scan, gate, clause, earlier, used)
    below = any(_directional_below(scan, clause.value, earlier) for clause in gate.clauses)
    assert gate.directional == below, "a gate is directional exactly if a leaf or input below it is, or if it counts edges"
    shared = set(INPUTS) - set(scan.own)
    assert not (gate.name in shared and gate.directional), "directions share the inputs that are not their own"
    _coverage(scan, gate)


def _clause(scan: Scan, gate: Gate, clause: Clause, earlier: dict[str, Gate], used: set[str]) -> None:
    pinned = [index for index, _ in clause.ports]
    assert pinned == [index for index in gate.indices if index in pinned], "pins stand in the order of the indices"
    assert set(pinned) <= set(PORT_INDICES)
    assert set(free_indices(clause.value)) <= set(gate.indices) - set(pinned), "nothing is free that the left side lacks"
    for expr in inside(clause.value):
        _expr(scan, expr, earlier, used)


def _expr(scan: Scan, expr: Expr, earlier: dict[str, Gate], used: set[str]) -> None:
    match expr:
        case GateRef(gate=name, bind=bind):
            assert name in earlier, "references are to earlier gates"
            assert tuple(entry.declared for entry in bind) == earlier[name].indices
            free = [entry.index for entry in bind if entry.index is not None]
            assert len(set(free)) == len(free), "no diagonal"
            dense = {port.name for port in ports(scan.topology) if not port.ragged}
            assert all((entry.index is None) == (entry.port is not None or entry.place is not None) for entry in bind)
            assert all(entry.place is None or entry.declared not in PORT_INDICES for entry in bind)
            assert all(entry.port in dense for entry in bind if entry.port is not None)
        case InputRef(name=name, bind=bind):
            term, size = ("read", scan.reads) if name == "q" else ("write", scan.writes)
            own = ("value" if name == "v" else "key",)
            assert tuple(entry.declared for entry in bind) in ({(term, *own)} if size > 1 else {own, (term, *own)})
        case LeafRef(leaf=name, indices=indices):
            assert scan.leaf(name).indices == indices
            used.add(name)
        case Reduce(over=over, argument=argument) | Normalize(over=over, argument=argument):
            assert over in free_indices(argument)
        case Split(arguments=arguments):
            assert len(arguments) == len(ports(scan.topology)) - 1
            assert is_regular(scan.topology)
            assert all("out" not in free_indices(argument) for argument in arguments)
        case Number(value=value):
            assert isinstance(value, float), "numbers are floating point, sizes included"
            assert isfinite(value)
        case Eye(first=first, second=second):
            assert first != second
            assert first.rstrip("'") == second.rstrip("'")
        case Stack(index=index, entries=entries, rest=rest):
            places = [place for place, _ in entries]
            assert len(set(places)) == len(places), "each position has one entry"
            size = {"key": scan.key, "value": scan.value, "track": scan.track}[index.rstrip("'")]
            assert all(0 <= place < size for place in places)
            assert (rest is None) == (len(places) == size), "the rest is what has no entry"
        case Spectral(pairs=pairs):
            assert pairs, "a matrix has an axis"
        case LineMask() | Degree():
            assert not is_regular(scan.topology)
        case _:
            pass


def _directional_below(scan: Scan, value: Expr, earlier: dict[str, Gate]) -> bool:
    return any(
        (isinstance(expr, GateRef) and earlier[expr.gate].directional)
        or (isinstance(expr, LeafRef) and scan.leaf(expr.leaf).directional)
        or (isinstance(expr, InputRef) and expr.name in own_inputs(scan))
        or (isinstance(expr, Degree | Neighbour) and len(scan.directions) > 1)
        for expr in inside(value)
    )


def _coverage(scan: Scan, gate: Gate) -> None:
    """For each choice of ports exactly one clause holds, and every clause holds somewhere."""
    over = [index for index in gate.indices if index in PORT_INDICES]
    holding: set[int] = set()
    for choice in product([port.name for port in ports(scan.topology)], repeat=len(over)):
        chosen = dict(zip(over, choice, strict=True))
        matching = [k for k, clause in enumerate(gate.clauses) if all(chosen[i] == port for i, port in clause.ports)]
        most = max((len(gate.clauses[k].ports) for k in matching), default=-1)
        best = [k for k in matching if len(gate.clauses[k].ports) == most]
        assert len(best) == 1, "one clause holds"
        holding.update(best)
    assert len(holding) == len(gate.clauses), "every clause holds somewhere"
