"""Schedules, by running the sweep they describe against the recurrence node by node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.build import complete_tree, ragged_dag, regular_dag
from stmlang.graph.dag import OPEN, Dag
from stmlang.graph.levels import latest_levels, node_levels
from stmlang.graph.slots import Schedule, schedule, thrifty_levels
from stmlang.source.diagnostic import SpecError
from tests.graph.graphs import banded, dags


def recurrence(dag: Dag, kept: np.ndarray, transition: np.ndarray, source: np.ndarray, initial: np.ndarray) -> np.ndarray:
    """The state of every edge, in integers modulo a prime, by the definition."""
    state = np.zeros(dag.edge_count, np.int64)
    state[dag.entering] = initial
    levels = node_levels(dag)
    for node in np.argsort(levels, kind="stable"):
        for out in np.flatnonzero(dag.tail == node):
            lines = np.flatnonzero((dag.line_edges[:, 1] == out) & kept)
            state[out] = (source[out] + (transition[lines] * state[dag.line_edges[lines, 0]]).sum()) % PRIME
    return state


PRIME = 10007


def sweep(
    dag: Dag, plan: Schedule, transition: np.ndarray, source: np.ndarray, initial: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Runs the tables as a lowering would: gathers, a segment sum, one scatter a step. Returns the state of each edge as
    written and as read, and the sum that each node reads."""
    width, out_width = plan.nodes.shape[1], plan.out_edge.shape[1]
    buffer = np.full(plan.slot_count + 1, 5)
    buffer[plan.entering_slot] = initial
    transition, source = np.append(transition, 3), np.append(source, 7)
    written, heard, read = [], [], []
    for t in range(plan.step_count):
        incoming = buffer[plan.in_slot[t]]
        sums = np.zeros(width + 1, np.int64)
        np.add.at(sums, plan.in_node_local[t], incoming)
        lines = np.zeros(out_width + 1, np.int64)
        np.add.at(lines, plan.line_out_local[t], transition[plan.line_id[t]] * buffer[plan.line_in_slot[t]])
        states = (source[plan.out_edge[t]] + lines[:-1]) % PRIME
        buffer[plan.out_slot[t]] = states
        written.append(states)
        heard.append(incoming)
        read.append(sums[:-1])
    flat = [np.append(np.concatenate([np.zeros(0, np.int64), *part]), 0) for part in (written, heard, read)]
    out = flat[0][plan.out_at]
    out[dag.entering] = initial
    into = flat[1][plan.in_at]
    into[dag.leaving] = buffer[plan.leaving_slot]
    return out, into, flat[2][plan.node_at]


@settings(max_examples=150, deadline=None)
@given(dag=dags(), seed=st.integers(0, 2**32 - 1), eager=st.booleans(), drop=st.booleans(), late=st.booleans())
def test_sweep_is_the_recurrence(dag: Dag, seed: int, eager: bool, drop: bool, late: bool) -> None:
    random = np.random.default_rng(seed)
    kept = random.random(len(dag.line_edges)) < (0.6 if drop else 2)
    transition = random.integers(0, PRIME, len(dag.line_edges))
    source = random.integers(0, PRIME, dag.edge_count)
    initial = random.integers(0, PRIME, len(dag.entering))
    plan = schedule(dag, kept if drop else None, latest_levels(dag) if late else None, eager)
    expected = recurrence(dag, kept, transition, source, initial)
    out, into, read = sweep(dag, plan, transition, source, initial)
    assert out.tolist() == expected.tolist()
    assert into.tolist() == expected.tolist()
    sums = np.zeros(dag.node_count, np.int64)
    closed = dag.head != OPEN
    np.add.at(sums, dag.head[closed], expected[closed])
    assert read.tolist() == sums.tolist()


@settings(max_examples=100, deadline=None)
@given(dag=dags(), eager=st.booleans())
def test_tables(dag: Dag, eager: bool) -> None:
    """Local indices increase, pads come last, every item appears once, and no two live edges share a slot."""
    plan = schedule(dag, eager=eager)
    for table, total in ((plan.nodes, dag.node_count), (plan.line_id, plan.line_count)):
        assert sorted(table[table < total].tolist()) == list(range(total))
    for edges, other in ((plan.in_edge, dag.head), (plan.out_edge, dag.tail)):
        assert sorted(edges[edges < dag.edge_count].tolist()) == np.flatnonzero(other != OPEN).tolist()
    for local in (plan.line_out_local, plan.out_node_local, plan.in_node_local):
        assert np.all(np.diff(local, axis=1) >= 0)
    for edges, slots, local, width in (
        (plan.in_edge, plan.in_slot, plan.in_node_local, plan.nodes.shape[1]),
        (plan.out_edge, plan.out_slot, plan.out_node_local, plan.nodes.shape[1]),
    ):
        pad = edges == dag.edge_count
        assert np.all(pad == (slots == plan.slot_count))
        assert np.all(pad == (local == width))
    owner: dict[int, int] = {}
    for edge, slot in zip(dag.entering.tolist(), plan.entering_slot.tolist(), strict=True):
        assert slot not in owner
        owner[slot] = edge
    for t in range(plan.step_count):
        freed = []
        for edge, slot in zip(plan.in_edge[t].tolist(), plan.in_slot[t].tolist(), strict=True):
            if edge < dag.edge_count:
                assert owner[slot] == edge
                freed.append(slot)
        if eager:
            for slot in freed:
                del owner[slot]
        for edge, slot in zip(plan.out_edge[t].tolist(), plan.out_slot[t].tolist(), strict=True):
            if edge < dag.edge_count:
                assert slot not in owner
                owner[slot] = edge
        if not eager:
            for slot in freed:
                del owner[slot]
    held = dict(zip(plan.leaving_slot.tolist(), dag.leaving.tolist(), strict=True))
    assert owner == held


def test_chain_and_grid_buffers_are_as_wide_as_the_wavefront() -> None:
    chain = regular_dag([1000], ["time"])
    assert schedule(chain).slot_count == 2
    assert schedule(chain, eager=True).slot_count == 1
    inner = regular_dag([20, 30], ["rows", "cols"])
    closed = (inner.tail != OPEN) & (inner.head != OPEN)
    grid = ragged_dag(600, inner.tail[closed], inner.head[closed])
    assert schedule(grid, eager=True).slot_count == 19 + 20  # edges between two full wavefronts: down and right
    assert schedule(grid).slot_count == 2 * (19 + 20)
    assert schedule(inner, eager=True).slot_count == 20 + 30  # open edges wait at the border, before and after
    assert schedule(grid).step_count == schedule(grid).level_count == 49


def test_wide_levels_are_cut() -> None:
    """A long chain that ends in a wide level: padding to the widest level would cost 2,000 times 1,000 entries."""
    chain = np.arange(1000)
    dag = ragged_dag(3001, np.append(chain, np.full(2000, 1000)), np.append(chain + 1, np.arange(1001, 3001)))
    plan = schedule(dag)
    assert plan.level_count == 1002
    assert plan.step_count <= 2 * plan.level_count
    assert plan.nodes.size <= 8 * dag.node_count


def test_latest_levels_keep_the_buffer_of_a_tree_small() -> None:
    comb = ragged_dag(199, np.asarray([*range(99), *range(100, 199)]), np.asarray([*range(1, 100), *range(1, 100)]))
    assert schedule(comb, levels=node_levels(comb)).slot_count >= 100
    assert schedule(comb, levels=latest_levels(comb)).slot_count <= 4
    assert np.array_equal(thrifty_levels(comb), latest_levels(comb))
    assert schedule(comb).slot_count <= 4
    fan = comb.reversed()
    assert np.array_equal(thrifty_levels(fan), node_levels(fan))


def test_empty_graphs() -> None:
    for dag in (ragged_dag(0, np.zeros(0, np.int64), np.zeros(0, np.int64)), regular_dag([0], ["time"]), complete_tree(2, 0)):
        plan = schedule(dag)
        assert plan.step_count == (1 if dag.node_count else 0)
        assert plan.slot_count == dag.edge_count
        assert plan.entering_slot.tolist() == plan.leaving_slot.tolist()


def test_too_large_tables_are_refused() -> None:
    """60,000 levels, one of them with a node of degree 60,000."""
    length = 60000
    chain = np.arange(length)
    dag = ragged_dag(
        2 * length + 1, np.append(chain, np.arange(length + 1, 2 * length + 1)), np.append(chain + 1, np.full(length, length))
    )
    with pytest.raises(SpecError) as error:
        schedule(dag)
    assert error.value.diagnostics[0].code == "STM3304"


def test_a_million_edges() -> None:
    dag = banded(400_000, 1_000_000, 2000)
    plan = schedule(dag)
    assert plan.slot_count < 0.1 * dag.edge_count
    assert plan.step_count <= 2 * plan.level_count
    assert plan.line_id.size <= 9 * plan.line_count
