"""Expressions and scans put together by hand, in few words, and the numbers that their gates take."""

from __future__ import annotations

import re

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import leaf_shape, query_shape, value_shape
from stmlang.oracle.gates import Evaluator
from stmlang.scan.expression import (
    INDICES,
    Apply,
    Bind,
    Expr,
    Eye,
    Function,
    GateRef,
    Index,
    InputRef,
    LeafRef,
    Normalize,
    Number,
    Power,
    Product,
    Reduce,
    Split,
    Sum,
)
from stmlang.scan.scan import Clause, Direction, Gate, Leaf, Mode, Scan
from stmlang.scan.topology import Topology, ports
from tests.helpers.scans import NOWHERE

STATE_ENDS: dict[str, Index] = {"q": "key", "k": "key", "v": "value"}


def num(value: float) -> Expr:
    return Number(float(value), NOWHERE)


def _expr(value: Expr | float) -> Expr:
    return num(value) if isinstance(value, int | float) else value


def f(name: str, *arguments: Expr | float) -> Expr:
    return Apply(Function(name), tuple(_expr(argument) for argument in arguments), NOWHERE)


def add(*terms: Expr | float) -> Expr:
    return Sum(tuple((False, _expr(term)) for term in terms), NOWHERE)


def sub(first: Expr | float, *terms: Expr | float) -> Expr:
    return Sum(((False, _expr(first)), *((True, _expr(term)) for term in terms)), NOWHERE)


def neg(term: Expr) -> Expr:
    return Sum(((True, term),), NOWHERE)


def mul(*factors: Expr | float) -> Expr:
    return Product(tuple((False, _expr(factor)) for factor in factors), NOWHERE)


def div(first: Expr | float, second: Expr | float) -> Expr:
    return Product(((False, _expr(first)), (True, _expr(second))), NOWHERE)


def pow_(base: Expr | float, exponent: Expr | float) -> Expr:
    return Power(_expr(base), _expr(exponent), NOWHERE)


def reduce_(kind: str, over: Index, argument: Expr) -> Expr:
    return Reduce(kind, over, argument, NOWHERE)


def norm(kind: str, over: Index, argument: Expr) -> Expr:
    return Normalize(kind, over, argument, NOWHERE)


def split(*arguments: Expr | float) -> Expr:
    return Split(tuple(_expr(argument) for argument in arguments), NOWHERE)


def eye(axis: str = "key") -> Expr:
    return Eye(axis, axis + "'", NOWHERE)


def leaf(name: str, *indices: Index) -> Expr:
    return LeafRef(name, indices, NOWHERE)


def read(name: str, *bind: tuple[Index, Index | str]) -> Expr:
    """A reference to a gate: (declared, new name) pairs, a new name that is no index being a port."""
    entries = tuple(Bind(old, new) if new in INDICES else Bind(old, None, new) for old, new in bind)
    return GateRef(name, entries, NOWHERE)


def given(name: str, index: Index | None = None) -> Expr:
    """`q`, `k` or `v` as the layer gives them."""
    return InputRef(name, (Bind(STATE_ENDS[name], index or STATE_ENDS[name]),), NOWHERE)


ONE = num(1)
PLAIN: dict[str, tuple[Index, ...]] = {"source": ("out",), "transition": ("out", "in"), "mark": ("in",), "direct": ()}


def make_scan(
    topology: Topology,
    equations: dict[str, Expr | float],
    *,
    mode: Mode = Mode.AUTO,
    directions: tuple[Direction, ...] | None = None,
    leaves: dict[str, tuple[float, float]] | None = None,
    params: tuple[str, ...] = (),
    sizes: tuple[int, int, int] = (2, 3, 1),
) -> Scan:
    """A scan from equations `"name[out, in=port]": value`; gates that are not given are one. Leaves are found by their use:
    given without bounds, with those in `leaves`, or learned constants."""
    clauses: dict[str, list[Clause]] = {}
    indices: dict[str, tuple[Index, ...]] = {}
    for text, value in equations.items():
        name, inside = re.fullmatch(r"([\w.]+)(?:\[(.*)\])?", text).groups()
        entries = [entry.strip() for entry in (inside or "").split(",") if entry.strip()]
        indices.setdefault(name, tuple(entry.split("=")[0] for entry in entries))
        pinned = tuple(tuple(entry.split("=")) for entry in entries if "=" in entry)
        clauses.setdefault(name, []).append(Clause(pinned, _expr(value)))
    for name, wanted in PLAIN.items():
        if name not in clauses:
            clauses[name], indices[name] = [Clause((), ONE)], wanted
    gates = tuple(Gate(name, indices[name], tuple(found), True, NOWHERE) for name, found in clauses.items())
    used: dict[str, tuple[Index, ...]] = {}
    for gate in gates:
        for clause in gate.clauses:
            _find_leaves(clause.value, used)
    bounds = leaves or {}
    made = tuple(
        Leaf(
            name,
            "param" if name in params else "given",
            wanted,
            True,
            low=bounds.get(name, (-np.inf,))[0],
            high=bounds.get(name, (np.inf,))[-1],
        )
        for name, wanted in used.items()
    )
    directions = directions or (Direction((1,) * len(ports(topology))),)
    key, value, track = sizes
    return Scan("test", topology, 1, key, value, track, gates, made, directions, "sum", mode, "none", NOWHERE)


def _find_leaves(expr: Expr, used: dict[str, tuple[Index, ...]]) -> None:
    from stmlang.scan.expression import children

    if isinstance(expr, LeafRef):
        used[expr.leaf] = expr.indices
    for part in children(expr):
        _find_leaves(part, used)


def sample(scan: Scan, dag: DAG, rng: np.random.Generator, values: np.ndarray | None = None) -> list[Evaluator]:
    """The gates of each direction for random inputs and leaves, drawn from `values` where it is given."""

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        return rng.normal(size=shape) if values is None else rng.choice(values, size=shape)

    inputs = {name: draw(shape(scan, dag)) for name, shape in (("q", query_shape), ("k", query_shape), ("v", value_shape))}
    inputs = {name: array.reshape(dag.node_count, *array.shape[len(dag.node_shape) :]) for name, array in inputs.items()}
    leaves = {entry.name: draw(leaf_shape(scan, dag, entry)) for entry in scan.leaves}
    return evaluate(scan, dag, inputs, leaves)


def evaluate(scan: Scan, dag: DAG, inputs: dict[str, np.ndarray], leaves: dict[str, np.ndarray]) -> list[Evaluator]:
    """Each direction's evaluator after it has run; `.gates` holds the values."""
    found = [Evaluator(scan, dag, number, inputs, leaves) for number in range(len(scan.directions))]
    with np.errstate(all="ignore"):
        for evaluator in found:
            evaluator.run()
    return found
