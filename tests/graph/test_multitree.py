"""Multitrees against brute-force path counts, and the reach that reductions keep."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.build import ragged_dag, regular_dag
from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.levels import edge_levels
from stmlang.graph.multitree import greedy_multitree, is_multitree, reach, straight_first, turns_are_multitree
from stmlang.graph.reduction import multitree, squares_first
from tests.graph.graphs import banded, dags, ragged_dags


def path_counts(dag: DAG, line: np.ndarray) -> np.ndarray:
    """`[from edge, to edge]`, the number of paths in the line graph, each edge having one to itself."""
    counts = np.eye(dag.edge_count, dtype=object)
    levels = edge_levels(dag)
    for first, second in sorted(line.tolist(), key=lambda pair: levels[pair[1]]):
        counts[:, second] += counts[:, first]
    return counts


def reached_pairs(dag: DAG, line: np.ndarray) -> int:
    counts = path_counts(dag, line)
    return len(
        {
            (int(dag.tail[a]), int(dag.head[b]))
            for a, b in zip(*np.nonzero(counts), strict=True)
            if dag.tail[a] != OPEN != dag.head[b]
        }
    )


def closed_grid(*sizes: int) -> tuple[DAG, np.ndarray]:
    """A grid without its open edges as a plain edge list, and the ports of its edges."""
    grid = regular_dag(sizes, [f"a{axis}" for axis in range(len(sizes))])
    closed = (grid.tail != OPEN) & (grid.head != OPEN)
    return ragged_dag(grid.node_count, grid.tail[closed], grid.head[closed]), grid.port[closed]


@settings(max_examples=200, deadline=None)
@given(dag=dags(), seed=st.integers(0, 2**32 - 1), density=st.sampled_from([0.3, 0.7, 1.0]))
def test_is_multitree_counts_paths(dag: DAG, seed: int, density: float) -> None:
    line = dag.line_edges[np.random.default_rng(seed).random(len(dag.line_edges)) < density]
    assert is_multitree(dag, line) == bool(np.all(path_counts(dag, line) <= 1))
    assert reach(dag, line) == reached_pairs(dag, line)


def test_a_line_edge_given_twice_is_two_paths() -> None:
    chain = regular_dag([2], ["time"])
    assert is_multitree(chain, chain.line_edges)
    assert not is_multitree(chain, np.repeat(chain.line_edges, 2, axis=0))


@pytest.mark.parametrize("ports", [1, 2, 3])
def test_turns(ports: int) -> None:
    """Every choice of turns, straight moves kept, against path counts on a grid large enough for a round trip."""
    grid = regular_dag([3] * ports, [f"a{axis}" for axis in range(ports)])
    line = grid.line_edges
    into, out = grid.port[line[:, 0]], grid.port[line[:, 1]]
    turns = [(a, b) for a in range(ports) for b in range(ports) if a != b]
    for choice in product([False, True], repeat=len(turns)):
        allowed = np.eye(ports, dtype=bool)
        for (a, b), kept in zip(turns, choice, strict=True):
            allowed[a, b] = kept
        assert turns_are_multitree(allowed) == is_multitree(grid, line[allowed[out, into]])


@given(st.integers(1, 4), st.integers(0, 2**16 - 1))
def test_turns_without_straight_moves_are_proofs(ports: int, bits: int) -> None:
    allowed = np.asarray([bits >> place & 1 for place in range(ports * ports)], bool).reshape(ports, ports)
    if turns_are_multitree(allowed):
        grid = regular_dag([2] * ports, [f"a{axis}" for axis in range(ports)])
        line = grid.line_edges
        assert is_multitree(grid, line[allowed[grid.port[line[:, 1]], grid.port[line[:, 0]]]])


@settings(max_examples=60, deadline=None)
@given(dag=dags(), seed=st.one_of(st.none(), st.integers(0, 99)))
def test_greedy_is_a_maximal_multitree(dag: DAG, seed: int | None) -> None:
    line = dag.line_edges
    priority = None if seed is None else np.random.default_rng(seed).integers(0, 5, len(line))
    kept = greedy_multitree(dag, priority)
    assert is_multitree(dag, line[kept])
    for dropped in np.flatnonzero(~kept):
        more = kept.copy()
        more[dropped] = True
        assert not is_multitree(dag, line[more])


def test_priority_decides() -> None:
    """Two ways from edge 0 to edge 5 around a rhombus; the line edge tried last is dropped."""
    dag = ragged_dag(6, np.asarray([0, 1, 1, 2, 3, 4]), np.asarray([1, 2, 3, 4, 4, 5]))
    assert dag.line_edges.tolist() == [[0, 1], [0, 2], [1, 3], [2, 4], [3, 5], [4, 5]]
    for last in range(6):
        kept = greedy_multitree(dag, (np.arange(6) == last).astype(np.int64))
        assert np.flatnonzero(~kept).tolist() == [last]


def test_reach_on_a_grid() -> None:
    """The numbers of an 8 x 8 grid: by number, with one turn dropped, and by the default priority."""
    grid, port = closed_grid(8, 8)
    line = grid.line_edges
    assert (len(line), reach(grid, line)) == (194, 1232)
    by_number = line[greedy_multitree(grid, np.arange(len(line)))]
    assert (len(by_number), reach(grid, by_number)) == (112, 651)
    one_turn = line[~((port[line[:, 0]] == 0) & (port[line[:, 1]] == 1))]
    assert (len(one_turn), reach(grid, one_turn)) == (145, 1232)
    straight = line[greedy_multitree(grid)]
    assert (len(straight), reach(grid, straight)) == (147, 1232)


def test_default_priority_of_nodes_in_no_topological_order() -> None:
    grid, _ = closed_grid(4, 5)
    shuffled = np.random.default_rng(0).permutation(20)
    dag = ragged_dag(20, shuffled[grid.tail], shuffled[grid.head])
    assert sorted(straight_first(dag).tolist()) == list(range(len(dag.line_edges)))
    assert is_multitree(dag, dag.line_edges[greedy_multitree(dag)])


@settings(max_examples=100, deadline=None)
@given(graphs=st.lists(ragged_dags(), max_size=4), spare=st.integers(0, 3), seed=st.integers(0, 2**32 - 1))
def test_graphs_side_by_side_are_cut_as_each_by_itself(graphs: list[DAG], spare: int, seed: int) -> None:
    """In any numbering of their nodes: a graph's result must not depend on what else is in a batch."""
    random = np.random.default_rng(seed)
    parts: list[DAG] = []
    for dag in graphs:
        number = random.permutation(dag.node_count) if random.integers(2) else np.arange(dag.node_count)
        closed = (dag.tail >= 0) & (dag.head >= 0)
        parts.append(ragged_dag(dag.node_count, number[dag.tail[closed]], number[dag.head[closed]]))
    start = np.cumsum([0, *(part.node_count for part in parts)])
    ends = [np.concatenate([[start[-1]] * spare, *(getattr(part, end) + at for part, at in zip(parts, start, strict=False))])
            for end in ("tail", "head")]  # fmt: skip
    ends[1][:spare] += 1
    ends = [np.roll(end, -spare).astype(np.int64) for end in ends]
    together = ragged_dag(int(start[-1]) + 2, *ends)
    by_parts = multitree(replace(together, parts=tuple(parts)))
    assert by_parts.tolist() == multitree(together).tolist()
    alone = [greedy_multitree(part) for part in parts]
    assert greedy_multitree(together).tolist() == [bool(keep) for mask in alone for keep in mask]


def shuffled_grid(sides: tuple[int, ...], seed: int) -> DAG:
    """A grid as any other graph: nodes numbered and edges listed at random."""
    random = np.random.default_rng(seed)
    number = np.arange(int(np.prod(sides))).reshape(sides)
    ends = [(np.delete(number, -1, axis), np.delete(number, 0, axis)) for axis in range(len(sides))]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in ends])
    edges = random.permutation(number.size)[random.permutation(edges)]
    return ragged_dag(number.size, edges[:, 0], edges[:, 1])


@pytest.mark.parametrize("sides", [(8, 8), (1, 9), (2, 2), (7, 13), (3, 4, 5), (2, 3, 2, 3)])
def test_grids_keep_their_reach_in_any_numbering(sides: tuple[int, ...]) -> None:
    for seed in range(4):
        dag = shuffled_grid(sides, seed)
        kept = dag.line_edges[multitree(dag)]
        assert is_multitree(dag, kept)
        assert reach(dag, kept) >= 0.95 * reach(dag, dag.line_edges)


@settings(max_examples=100, deadline=None)
@given(dag=dags())
def test_the_better_of_two_is_a_maximal_multitree(dag: DAG) -> None:
    line, mask = dag.line_edges, multitree(dag)
    assert is_multitree(dag, line[mask])
    for spare in np.flatnonzero(~mask):
        assert not is_multitree(dag, line[mask | (np.arange(len(line)) == spare)])
    found = [reach(dag, line[greedy_multitree(dag, priority(dag))]) for priority in (straight_first, squares_first)]
    assert reach(dag, line[mask]) >= max(found)


def test_thousands_of_edges() -> None:
    dag = banded(1500, 4000, 40)
    kept = greedy_multitree(dag)
    assert is_multitree(dag, dag.line_edges[kept])
    assert not is_multitree(dag, dag.line_edges)
