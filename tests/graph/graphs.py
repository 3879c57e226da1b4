"""Random graphs for the tests of this room."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from stmlang.graph.build import complete_tree, ragged_dag, regular_dag
from stmlang.graph.dag import DAG, OPEN


@st.composite
def ragged_dags(draw: st.DrawFn, most_nodes: int = 12, most_edges: int = 30) -> DAG:
    """Random DAGs with multi-edges, open edges and isolated nodes, numbered in no particular order."""
    count = draw(st.integers(0, most_nodes))
    place = draw(st.permutations(range(count)))
    pairs = draw(st.lists(st.tuples(st.integers(-1, count - 1), st.integers(-1, count - 1)), max_size=most_edges))
    edges: list[tuple[int, int]] = []
    for low, high in pairs:
        low, high = (low, high) if min(low, high) < 0 else sorted((low, high))
        if low != high:
            edges.append((OPEN if low < 0 else place[low], OPEN if high < 0 else place[high]))
    ends = np.asarray(edges, np.int64).reshape(-1, 2)
    return ragged_dag(count, ends[:, 0], ends[:, 1])


def regular_dags() -> st.SearchStrategy[DAG]:
    sizes = st.lists(st.integers(0, 5), min_size=1, max_size=3)
    return sizes.map(lambda chosen: regular_dag(chosen, [f"a{axis}" for axis in range(len(chosen))]))


def trees() -> st.SearchStrategy[DAG]:
    return st.builds(complete_tree, st.integers(0, 3), st.integers(0, 3))


def dags() -> st.SearchStrategy[DAG]:
    return st.one_of(ragged_dags(), regular_dags(), trees())


def banded(nodes: int, edges: int, reach: int, seed: int = 0) -> DAG:
    """A large random DAG whose edges lead at most `reach` nodes ahead."""
    random = np.random.default_rng(seed)
    tail = random.integers(0, nodes - reach, edges)
    return ragged_dag(nodes, tail, tail + random.integers(1, reach + 1, edges))
