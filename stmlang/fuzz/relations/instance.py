"""A scan with its arguments, as relations rewrite them: the typed scan, its graph, and float64 arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from stmlang.compiler import Call, Request, plan, prepare
from stmlang.cost.settings import Config, freeze
from stmlang.fuzz.memory import remembered
from stmlang.fuzz.trial import NotApplicable, Way
from stmlang.graph.dag import DAG
from stmlang.oracle.derivative import Arguments
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.compiled import compiled as compiled_scan
from stmlang.scan.expression import PORT_INDICES, Expr, GateRef, InputRef, LineMask, Neighbour, inside
from stmlang.scan.scan import Leaf, Scan
from stmlang.source.diagnostic import SpecError
from stmlang.strategies.registry import stored_settings

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
State = tuple[dict[str, Floats], ...]


@dataclass(frozen=True, eq=False)
class Given:
    """The arguments of a call in float64: inputs `q`, `k`, `v`, leaves by name, and an initial state for each direction."""

    inputs: dict[str, Floats]
    leaves: dict[str, Floats]
    initial: State

    @property
    def tree(self) -> tuple[Any, ...]:
        """For `op(*tree)`."""
        return self.inputs["q"], self.inputs["k"], self.inputs["v"], self.leaves, self.initial

    @property
    def arguments(self) -> Arguments:
        """The same as the oracles take them."""
        return Arguments(*self.tree)


@dataclass(frozen=True, eq=False)
class Instance:
    """A stabilized scan on a graph, and what it is called with. Its mode is `none`: what it runs is what is written."""

    scan: Scan
    dag: DAG
    given: Given


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result `(*nodes, head, value)` and, for each direction and port, the states on the edges that leave."""

    h: Floats
    state: State


def given(arguments: Arguments) -> Given:
    """Arguments as arrays."""
    initial: State = tuple({port: _wide(array) for port, array in ports.items()} for ports in arguments.initial or ())
    inputs = {"q": _wide(arguments.q), "k": _wide(arguments.k), "v": _wide(arguments.v)}
    return Given(inputs, {name: _wide(array) for name, array in arguments.gates.items()}, initial)


def _wide(array: Any) -> Floats:
    return np.asarray(array, np.float64)


def compiled(scan: Scan, dag: DAG, way: Way) -> CompiledScan:
    """A rewritten scan compiled for a way, its settings fitted to the axes, or else for those that the strategy proposes. The
    last few are kept: every draw of a trial is rewritten in the same way.

    Raises NotApplicable where the strategy cannot evaluate it.
    """
    op = _compiled(scan, _Graph(_content(dag), dag), way.strategy, freeze(way.config))
    if op is None:
        raise NotApplicable(f"`{way.strategy}` cannot evaluate the rewritten scan")
    return op


@dataclass(frozen=True)
class _Graph:
    """A graph that equals those of the same content."""

    content: bytes
    dag: DAG = field(compare=False)


def _content(dag: DAG) -> bytes:
    shapes = repr((dag.node_shape, dag.ports, dag.regular, dag.names, dag.spare_line_edges)).encode()
    ends = (dag.tail, dag.head, dag.port)
    return b"|".join([shapes, *(array.tobytes() for array in ends), *map(_content, dag.parts)])


@remembered(16)
def _compiled(scan: Scan, graph: _Graph, strategy: str, config: Config) -> CompiledScan | None:
    prepared = prepare(scan, Call("float64"), graph=graph.dag)
    for settings in (stored_settings(strategy, dict(config)).resized(graph.dag.regular), None):
        try:
            chosen = plan(prepared, Request(strategy=strategy, settings=settings, tuned=False))
        except SpecError:
            continue
        return compiled_scan(prepared, chosen)
    return None


def outcome(computed: Any) -> Outcome:
    """What a call returned, as arrays of numpy."""
    h, state = cast("tuple[Any, tuple[dict[str, Any], ...]]", computed)
    return Outcome(_wide(h), tuple({port: _wide(array) for port, array in ports.items()} for ports in state))


# --- what a scan is made of


def port_indices(leaf: Leaf) -> tuple[str, ...]:
    """Which of `out` and `in` a leaf has, in the order of its axes."""
    return tuple(index for index in leaf.indices if index in PORT_INDICES)


def expressions(scan: Scan) -> Iterator[tuple[str, Expr]]:
    """All expressions of a scan, those inside of others too, with the name of their gate."""
    for gate in scan.gates:
        for expr in inside(*(clause.value for clause in gate.clauses)):
            yield gate.name, expr


def reads(scan: Scan, name: str) -> set[str]:
    """The gates whose equations read an input (`q`, `k` or `v`), as given or redefined."""
    names: set[str] = set()
    for gate, expr in expressions(scan):
        match expr:
            case InputRef(name=read) if read == name:
                names.add(gate)
            case GateRef(gate=read) if read == name:
                names.add(gate)
            case _:
                pass
    return names


def refuse_multitree(scan: Scan) -> None:
    """Raises NotApplicable for a scan that is run on a multitree of its line graph: which one depends on numbers of nodes."""
    if any(isinstance(expr, LineMask) for _, expr in expressions(scan)):
        raise NotApplicable("its transition is cut to a multitree, which another graph need not have")


def refuse_borders(scan: Scan) -> None:
    """Raises NotApplicable for a scan whose gates see where a graph ends: in another one it ends elsewhere."""
    if any(isinstance(expr, Neighbour) for _, expr in expressions(scan)):
        raise NotApplicable("its gates depend on where there are neighbours")


def single(instance: Instance, number: int) -> Instance:
    """One direction by itself."""
    scan = instance.scan
    if len(scan.directions) == 1:
        return instance
    leaves = {
        leaf.name: np.take(instance.given.leaves[leaf.name], number, direction_axis(instance.dag, leaf))
        if leaf.directional
        else instance.given.leaves[leaf.name]
        for leaf in scan.leaves
    }
    axis = len(instance.dag.node_shape) + 1
    inputs = {
        name: np.take(array, number, axis) if name in scan.own else array for name, array in instance.given.inputs.items()
    }
    alone = replace(scan, directions=(scan.directions[number],))
    return Instance(alone, instance.dag, Given(inputs, leaves, (instance.given.initial[number],)))


def direction_axis(dag: DAG, leaf: Leaf) -> int:
    """The axis of directions of a leaf that has one: behind the sites and the heads."""
    return site_rank(dag, leaf) + 1


def site_rank(dag: DAG, leaf: Leaf) -> int:
    """How many axes of a leaf's array are those of nodes, edges or line edges."""
    if leaf.kind == "param":
        return 0
    return len(dag.node_shape) if dag.regular is not None or not port_indices(leaf) else 1
