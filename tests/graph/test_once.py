"""Analyses of a graph are done once, and forgotten with it."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from stmlang.graph.build import regular_dag
from stmlang.graph.dag import DAG
from stmlang.graph.levels import acyclic, node_levels
from stmlang.graph.once import once
from stmlang.graph.reduction import multitree


def test_an_analysis_is_done_once_for_each_graph() -> None:
    """Graphs that are equal in all their arrays are two: `DAG` compares by identity."""
    asked: list[DAG] = []

    @once
    def count(dag: DAG) -> int:
        asked.append(dag)
        return dag.node_count

    first, second = regular_dag([3], ["time"]), regular_dag([3], ["time"])
    assert [count(first), count(first), count(second)] == [3, 3, 3]
    assert asked == [first, second]


def test_an_analysis_that_fails_is_tried_again() -> None:
    cyclic = DAG((1,), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), ("edge",))
    assert not acyclic(cyclic)
    for _ in range(2):
        with pytest.raises(ValueError, match="has a cycle"):
            node_levels(cyclic)


def test_what_was_found_goes_with_the_graph() -> None:
    """A training loop makes a graph for each batch: none of them may stay because it was asked for its levels."""
    dag = regular_dag([4, 4], ["down", "right"])
    levels = node_levels(dag)
    assert node_levels(dag) is levels
    assert multitree(dag) is multitree(dag)
    gone, found = weakref.ref(dag), weakref.ref(levels)
    del dag, levels
    gc.collect()
    assert gone() is None
    assert found() is None
