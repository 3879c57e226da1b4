"""Relations about trees, DAGs and products, whose nodes and edges have numbers that mean nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stmlang.fuzz.relations.compare import same
from stmlang.fuzz.relations.graphs import (
    Rewiring,
    expected,
    gathered,
    joined,
    oriented,
    part_of,
    renumbered,
    rewired,
    side_by_side,
    spread,
    topological_order,
    turned,
)
from stmlang.fuzz.relations.grids import flipped, turned_around
from stmlang.fuzz.relations.instance import (
    Floats,
    Instance,
    Outcome,
    direction_axis,
    port_indices,
    refuse_multitree,
)
from stmlang.fuzz.relations.subject import Subject, another, evaluate, random, rounding, subject
from stmlang.fuzz.trial import Finding, NotApplicable, Trial, Way
from stmlang.graph.dag import OPEN
from stmlang.graph.shapes import output_shape
from stmlang.scan.scan import Leaf


def relabelled_nodes(trial: Trial, way: Way) -> Finding | None:
    """Nodes in another order give the same results in that order."""
    original = _on_graph(trial, way)
    dag = original.op.dag
    to = renumbered(dag, random(trial, "relabel nodes").permutation(dag.node_count), np.arange(dag.edge_count))
    return _rewired("relabel nodes", way, original, to)


def permuted_edges(trial: Trial, way: Way) -> Finding | None:
    """Edges in another order give the same results, and final states in that order."""
    original = _on_graph(trial, way)
    dag = original.op.dag
    to = renumbered(dag, np.arange(dag.node_count), random(trial, "permute edge order").permutation(dag.edge_count))
    return _rewired("permute edge order", way, original, to)


def reversed_twice(trial: Trial, way: Way) -> Finding | None:
    """The reversed graph walked against its edges is the graph walked along them."""
    original = subject(trial, way)
    refuse_multitree(original.op.scan)
    if original.op.dag.regular is None:
        return _rewired("reverse twice", way, original, turned(original.op.dag))
    computed = evaluate(turned_around(original.instance), way)
    rank = len(original.op.dag.regular)
    return same("reverse twice", way, computed, flipped(original.outcome, rank), flipped(original.rounding, rank))


def disjoint_union(trial: Trial, way: Way) -> Finding | None:
    """Two copies of a graph as one graph give what a batch of two gives."""
    original = _on_graph(trial, way)
    first, second = original.instance, _second_copy(trial, way)
    separate = joined(original.op.dag, original.call_both(first.given, second.given))
    allowed = joined(original.op.dag, [original.rounding, rounding("second copy", trial, lambda draw: _second_copy(draw, way))])
    return same("disjoint union", way, evaluate(side_by_side(first, second.given), way), separate, allowed)


def _second_copy(trial: Trial, way: Way) -> Instance:
    """Other arguments on the same graph, but for constants."""
    original = subject(trial, way)
    other, mine = another(trial, original.op), original.instance.given
    shared = {leaf.name: mine.leaves[leaf.name] for leaf in original.op.scan.leaves if leaf.kind == "param"}
    return replace(original.instance, given=replace(other, leaves=other.leaves | shared))


def cut_graph(instance: Instance, way: Way, generator: np.random.Generator) -> Outcome:
    """What one direction gives on two parts of a graph, the second resumed from the first."""
    scan, dag = instance.scan, instance.dag
    refuse_multitree(scan)
    order = topological_order(dag, scan.directions[0], generator)
    place = int(generator.integers(1, max(len(order), 2)))
    (states,) = spread(scan, dag, instance.given.initial, final=False)
    h = np.empty((dag.node_count, *output_shape(scan, dag)[len(dag.node_shape) :]))
    for nodes in (np.sort(order[:place]), np.sort(order[place:])):
        if len(nodes):
            to = part_of(dag, nodes)
            piece = rewired(instance, to, [states])
            computed = evaluate(piece, way)
            h[nodes] = computed.h
            (leaving,) = spread(piece.scan, to.dag, computed.state, final=True)
            gone = oriented(to.dag, scan.directions[0])[1] == OPEN
            states[to.edge[gone]] = leaving[gone]
    return Outcome(h.reshape(*dag.node_shape, *h.shape[1:]), gathered(scan, dag, [states], final=True))


def nothing_read_of_dead_entries(trial: Trial, way: Way) -> Finding | None:
    """An edge that enters from outside leaves no node, and one that leaves enters none: what arrays hold there is not read."""
    original = _on_graph(trial, way)
    arguments = original.instance.given
    leaves = {leaf.name: _dead_are_nan(original.instance, leaf) for leaf in original.op.scan.leaves}
    if all(leaves[name] is array for name, array in arguments.leaves.items()):
        raise NotApplicable("every entry of its arrays is read")
    return same("padding of NaN", way, original.call(replace(arguments, leaves=leaves)), original.outcome, None)


def _dead_are_nan(instance: Instance, leaf: Leaf) -> Floats:
    """A leaf of edges with NaN on those that no direction reads it on; any other as it is."""
    dag, array = instance.dag, instance.given.leaves[leaf.name]
    if leaf.kind == "param" or len(port_indices(leaf)) != 1:
        return array
    which = 0 if port_indices(leaf) == ("out",) else 1
    dead = np.stack([oriented(dag, direction)[which] == OPEN for direction in instance.scan.directions], axis=1)
    if leaf.directional and dead.shape[1] > 1:
        array = np.moveaxis(array, direction_axis(dag, leaf), 1)
    else:
        dead = dead.all(axis=1)
    if not dead.any():
        return instance.given.leaves[leaf.name]
    masked = np.where(dead.reshape(*dead.shape, *(1,) * (array.ndim - dead.ndim)), np.nan, array)
    return np.moveaxis(masked, 1, direction_axis(dag, leaf)) if dead.ndim == 2 else masked


def _on_graph(trial: Trial, way: Way) -> Subject:
    original = subject(trial, way)
    if original.op.dag.regular is not None:
        raise NotApplicable("the nodes and edges of chains and grids have their places")
    refuse_multitree(original.op.scan)
    return original


def _rewired(relation: str, way: Way, original: Subject, to: Rewiring) -> Finding | None:
    rewired_outcome, allowed = (expected(original.instance, to, outcome) for outcome in (original.outcome, original.rounding))
    return same(relation, way, evaluate(rewired(original.instance, to), way), rewired_outcome, allowed)
