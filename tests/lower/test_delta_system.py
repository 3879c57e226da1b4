"""The formulas of docs/delta-rule.md in numpy, against the recurrence node by node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

KEY, VALUE = 4, 3
Array = np.ndarray


class Graph(NamedTuple):
    """A DAG whose edges are open where an end is -1, with the gates of a scan and what its nodes hold. `under` is u."""

    tail: Array
    head: Array
    passed: Array
    source: Array
    mark: Array
    query: Array
    key: Array
    under: Array
    value: Array
    strength: Array
    states: dict[int, Array]


def unit(rng: np.random.Generator, nodes: int) -> Array:
    vectors = rng.normal(size=(nodes, KEY))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def random_graph(seed: int, nodes: int = 12, share: float = 0.35) -> Graph:
    rng = np.random.default_rng(seed)
    edges = [(a, b) for a in range(nodes) for b in range(a + 1, nodes) if rng.random() < share]
    edges += [(-1, int(rng.integers(nodes))) for _ in range(3)] + [(int(rng.integers(nodes)), -1) for _ in range(3)]
    tail, head = np.array(edges)[rng.permutation(len(edges))].T
    meets = (head[:, None] == tail[None]) & (head[:, None] >= 0)
    count = len(edges)
    key = unit(rng, nodes)
    return Graph(
        tail,
        head,
        np.where(meets, 0.6 * rng.normal(size=(count, count)), 0),
        np.where(tail >= 0, rng.normal(size=count), 0),
        np.where(np.arange(nodes) == head[:, None], rng.normal(size=(count, 1)), 0),
        rng.normal(size=(nodes, KEY)),
        key,
        key if seed % 2 else unit(rng, nodes),
        rng.normal(size=(nodes, VALUE)),
        rng.choice([0, 0.5, 1.3, 2], nodes),
        {int(edge): rng.normal(size=(KEY, VALUE)) for edge in np.flatnonzero(tail < 0)},
    )


def recurrence(graph: Graph) -> tuple[Array, dict[int, Array]]:
    """Outputs, and the states of edges that leave."""
    state = dict(graph.states)
    outputs = np.zeros_like(graph.value)
    for node in range(len(graph.key)):
        entering = np.flatnonzero(graph.head == node)
        outputs[node] = sum((graph.mark[i, node] * graph.query[node] @ state[i] for i in entering), np.zeros(VALUE))
        step = np.eye(KEY) - graph.strength[node] * np.outer(graph.under[node], graph.under[node])
        for edge in np.flatnonzero(graph.tail == node):
            state[edge] = graph.source[edge] * np.outer(graph.key[node], graph.value[node])
            state[edge] += sum((graph.passed[i, edge] * step @ state[i] for i in entering), np.zeros((KEY, VALUE)))
    return outputs, {int(edge): state[edge] for edge in np.flatnonzero(graph.head < 0)}


def system(graph: Graph) -> tuple[Array, dict[int, Array]]:
    """The same by one system over edges."""
    own, entering = np.flatnonzero(graph.tail >= 0), list(graph.states)
    node = graph.tail[own]
    reached = np.linalg.inv(np.eye(len(graph.tail)) - graph.passed)
    into, marked = reached @ graph.passed, reached @ graph.mark
    erased, strength = into[np.ix_(own, own)].T, graph.strength[node][:, None]
    key, under, value = graph.key[node], graph.under[node], graph.source[own][:, None] * graph.value[node]
    matrix = np.eye(len(own)) + strength * (erased * (under @ under.T))
    brought = sum(into[x, own][:, None] * (under @ graph.states[x]) for x in entering)
    if graph.under is graph.key:
        written = [(key, np.linalg.solve(matrix, value - strength * brought))]
    else:
        taken = np.linalg.solve(matrix, strength * ((erased * (under @ key.T)) @ value + brought))
        written = [(key, value), (under, -taken)]
    outputs = sum((marked[own].T * (graph.query @ vectors.T)) @ values for vectors, values in written)
    outputs = outputs + sum(marked[x][:, None] * (graph.query @ graph.states[x]) for x in entering)

    def left(edge: int) -> Array:
        passed = sum(reached[x, edge] * graph.states[x] for x in entering)
        return passed + sum((vectors * reached[own, edge][:, None]).T @ values for vectors, values in written)

    return outputs, {int(edge): left(edge) for edge in np.flatnonzero(graph.head < 0)}


@pytest.mark.parametrize("seed", range(8))
def test_one_system_is_the_recurrence(seed: int) -> None:
    """Keys erased for odd seeds, other vectors for even ones."""
    graph = random_graph(seed)
    (outputs, states), (expected, final) = system(graph), recurrence(graph)
    assert np.abs(outputs - expected).max() < 1e-14 * np.abs(expected).max()
    assert all(np.abs(states[edge] - final[edge]).max() < 1e-14 * np.abs(final[edge]).max() for edge in final)
