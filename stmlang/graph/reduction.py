"""The multitree that a line graph is cut to: of two priorities, for each connected component the one that keeps more reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.incidence import components
from stmlang.graph.multitree import greedy_multitree, reached, straight_first
from stmlang.graph.once import once

if TYPE_CHECKING:
    from jaxtyping import Bool, Int64


def squares_first(dag: DAG) -> Int64[np.ndarray, " line_edges"]:
    """A priority of `greedy_multitree` that finds the axes of a grid in any numbering: the rank of each line edge.

    A line edge is straight if no other path of two edges joins the same two nodes. Where exactly two do, they are the sides of
    a square, and opposite sides are parallel. Edges that are parallel, or follow each other straight, are of one class: on a
    grid of any rank the classes are its axes. First come straight line edges, then turns from one class into a later one (that
    of a greater least edge), then all others; then the order of `straight_first`.
    """
    line, base = dag.line_edges, straight_first(dag)
    if not len(line):
        return base
    tail, head = dag.tail[line[:, 0]], dag.head[line[:, 1]]
    ends = (tail + 1) * (dag.node_count + 1) + head + 1
    _, pair, count = np.unique(ends, return_inverse=True, return_counts=True)
    alone = (count[pair] == 1) | (tail == OPEN) | (head == OPEN)
    order, first = np.argsort(pair, kind="stable"), np.cumsum(count) - count
    squares = first[count == 2]
    first_corner, second_corner = line[order[squares]], line[order[squares + 1]]
    alike = np.concatenate(
        [
            np.stack([first_corner[:, 0], second_corner[:, 1]], 1),
            np.stack([first_corner[:, 1], second_corner[:, 0]], 1),
            line[alone],
        ]
    )
    family = components(alike[:, 0], alike[:, 1], dag.edge_count)
    kind = np.where(alone, 0, np.where(family[line[:, 0]] < family[line[:, 1]], 1, 2))
    rank = np.empty(len(line), np.int64)
    rank[np.lexsort((base, kind))] = np.arange(len(line))
    return rank


@once
def multitree(dag: DAG) -> Bool[np.ndarray, " line_edges"]:
    """A mask over `dag.line_edges`: those that `multitree` of the language keeps. They are a multitree to which no further line
    edge can be added.

    Every connected component is cut by itself, in the order of `straight_first` or of `squares_first`, whichever leaves more
    ordered pairs of its nodes connected; the first if they draw. What else a graph holds makes no difference to a component,
    so a graph with parts is cut part by part; of what follows the parts, which is padding, all are kept.
    """
    if not dag.parts:
        return _better_of_two(dag)
    mask = np.concatenate([multitree(subgraph) for subgraph in dag.parts])
    return np.concatenate([mask, np.ones(len(dag.line_edges) - len(mask), bool)])


def _better_of_two(dag: DAG) -> Bool[np.ndarray, " line_edges"]:
    line = dag.line_edges
    masks = [greedy_multitree(dag, priority(dag)) for priority in (straight_first, squares_first)]
    if np.array_equal(masks[0], masks[1]):
        return masks[0]
    closed = (dag.tail != OPEN) & (dag.head != OPEN)
    component = components(dag.tail[closed], dag.head[closed], dag.node_count)
    pairs = [np.bincount(component, reached(dag, line[mask]), minlength=dag.node_count) for mask in masks]
    node = dag.head[line[:, 0]]
    return np.where((pairs[1] > pairs[0])[component[node]], masks[1], masks[0])
