"""What the equations of a scan refer to beside gates and inputs: leaves, and what the graph itself says of a site."""

from __future__ import annotations

import numpy as np

from stmlang.graph.dag import OPEN
from stmlang.graph.reduction import multitree
from stmlang.oracle.functions import Floats, larger, smaller
from stmlang.oracle.values import Frame, Value, port_part, state_part
from stmlang.scan.expression import PORT_INDICES, Index
from stmlang.scan.scan import Leaf
from stmlang.scan.topology import is_regular


def leaf_value(frame: Frame, leaf: Leaf, array: Floats, direction: int) -> Value:
    """A leaf's array in this direction, its axes sorted out: site axes first, then head, then state indices in order."""
    scan, sites, dag = frame.scan, frame.sites, frame.sites.dag
    dense = is_regular(scan.topology)
    ports = port_part(leaf.indices)
    states = state_part(leaf.indices)
    lead = 0 if leaf.kind == "param" else len(dag.node_shape) if dense or not ports else 1
    if leaf.directional and len(scan.directions) > 1:
        array = np.take(array, direction, axis=lead + 1)
    array = array.reshape(int(np.prod(array.shape[:lead])), *array.shape[lead:])
    axes = [index for index in leaf.indices if dense or index not in PORT_INDICES]
    order = [*(index for index in ports if dense), "h", *states]
    array = array.transpose(0, *(1 + ["h", *axes].index(index) for index in order))
    if leaf.kind == "given":
        array = smaller(larger(array, np.asarray(leaf.low)), np.asarray(leaf.high))
    if leaf.kind == "param":
        count = dag.node_count if dense else sites.count(ports)
        array = np.broadcast_to(array, (count, *array.shape[1:]))
    elif not dense and len(ports) == 1:
        array = array[sites.out_edge if ports == ("out",) else sites.in_edge]
    elif not dense and len(ports) == 2:
        array = array[: sites.count(ports)]  # what is spare belongs to no line edge
    return Value(ports, states, array.reshape(sites.count(ports), *array.shape[1 + len(ports) * dense :]))


def degree(frame: Frame, over: Index) -> Value:
    """The edges that leave each node, or enter it, one by one."""
    sites = frame.sites
    count = np.zeros(sites.count(()))
    for end in (sites.tail if over == "out" else sites.head).tolist():
        if end != OPEN:
            count[end] += 1
    return frame.at_sites(count)


def has_neighbour(frame: Frame, over: Index) -> Value:
    """One at the edges that enter a node, or leave it, where they join it to another node, and zero at open ones."""
    sites = frame.sites
    edges, ends = (sites.in_edge, sites.tail) if over == "in" else (sites.out_edge, sites.head)
    return frame.at_sites(np.asarray([0.0 if ends[edge] == OPEN else 1.0 for edge in edges]), over)


def kept_line_edges(frame: Frame) -> Value:
    """The line edges that a multitree keeps: a matter of the declared DAG, the same for both senses."""
    return frame.at_sites(np.asarray(multitree(frame.sites.dag), dtype=np.float64), "out", "in")
