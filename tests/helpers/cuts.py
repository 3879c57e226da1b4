"""A scan evaluated piece by piece: what leaves one piece enters the next. All leaves are given arrays, one direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stmlang.graph.dag import DAG, OPEN

Pieces = Sequence[Sequence[int]]
"""For each axis the sizes of its pieces."""


def by_tiles(
    evaluate: Callable[..., tuple[Any, Any]],
    pieces: Pieces,
    senses: tuple[int, ...],
    arguments: tuple,
    joined: Any = np,
) -> tuple[Any, tuple[dict[str, Any]]]:
    """A grid cut along every axis; `evaluate(sizes, q, k, v, gates, initial)` gives a tile's result and final state. The tiles
    are walked as the direction goes. `joined` is the array library that puts tiles together (numpy or jax.numpy)."""
    q, k, v, gates, (initial,) = arguments
    starts = [np.cumsum([0, *sizes]) for sizes in pieces]
    grid = tuple(len(sizes) for sizes in pieces)
    front: dict[str, dict[tuple[int, ...], Any]] = {name: {} for name in initial}
    results: dict[tuple[int, ...], Any] = {}
    for step in np.ndindex(*grid):
        place = tuple(at if sense > 0 else count - 1 - at for at, count, sense in zip(step, grid, senses, strict=True))
        window = tuple(slice(start[at], start[at + 1]) for at, start in zip(place, starts, strict=True))
        entering = {}
        for axis, name in enumerate(initial):
            others = place[:axis] + place[axis + 1 :]
            entering[name] = front[name].get(others, initial[name][window[:axis] + window[axis + 1 :]])
        parts = ({name: gate[window] for name, gate in gates.items()}, (entering,))
        sizes = tuple(int(start[at + 1] - start[at]) for at, start in zip(place, starts, strict=True))
        results[place], (leaving,) = evaluate(sizes, q[window], k[window], v[window], *parts)
        for axis, name in enumerate(initial):
            front[name][place[:axis] + place[axis + 1 :]] = leaving[name]
    final = {name: _join(joined, front[name], grid[:axis] + grid[axis + 1 :]) for axis, name in enumerate(initial)}
    return _join(joined, results, grid), (final,)


def _join(library: Any, parts: dict[tuple[int, ...], Any], grid: tuple[int, ...], axis: int = 0) -> Any:
    """Arrays by their place in a grid of pieces, as one."""
    if not grid:
        return parts[()]
    rows = [{place[1:]: part for place, part in parts.items() if place[0] == at} for at in range(grid[0])]
    return library.concatenate([_join(library, row, grid[1:], axis + 1) for row in rows], axis=axis)


def by_parts(
    evaluate: Callable[..., tuple[Any, Any]], dag: DAG, parts: Sequence[np.ndarray], arguments: tuple, joined: Any = np
) -> tuple[Any, tuple[dict[str, Any]]]:
    """A DAG cut into convex sets of nodes, in an order in which no edge leads backwards;
    `evaluate(nodes, edges, q, k, v, gates, initial)` gives a part's result and final state, its edges as pairs of its own
    node numbers. `joined` is the array library that puts parts together."""
    q, k, v, gates, (initial,) = arguments
    states: dict[int, Any] = {int(edge): initial["edge"][row] for row, edge in enumerate(dag.entering)}
    result: dict[int, Any] = {}
    for nodes in parts:
        number = {int(node): at for at, node in enumerate(nodes)}
        tails, heads = ([number.get(int(node), OPEN) for node in ends] for ends in (dag.tail, dag.head))
        edges = [edge for edge in range(dag.edge_count) if tails[edge] != OPEN or heads[edge] != OPEN]
        pairs = [row for row, (into, _) in enumerate(dag.line_edges) if heads[into] != OPEN]
        mine = {"source": edges, "mark": edges, "direct": nodes, "transition": pairs}
        entering = [states[edge] for edge in edges if tails[edge] == OPEN]
        state = joined.stack(entering) if entering else np.zeros((0, *np.shape(initial["edge"])[1:]))
        local = [(tails[edge], heads[edge]) for edge in edges]
        selected = {name: gate[np.asarray(mine[name], dtype=np.int64)] for name, gate in gates.items()}
        found, (leaving,) = evaluate(len(nodes), local, q[nodes], k[nodes], v[nodes], selected, ({"edge": state},))
        result |= dict(zip(map(int, nodes), found, strict=True))
        states |= dict(zip((edge for edge in edges if heads[edge] == OPEN), leaving["edge"], strict=True))
    final = joined.stack([states[int(edge)] for edge in dag.leaving])
    return joined.stack([result[node] for node in range(dag.node_count)]), ({"edge": final},)
