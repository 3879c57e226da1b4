"""The merge rule on its own: boxes of every shape against the dense solve, and its bookkeeping."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.lower.block_recurrence import assign_slots, line_counts
from stmlang.lower.merge import Border, box_border, merge_grid, node_border, wire
from stmlang.lower.summary import Summary, merge
from stmlang.lower.tables import PAD, padded, select


def random_nodes(rng: np.random.Generator, sizes: tuple[int, ...]) -> Summary:
    ports = len(sizes)
    source, mark = rng.normal(size=(*sizes, 1, ports)), rng.normal(size=(*sizes, ports, 1))
    transition = rng.uniform(-0.7, 0.7, size=(*sizes, ports, ports))
    return Summary(*(jnp.asarray(part) for part in (source, transition, mark, np.zeros((*sizes, 1, 1)))))


def paths(nodes: Summary, sizes: tuple[int, ...]) -> np.ndarray:
    """The gating matrix by summing over edges in topological order, one source node after the other."""
    count, ports = int(np.prod(sizes)), len(sizes)
    source, transition, mark = (np.asarray(part) for part in nodes[:3])
    found = np.zeros((count, count))
    for start in np.ndindex(*sizes):
        state: dict[tuple[int, tuple[int, ...]], float] = {}
        for node in np.ndindex(*sizes):
            entering = [state.get((port, node), 0.0) for port in range(ports)]
            found[np.ravel_multi_index(start, sizes), np.ravel_multi_index(node, sizes)] = np.dot(entering, mark[node][:, 0])
            for port in range(ports):
                after = tuple(place + (axis == port) for axis, place in enumerate(node))
                own = source[node][0, port] if node == start else 0.0
                state[port, after] = own + float(np.dot(entering, transition[node][:, port]))
    return found


@pytest.mark.parametrize("sizes", [(1,), (2,), (13,), (1, 1), (1, 5), (5, 1), (3, 7), (4, 4), (2, 3, 2), (1, 2, 3)])
def test_a_box_is_the_sum_over_its_paths(sizes: tuple[int, ...]) -> None:
    nodes = random_nodes(np.random.default_rng(len(sizes)), sizes)
    borders: list[Border] = []

    @jax.jit
    def merged(nodes: Summary) -> Summary:
        block, border = merge_grid(nodes, sizes)
        borders.append(border)
        return block

    block = merged(nodes)
    np.testing.assert_allclose(block.gating, paths(nodes, sizes), atol=1e-12)
    assert borders == [box_border(sizes)]
    edges = sum(line_counts(sizes))
    assert block.transition.shape == (edges, edges)
    assert block.source.shape == (block.gating.shape[0], edges)


def test_blocks_without_common_edges_stay_apart() -> None:
    a, b = Border((1,), (2,)), Border((3,), (4,))
    wiring, border = wire(a, b)
    assert border == Border((1, 3), (2, 4))
    rng = np.random.default_rng(0)
    blocks = [Summary(*(jnp.asarray(rng.normal(size=(1, 1))) for _ in range(4))) for _ in range(2)]
    merged = merge(blocks[0], blocks[1], wiring)
    for part, first, second in zip(merged, *blocks, strict=True):
        np.testing.assert_array_equal(part, np.diag([first[0, 0], second[0, 0]]))


def test_merging_is_associative() -> None:
    rng = np.random.default_rng(1)
    nodes = random_nodes(rng, (3,))
    a, b, c = (Summary(*(part[k] for part in nodes)) for k in range(3))
    borders = [node_border(1), Border(((0, (1,)),), ((0, (2,)),)), Border(((0, (2,)),), ((0, (3,)),))]
    first, left = wire(borders[0], borders[1])
    second, right = wire(borders[1], borders[2])
    one = merge(merge(a, b, first), c, wire(left, borders[2])[0])
    other = merge(a, merge(b, c, second), wire(borders[0], right)[0])
    for part, twin in zip(one, other, strict=True):
        np.testing.assert_allclose(part, twin, atol=1e-15)


def test_select_slices_what_is_contiguous_and_reads_zero_past_the_end() -> None:
    array = jnp.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(select(array, np.asarray([1, 2]), -1), array[:, 1:3])
    np.testing.assert_array_equal(select(array, np.asarray([2, 0]), -1), array[:, [2, 0]])
    assert select(array, np.asarray([], np.int32), 0).shape == (0, 4)
    np.testing.assert_array_equal(select(array, np.asarray([0, PAD]), 0), np.stack([array[0], np.zeros(4)]))


def test_padded_rows_and_slots() -> None:
    np.testing.assert_array_equal(padded([[1, 2], [], [3]]), [[1, 2], [PAD, PAD], [3, PAD]])
    slot, count = assign_slots([[0], [1, 2]], [[1, 2], [3]], [0])
    assert count == 2
    assert slot[1] != slot[2]
    assert slot[3] in (slot[1], slot[2])
