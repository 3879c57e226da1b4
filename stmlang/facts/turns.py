"""Whether the line graph has one path between any two edges (a multitree), given which turns a transition allows."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from stmlang.facts.classes import Bools, PortClasses
from stmlang.graph.dag import DAG
from stmlang.graph.multitree import is_multitree, turns_are_multitree
from stmlang.scan.scan import Scan
from stmlang.scan.topology import CompleteTree, FromFile, Product, Regular, Runtime, Static, Topology

LARGEST_GRAPH = 50_000
"""Graphs with more edges are not checked path by path, nor ones with ten times as many pairs of edges."""

MOST_SHOWN = 6
"""Turns that are listed in a sentence."""

MOST_ORDERS = 6
"""With more ports than this the orders of the ports are not compared with each other."""


def single_paths(scan: Scan, classes: PortClasses, allowed: Bools, masked: bool, dag: DAG | None) -> str | None:
    """Why there is at most one path between any two edges, in words; None where that could not be proved.

    `allowed[out, in]`: whether the transition may be other than zero there. `masked`: whether it is multiplied by a multitree's
    `LineMask`. `dag` is the graph, if known.
    """
    if classes.single:
        return "a chain has one path between any two edges"
    if masked:
        return "the line edges that are left make a multitree: one path between any two edges"
    if not allowed.any():
        return "nothing is passed on at all"
    if factors_are_trees(scan.topology) and turns_are_multitree(allowed):
        return _turn_words(classes, allowed)
    if dag is not None and dag.regular is None and _one_path_each(scan, allowed, dag):
        return "the line graph of this graph is a multitree: one path between any two edges"
    return None


def _turn_words(classes: PortClasses, allowed: Bools) -> str:
    pairs = np.argwhere(allowed & ~np.eye(len(allowed), dtype=bool))
    turns = [f"{classes.names[into]} to {classes.names[out]}" for out, into in pairs]
    if len(classes.names) == 1:
        return "in a tree there is one path between any two edges"
    if not turns:
        return "no port turns into another, so there is one path between any two edges"
    shown = ", from ".join(turns[:MOST_SHOWN]) + (", and so on" if len(turns) > MOST_SHOWN else "")
    return f"turns lead from {shown} only, never back, so there is one path between any two edges"


def factors_are_trees(topology: Topology) -> bool:
    """Whether a topology is a product of chains and trees: then the path within each factor is unique."""
    match topology:
        case Regular() | CompleteTree():
            return True
        case Static(tree=tree) | FromFile(tree=tree) | Runtime(tree=tree):
            return tree
        case Product(factors=factors):
            return all(factors_are_trees(factor) for factor in factors)


def _one_path_each(scan: Scan, allowed: Bools, dag: DAG) -> bool:
    """Check the graph's own line edges, those that the allowed turns leave, in every sense in which it is scanned."""
    nodes = np.arange(dag.node_count + 1)
    incoming = np.bincount(dag.head[dag.head >= 0], minlength=len(nodes))
    outgoing = np.bincount(dag.tail[dag.tail >= 0], minlength=len(nodes))
    if dag.edge_count > LARGEST_GRAPH or float(incoming.astype(np.float64) @ outgoing) > 10.0 * LARGEST_GRAPH:
        return False
    first, second = dag.port[dag.line_edges[:, 0]], dag.port[dag.line_edges[:, 1]]
    turn_sets = {allowed[second, first].tobytes(): allowed[second, first]} if _forward(scan) else {}
    if _backward(scan):
        turn_sets[allowed[first, second].tobytes()] = allowed[first, second]
    return all(is_multitree(dag, dag.line_edges[chosen]) for chosen in turn_sets.values())


def _forward(scan: Scan) -> bool:
    return any(sense > 0 for direction in scan.directions for sense in direction.senses)


def _backward(scan: Scan) -> bool:
    return any(sense < 0 for direction in scan.directions for sense in direction.senses)


def kept_turns(allowed: Bools) -> Bools:
    """The allowed turns that remain when ports may only turn in one order.

    If that makes no cycle already, all remain. Else, of all orders of the ports, the one in which most allowed turns lead
    forward; of several the one nearest to the last port first, so that `cols` turns into `rows` and not the other way.
    """
    if turns_are_multitree(allowed):
        return allowed
    count = len(allowed)
    last_first = tuple(range(count - 1, -1, -1))
    orders = permutations(last_first) if count <= MOST_ORDERS else iter([last_first])
    return max((_forward_turns(allowed, order) for order in orders), key=lambda turns: int(turns.sum()))


def _forward_turns(allowed: Bools, order: tuple[int, ...]) -> Bools:
    place = np.argsort(np.array(order))
    return allowed & (place[None, :] <= place[:, None])
