"""A graph in a few lines of text, for `explain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.levels import node_levels
from stmlang.graph.line import line_count


@dataclass(frozen=True)
class Statistics:
    """Counts of a graph. `entering` and `leaving` edges are among `edges`; widths are nodes in a level."""

    nodes: int
    edges: int
    entering: int
    leaving: int
    line_edges: int
    levels: int
    widest: int
    mean_width: float
    most_in: int
    most_out: int


def statistics(dag: DAG) -> Statistics:
    """Counts of a graph, without making its line graph."""
    widths = np.bincount(node_levels(dag))
    degrees = (np.bincount(end[end >= 0], minlength=1) for end in (dag.head, dag.tail))
    most_in, most_out = (int(degree.max()) for degree in degrees)
    return Statistics(
        nodes=dag.node_count,
        edges=dag.edge_count,
        entering=len(dag.entering),
        leaving=len(dag.leaving),
        line_edges=line_count(dag),
        levels=len(widths),
        widest=int(widths.max(initial=0)),
        mean_width=dag.node_count / max(1, len(widths)),
        most_in=most_in,
        most_out=most_out,
    )


def describe(dag: DAG) -> str:
    """The statistics as aligned lines of text."""
    found = statistics(dag)
    shape = " x ".join(str(size) for size in dag.node_shape)
    ports = ", ".join(dag.ports)
    lines = [
        ("nodes", f"{found.nodes:,}" + (f" ({shape})" if len(dag.node_shape) > 1 else "")),
        ("edges", f"{found.edges:,} of port {ports}" if len(dag.ports) == 1 else f"{found.edges:,} of ports {ports}"),
        ("open edges", f"{found.entering:,} enter, {found.leaving:,} leave"),
        ("line edges", f"{found.line_edges:,}"),
        ("levels", f"{found.levels:,}, {found.mean_width:.1f} nodes wide on average, {found.widest:,} at most"),
        ("edges of a node", f"at most {found.most_in:,} in, {found.most_out:,} out"),
    ]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, those that occur more than once followed by their node's number counted from one."""
    count = Counter(names)
    return tuple(name if count[name] == 1 else f"{name} #{node}" for node, name in enumerate(names, 1))


SHOWN = 12
"""A longer cycle is shown with its middle left out."""


def cycle_text(steps: Sequence[str]) -> str:
    """The names of the nodes along a cycle, back to the first: `a -> b -> a`."""
    names = list(steps)
    if len(names) > SHOWN:
        names[SHOWN // 2 : -SHOWN // 2] = [f"... ({len(names) - SHOWN} more) ..."]
    return " -> ".join([*names, names[0]])
