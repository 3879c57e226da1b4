"""What a scan runs on: its nodes and edges, where it is entered and left, and the directions that it runs in."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int64

from stmlang.draw.picture import ACCENT, INK, MARK, PALE, Picture
from stmlang.draw.places import MOST_NODES, Places, grid_places, layered_places, senses_text
from stmlang.graph.dag import DAG
from stmlang.graph.levels import node_levels
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Runtime, kind_of
from stmlang.source.wording import count

NODE = 0.28
"""Inches from a node to the next."""
WIDEST, HIGHEST = 9.0, 6.5
STUB = 0.45
"""Length of an edge that enters or leaves, in units of the distance of nodes."""


def topology_picture(scan: Scan, dag: DAG | None) -> Picture:
    """The graph, or where it has too many nodes to be drawn one by one, how many nodes its levels have; `dag` is None where
    graphs come at run time."""
    if dag is None:
        return _at_run_time(scan)
    kind = kind_of(scan.topology)
    words = f"{kind} of {count(dag.node_count, 'node')} and {count(dag.edge_count, 'edge')}"
    if dag.node_count == 0:
        return _said(f"{words}: nothing to draw")
    if dag.regular is None and dag.node_count > MOST_NODES:
        return _levels_picture(dag, words)
    places = layered_places(dag) if dag.regular is None else grid_places(dag.regular)
    caption = f"A {words}. Short arrows at the border are where states enter and leave."
    caption += " Only the first and the last nodes of long axes are drawn." if places.shortened else ""
    caption += " Slices of the first axes stand side by side." if dag.regular is not None and len(dag.regular) > 2 else ""
    return _drawn(scan, dag, places, caption)


def _drawn(scan: Scan, dag: DAG, places: Places, caption: str) -> Picture:
    spread = np.ptp(places.at, axis=0) + 2 * STUB + 1
    width = float(np.clip(NODE * spread[0], 2.2, WIDEST))
    height = float(np.clip(NODE * spread[1], 1.1, HIGHEST))
    beside = 1.9

    def draw(figure: Any) -> None:
        graph, senses = figure.subplots(1, 2, width_ratios=(width, beside))
        _edges(graph, dag, places)
        size = float(np.clip(60 * (width / spread[0] / NODE) ** 2, 4, 60))
        graph.scatter(*places.at.T, s=size, color=ACCENT, zorder=3, linewidths=0)
        if dag.names is not None and dag.node_count <= 30:
            for number, (x, y) in zip(places.node, places.at, strict=True):
                graph.annotate(dag.names[number], (x, y), (0, 5), textcoords="offset points", ha="center", fontsize=7)
        graph.set(aspect="equal", xlim=(_low(places, 0), _high(places, 0)), ylim=(_high(places, 1), _low(places, 1)))
        graph.set_axis_off()
        _directions(senses, scan, dag)

    return Picture("topology", caption, width + beside, max(height, 1.2), draw)


def _low(places: Places, axis: int) -> float:
    return float(places.at[:, axis].min()) - 0.8


def _high(places: Places, axis: int) -> float:
    return float(places.at[:, axis].max()) + 0.8


def _edges(axis: Any, dag: DAG, places: Places) -> None:
    """An arrow for each edge between nodes that are drawn, a pale one where one end is outside."""
    tail, tail_drawn = places.among(np.maximum(dag.tail, 0))
    head, head_drawn = places.among(np.maximum(dag.head, 0))
    inner = (dag.tail >= 0) & (dag.head >= 0) & tail_drawn & head_drawn
    start, end = places.at[tail[inner]], places.at[head[inner]]
    _arrows(axis, start, end - start, INK if inner.sum() < 800 else PALE)
    if dag.regular is None:
        return
    for place, known, outside, sign in ((head, head_drawn, dag.tail, -1.0), (tail, tail_drawn, dag.head, 1.0)):
        open_edges = (outside < 0) & known & ((dag.head >= 0) | (dag.tail >= 0))
        step = STUB * _unit(dag.port[open_edges], len(dag.ports))
        at = places.at[place[open_edges]]
        _arrows(axis, at - step if sign < 0 else at, step, PALE)


def _unit(port: Int64[np.ndarray, " edges"], ports: int) -> Any:
    """Where an edge of a port leads on the picture: along the last axis to the right, along others downwards, along those in
    front of both to the lower right."""
    steps = np.array([(0.6, 0.6)] * max(0, ports - 2) + [(0.0, 1.0)] * (ports >= 2) + [(1.0, 0.0)])
    return steps[port]


def _arrows(axis: Any, start: Any, step: Any, color: str) -> None:
    if len(start):
        axis.quiver(
            *start.T,
            *step.T,
            angles="xy",
            scale_units="xy",
            scale=1,
            color=color,
            width=0.0022,
            headwidth=5,
            zorder=2,
            minlength=0,
        )


def _directions(axis: Any, scan: Scan, dag: DAG) -> None:
    """A cross of arrows for each direction, with the senses of its ports beside it."""
    axis.set_axis_off()
    axis.set(xlim=(-0.6, 3.2), ylim=(len(scan.directions) - 0.4, -0.9), aspect="auto")
    axis.text(-0.5, -0.65, "directions" if len(scan.directions) > 1 else "direction", fontsize=8, fontweight="bold")
    for number, direction in enumerate(scan.directions):
        steps = _unit(np.arange(len(dag.ports)), len(dag.ports)) if dag.regular is not None else np.array([[1.0, 0.0]])
        senses = np.asarray(direction.senses[: len(steps)], float)[:, None]
        _arrows(axis, np.tile([[0.0, float(number)]], (len(steps), 1)), 0.35 * steps * senses, MARK)
        axis.text(0.7, number, senses_text(dag, direction), fontsize=8, va="center")


def _levels_picture(dag: DAG, words: str) -> Picture:
    """How many nodes each level has, and how many edges meet at nodes."""
    levels = np.bincount(node_levels(dag))
    closed = dag.head >= 0
    degrees = np.bincount(np.bincount(dag.head[closed], minlength=dag.node_count))

    def draw(figure: Any) -> None:
        wide, deep = figure.subplots(1, 2, width_ratios=(2, 1))
        wide.fill_between(range(len(levels)), levels, step="mid", color=ACCENT, alpha=0.35, linewidth=0)
        wide.step(range(len(levels)), levels, where="mid", color=ACCENT, linewidth=1)
        wide.set(xlabel="level: longest path from a source", ylabel="nodes", yscale="log", ylim=(0.8, None))
        deep.bar(range(len(degrees)), degrees, color=ACCENT, width=0.8)
        deep.set(xlabel="edges that enter", ylabel="nodes", yscale="log", ylim=(0.8, None))

    caption = (
        f"A {words} on {count(len(levels), 'level')}, {int(levels.max()):,} on the widest: too many to draw one by one. "
        "Nodes of a level do not depend on each other."
    )
    return Picture("topology", caption, 8.0, 2.8, draw)


def _at_run_time(scan: Scan) -> Picture:
    topology = scan.topology
    assert isinstance(topology, Runtime)
    kind = "trees" if topology.tree else "graphs"
    return _said(f"{kind} that come at run time, of at most {topology.nodes:,} nodes and {topology.edges:,} edges")


def _said(words: str) -> Picture:
    """Where there is nothing to draw, words."""

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        axis.set_axis_off()
        axis.text(0.0, 0.5, words, va="center", transform=axis.transAxes)

    return Picture("topology", words[0].upper() + words[1:] + ".", 6.0, 0.6, draw)
