"""How much each node reads of one node, in each direction: a row of the gating matrix, by the plain recurrence.

The node writes a value of length one with a key of length one, and every node asks for that key. What comes out, a number for
each node and head, is drawn as its size, averaged over heads. The direct term is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from stmlang.draw.picture import ACCENT, MARK, PALE, Picture, cannot_draw
from stmlang.draw.places import MOST_NODES, layered_places, senses_text
from stmlang.draw.reach import part, reached
from stmlang.graph.dag import DAG
from stmlang.graph.levels import node_levels, topological_order
from stmlang.graph.shapes import key_shape, leaf_shape, leaf_sites, query_shape, value_shape
from stmlang.oracle.gates import evaluate_gates
from stmlang.oracle.recurrence import entering_states, run
from stmlang.oracle.steps import written_out
from stmlang.scan.scan import Leaf, Scan

MOST = 20_000
"""Nodes that read of the one that writes, at most: they are gone through one by one."""
MOST_AROUND = 1_000_000
"""Nodes of the whole graph, at most: gates are evaluated on all of it."""
FLOOR = 1e-6
"""What is smaller, relative to the largest, is drawn as if it were this. Nodes that are not reached at all stay white."""
ACROSS = 4

Strength = Float[np.ndarray, " nodes"]


def strengths(scan: Scan, dag: DAG, source: int, leaves: Mapping[str, np.ndarray] | None = None) -> list[Strength]:
    """For each direction how much each node reads of `source`. Leaves that are not given have the values at which a layer
    starts. Raises ValueError for arrays that do not fit."""
    values = {leaf.name: start(scan, dag, leaf) for leaf in scan.leaves} | dict(leaves or {})
    generator = np.random.default_rng(0)
    key = generator.standard_normal((dag.node_count, *key_shape(scan, dag)[len(dag.node_shape) :]))
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    written = np.zeros((dag.node_count, *value_shape(scan, dag)[len(dag.node_shape) :]))
    written[source] = scan.value**-0.5
    query = np.zeros((dag.node_count, *query_shape(scan, dag)[len(dag.node_shape) :]))
    query[:] = _one_each(key[source], query.shape[1:])
    inputs = (query.reshape(query_shape(scan, dag)), key.reshape(key_shape(scan, dag)), written.reshape(value_shape(scan, dag)))
    arguments: Any = (scan, dag, *inputs, values) if scan.steps == 1 else written_out(scan, dag, *inputs, values)
    of_steps = arguments[0]
    fields: list[Strength] = []
    for number, gates in enumerate(evaluate_gates(*arguments)):
        nodes = reached(dag, scan.directions[number], source, dag.node_count)
        near = part(gates, (nodes[:, None] * scan.steps + np.arange(scan.steps)).ravel())
        read, _ = run(of_steps, near, entering_states(of_steps, near.sites.dag, number, {}), False)
        size = np.linalg.norm(read.reshape(near.sites.dag.node_count, -1, read.shape[-1]), axis=-1).mean(axis=-1)
        fields.append(np.zeros(dag.node_count))
        fields[-1][nodes] = size.reshape(len(nodes), scan.steps)[:, -1]
    return fields


def _one_each(key: Float[np.ndarray, "..."], shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """The first key of each head, for each of its queries."""
    heads = key.reshape(key.shape[0], -1, key.shape[-1])[:, 0]
    return np.broadcast_to(heads.reshape(heads.shape[0], *(1,) * (len(shape) - 2), heads.shape[-1]), shape)


def start(scan: Scan, dag: DAG, leaf: Leaf) -> Float[np.ndarray, "..."]:
    """What a leaf is where a layer starts: a learned one at its bias, the heads evenly spread; a given one in the middle of its
    bounds, or zero where it has none."""
    if leaf.kind == "given":
        bounded = np.isfinite([leaf.low, leaf.high]).all()
        return np.full(
            leaf_shape(scan, dag, leaf), (leaf.low + leaf.high) / 2 if bounded else np.clip(0.0, leaf.low, leaf.high)
        )
    low, high = leaf.bias.low, leaf.bias.high
    heads = np.linspace(low, high, scan.heads) if scan.heads > 1 else np.array([(low + high) / 2])
    shape = leaf_shape(scan, dag, leaf)
    sites = 0 if leaf.kind == "param" else len(leaf_sites(scan, dag, leaf))
    return np.broadcast_to(heads.reshape(-1, *(1,) * (len(shape) - sites - 1)), shape)


def middle(dag: DAG) -> int:
    """The node in the middle of a grid; of another graph the one in the middle of its order."""
    if dag.regular is not None:
        return int(np.ravel_multi_index(tuple(size // 2 for size in dag.node_shape), dag.node_shape))
    return int(topological_order(dag)[dag.node_count // 2])


def too_many(scan: Scan, dag: DAG, source: int | None) -> str | None:
    """Why there is no receptive field of a graph, or of one of its nodes: in words, None where there is one."""
    if not 0 < dag.node_count <= MOST_AROUND:
        return f"receptive fields are drawn of 1 to {MOST_AROUND:,} nodes, and scan `{scan.name}` has {dag.node_count:,}"
    node = middle(dag) if source is None else source
    if any(len(reached(dag, direction, node, MOST)) > MOST for direction in scan.directions):
        return f"more than {MOST:,} nodes of scan `{scan.name}` read of node {node}, and they are gone through one by one"
    return None


def receptive_picture(
    scan: Scan, dag: DAG, source: int | None = None, leaves: Mapping[str, np.ndarray] | None = None
) -> Picture:
    """A panel for each direction; `source` is the number of the node that writes, `middle` where None. Raises SpecError
    (STM5213) for a graph of more than `MOST_AROUND` nodes, or without any, for a node that it does not have, and for one of
    which more than `MOST` read in a direction."""
    if source is not None and not 0 <= source < dag.node_count:
        raise cannot_draw(f"scan `{scan.name}` has no node {source}", f"nodes are numbered from 0 to {dag.node_count - 1:,}")
    if (message := too_many(scan, dag, source)) is not None:
        raise cannot_draw(message, "draw it at a smaller size, or of a node behind which fewer lie: `--node`, `node=`")
    node = middle(dag) if source is None else source
    fields = strengths(scan, dag, node, leaves)
    most = max(float(field.max()) for field in fields) or 1.0
    size = 2.1 if dag.regular is None or len(dag.regular) > 1 else 2.6
    rows = -(-len(fields) // ACROSS)

    def draw(figure: Any) -> None:
        axes = figure.subplots(rows, min(ACROSS, len(fields)), squeeze=False).ravel()
        for axis in axes[len(fields) :]:
            axis.set_axis_off()
        drawn = None
        for axis, field, direction in zip(axes, fields, scan.directions, strict=False):
            shown = np.where(field > 0, np.log10(np.maximum(field / most, FLOOR)), np.nan)
            drawn = _panel(axis, dag, shown, node)
            axis.set_title(senses_text(dag, direction), fontsize=8)
        if drawn is not None:
            bar = figure.colorbar(drawn, ax=list(axes), shrink=0.8, ticks=[np.log10(FLOOR), np.log10(FLOOR) / 2, 0])
            bar.ax.set_yticklabels([f"<{FLOOR:.0e}", f"{FLOOR**0.5:.0e}", "1"], fontsize=7)

    known = "the gates that were given" if leaves else "gates as a layer starts, before training"
    caption = (
        f"How much each node reads of the marked one (number {node}), by direction, relative to the largest, {most:.2g}; "
        f"{known}. White: not reached. The direct term is left out."
    )
    return Picture("receptive field", caption, size * min(ACROSS, len(fields)) + 0.9, size * rows, draw)


def _panel(axis: Any, dag: DAG, shown: Strength, node: int) -> Any:
    """One direction; what a scale of colours belongs to, None where there are none."""
    low = np.log10(FLOOR)
    if dag.regular is not None and len(dag.regular) > 1:
        *outer, row, col = np.unravel_index(node, dag.node_shape)
        slab = shown.reshape(dag.node_shape)[tuple(int(place) for place in outer)]
        image = axis.imshow(slab, cmap="viridis", vmin=low, vmax=0)
        axis.plot(col, row, marker="s", color=MARK, markersize=4)
        axis.set(xticks=[], yticks=[])
        return image
    if dag.regular is not None or dag.node_count > MOST_NODES:
        place = np.arange(dag.node_count) if dag.regular is not None else node_levels(dag)
        axis.plot(place, shown, color=ACCENT, **({"linewidth": 1.2} if dag.regular else {"marker": ".", "linestyle": ""}))
        axis.axvline(place[node], color=MARK, linewidth=1)
        axis.set(ylim=(low - 0.2, 0.2), xlabel="node" if dag.regular is not None else "level", ylabel="log10")
        return None
    places = layered_places(dag)
    axis.scatter(*places.at.T, color=PALE, s=6)
    dots = axis.scatter(*places.at.T, c=shown, cmap="viridis", vmin=low, vmax=0, s=14)
    axis.scatter(*places.at[node], marker="s", facecolor="none", edgecolor=MARK, s=44)
    axis.invert_yaxis()
    axis.set_axis_off()
    return dots
