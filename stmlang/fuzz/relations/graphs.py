"""Rewritings of scans on trees, DAGs and products: nodes and edges renumbered, left out, turned around, put side by side.

Written with plain loops and numpy, and without the tables that the compiler makes of a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stmlang.fuzz.relations.instance import Floats, Given, Instance, Ints, Outcome, State, port_indices, site_rank
from stmlang.graph.dag import DAG, OPEN
from stmlang.scan.scan import Direction, Leaf, Scan


@dataclass(frozen=True, eq=False)
class Rewiring:
    """A graph made of another: `node` and `edge` are the numbers that its nodes and edges have in the old one, and where it is
    `turned` its edges point the other way."""

    dag: DAG
    node: Ints
    edge: Ints
    turned: bool = False


def renumbered(dag: DAG, node: Ints, edge: Ints) -> Rewiring:
    """The same graph with its nodes and edges in another order."""
    place = np.empty(dag.node_count, np.int64)
    place[node] = np.arange(dag.node_count)
    return Rewiring(_wired(dag, dag.node_shape, place, edge), node, edge)


def part_of(dag: DAG, node: Ints) -> Rewiring:
    """Some nodes with their edges; those that lead to others are open."""
    place = np.full(dag.node_count, OPEN, np.int64)
    place[node] = np.arange(len(node))
    mine = np.isin(dag.tail, node) | np.isin(dag.head, node)
    edge = np.flatnonzero(mine)
    return Rewiring(_wired(dag, (len(node),), place, edge), node, edge)


def _wired(dag: DAG, shape: tuple[int, ...], place: Ints, edge: Ints) -> DAG:
    def moved(ends: Ints) -> Ints:
        return np.where(ends == OPEN, OPEN, place[ends])

    return DAG(shape, moved(dag.tail[edge]), moved(dag.head[edge]), dag.port[edge], dag.ports)


def turned(dag: DAG) -> Rewiring:
    """Every edge turned around."""
    around = DAG(dag.node_shape, dag.head, dag.tail, dag.port, dag.ports)
    return Rewiring(around, np.arange(dag.node_count), np.arange(dag.edge_count), turned=True)


def oriented(dag: DAG, direction: Direction) -> tuple[Ints, Ints]:
    """Tails and heads of all edges in the sense of a direction."""
    forward = np.asarray(direction.senses, np.int64)[dag.port] > 0
    return np.where(forward, dag.tail, dag.head), np.where(forward, dag.head, dag.tail)


# --- states


def spread(scan: Scan, dag: DAG, states: State, *, final: bool) -> list[Floats]:
    """For each direction the states on all edges, those that are given and zero on the others."""
    wholes: list[Floats] = []
    for direction, ports in zip(scan.directions, states, strict=True):
        arrays = list(ports.values())
        whole = np.zeros((dag.edge_count, *arrays[0].shape[1:]))
        for port, name in enumerate(dag.ports):
            whole[_open_edges(dag, direction, port, final)] = ports[name]
        wholes.append(whole)
    return wholes


def gathered(scan: Scan, dag: DAG, wholes: Sequence[Floats], *, final: bool) -> State:
    """The states of open edges by direction and port, from those on all edges."""
    return tuple(
        {name: whole[_open_edges(dag, direction, port, final)] for port, name in enumerate(dag.ports)}
        for direction, whole in zip(scan.directions, wholes, strict=True)
    )


def _open_edges(dag: DAG, direction: Direction, port: int, final: bool) -> Ints:
    """The edges of a port that enter, or leave if `final`, in order of their number."""
    tail, head = oriented(dag, direction)
    ends = head if final else tail
    return np.flatnonzero((ends == OPEN) & (dag.port == port))


# --- arguments and results


def rewired(instance: Instance, to: Rewiring, states: Sequence[Floats] | None = None) -> Instance:
    """The instance on the new graph. `states` are those on all edges of the old one, those given if None."""
    scan, old, arguments = instance.scan, instance.dag, instance.given
    wholes = spread(scan, old, arguments.initial, final=False) if states is None else states
    senses = (
        tuple(Direction(tuple(-sense for sense in direction.senses)) for direction in scan.directions)
        if to.turned
        else scan.directions
    )
    around = replace(scan, directions=senses)
    leaves = {leaf.name: _leaf(old, to, leaf, arguments.leaves[leaf.name]) for leaf in scan.leaves}
    inputs = {name: _nodes(old, to, array) for name, array in arguments.inputs.items()}
    initial = gathered(around, to.dag, [whole[to.edge] for whole in wholes], final=False)
    return Instance(around, to.dag, Given(inputs, leaves, initial))


def expected(instance: Instance, to: Rewiring, outcome: Outcome) -> Outcome:
    """An outcome of the instance as the new graph must give it, which has all of its nodes."""
    scan = instance.scan
    around = rewired(instance, to).scan
    wholes = [whole[to.edge] for whole in spread(scan, instance.dag, outcome.state, final=True)]
    return Outcome(_nodes(instance.dag, to, outcome.h), gathered(around, to.dag, wholes, final=True))


def flat_nodes(dag: DAG, array: Floats) -> Floats:
    """One axis of nodes in place of all."""
    return array.reshape(dag.node_count, *array.shape[len(dag.node_shape) :])


def _nodes(old: DAG, to: Rewiring, array: Floats) -> Floats:
    chosen = flat_nodes(old, array)[to.node]
    return chosen.reshape(*to.dag.node_shape, *chosen.shape[1:])


def _leaf(old: DAG, to: Rewiring, leaf: Leaf, array: Floats) -> Floats:
    if leaf.kind == "param":
        return array
    match len(port_indices(leaf)):
        case 0:
            return _nodes(old, to, array)
        case 1:
            return array[to.edge]
        case _:
            return array[line_numbers(old, to)]


def line_pairs(dag: DAG) -> list[tuple[int, int]]:
    """Pairs (incoming edge, outgoing edge) of a node: by node, then outgoing, then incoming edge."""
    pairs: list[tuple[int, int, int]] = []
    entering: list[list[int]] = [[] for _ in range(dag.node_count)]
    tails, heads = ([int(node) for node in ends] for ends in (dag.tail, dag.head))
    for edge, head in enumerate(heads):
        if head != OPEN:
            entering[head].append(edge)
    for out, tail in enumerate(tails):
        if tail != OPEN:
            pairs.extend((tail, out, into) for into in entering[tail])
    return [(into, out) for _, out, into in sorted(pairs)]


def line_numbers(old: DAG, to: Rewiring) -> Ints:
    """The number in the old graph of each line edge of the new one."""
    number = {pair: place for place, pair in enumerate(line_pairs(old))}
    edges = to.edge.tolist()
    pairs = [(edges[into], edges[out]) for into, out in line_pairs(to.dag)]
    return np.asarray([number[pair[::-1] if to.turned else pair] for pair in pairs], np.int64)


# --- side by side


def side_by_side(first: Instance, second: Given) -> Instance:
    """Two copies of a graph as one, each with arguments of its own; leaves without nodes are those of the first."""
    dag, scan = first.dag, first.scan
    count = dag.node_count

    def doubled(ends: Ints) -> Ints:
        return np.concatenate([ends, np.where(ends == OPEN, OPEN, ends + count)])

    both = DAG((2 * count,), doubled(dag.tail), doubled(dag.head), np.concatenate([dag.port, dag.port]), dag.ports)

    def leaf(leaf: Leaf) -> Floats:
        arrays = [arguments.leaves[leaf.name] for arguments in (first.given, second)]
        if leaf.kind == "param":
            return arrays[0]
        rank = site_rank(dag, leaf)
        return np.concatenate([array.reshape(-1, *array.shape[rank:]) for array in arrays])

    inputs = {
        name: np.concatenate([flat_nodes(dag, arguments.inputs[name]) for arguments in (first.given, second)])
        for name in first.given.inputs
    }
    initial = _joined(first.given.initial, second.initial)
    return Instance(scan, both, Given(inputs, {declared.name: leaf(declared) for declared in scan.leaves}, initial))


def joined(dag: DAG, outcomes: Sequence[Outcome]) -> Outcome:
    """What two copies give, as their union must."""
    first, second = outcomes
    h = np.concatenate([flat_nodes(dag, outcome.h) for outcome in outcomes])
    return Outcome(h, _joined(first.state, second.state))


def _joined(first: State, second: State) -> State:
    return tuple(
        {port: np.concatenate([ports[port], others[port]]) for port in ports}
        for ports, others in zip(first, second, strict=True)
    )


# --- orders


def topological_order(dag: DAG, direction: Direction, random: np.random.Generator) -> Ints:
    """A random order of the nodes in which every edge leads to a later one."""
    tail, head = oriented(dag, direction)
    waiting = np.zeros(dag.node_count, np.int64)
    after: list[list[int]] = [[] for _ in range(dag.node_count)]
    for start, end in zip(tail.tolist(), head.tolist(), strict=True):
        if start != OPEN and end != OPEN:
            waiting[end] += 1
            after[start].append(end)
    ready = [int(node) for node in np.flatnonzero(waiting == 0)]
    order: list[int] = []
    while ready:
        node = ready.pop(int(random.integers(len(ready))))
        order.append(node)
        for end in after[node]:
            waiting[end] -= 1
            if waiting[end] == 0:
                ready.append(end)
    return np.asarray(order, np.int64)
