"""Counts in closed form agree with counting."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stmlang.cost.counts import interval_cut, ragged_counts, regular_counts, widest_wavefront
from stmlang.graph.build import ragged_dag
from stmlang.graph.levels import topological_order
from stmlang.graph.topology import dag_of
from tests.plan.scans import diamond, grid

SIZES = [(1,), (2,), (17,), (1, 1), (1, 7), (5, 3), (8, 8), (3, 4, 5), (2, 2, 2, 3)]


@pytest.mark.parametrize("axes", SIZES)
def test_closed_form_is_what_counting_gives(axes):
    closed, counted = regular_counts(axes), ragged_counts(dag_of(grid(*axes)))
    assert (closed.nodes, closed.edges, closed.line_edges) == (counted.nodes, counted.edges, counted.line_edges)
    assert (closed.levels, closed.width, closed.entering) == (counted.levels, counted.width, counted.entering)
    assert (closed.step_edges, closed.step_line_edges) == (counted.step_edges, counted.step_line_edges)


@pytest.mark.parametrize("axes", [(0,), (0, 5), (3, 0, 2)])
def test_empty_axes(axes):
    counts = regular_counts(axes)
    assert (counts.nodes, counts.levels, counts.width, counts.line_edges) == (0, 0, 0, 0)
    assert counts.edges == dag_of(grid(*axes)).edge_count


@pytest.mark.parametrize("axes", SIZES)
def test_widest_wavefront(axes):
    sums = [sum(node) for node in itertools.product(*map(range, axes))]
    assert widest_wavefront(axes) == np.bincount(sums).max()


def test_huge_grids_are_counted_without_building_them():
    counts = regular_counts((40_000, 40_000))
    assert counts.nodes == 1_600_000_000
    assert counts.line_edges == 6_400_000_000
    assert counts.width == 40_000


def test_states_alive_at_once():
    # On a path of edges only the edge under way is alive, and the one that is being made.
    path = ragged_dag(4, np.array([0, 1, 2]), np.array([1, 2, 3]))
    assert ragged_counts(path).slots == 1
    counts = ragged_counts(dag_of(diamond()))
    assert (counts.levels, counts.width, counts.slots, counts.entering) == (3, 2, 2, 1)


def test_interval_cut_of_a_path():
    path = ragged_dag(8, np.arange(7), np.arange(1, 8))
    cut = interval_cut(path, topological_order(path), 2)
    assert (cut.blocks, cut.boundary) == (4, 1)
    assert interval_cut(path, topological_order(path), 8).boundary == 0


def test_interval_cut_counts_open_edges():
    dag = dag_of(diamond())
    cut = interval_cut(dag, topological_order(dag), 4)
    assert (cut.blocks, cut.boundary) == (1, 1)
