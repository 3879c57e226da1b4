"""Tables of level sweeps, by running the sweep they describe against the recurrence node by node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.build import complete_tree, ragged_dag
from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.levels import latest_levels, node_levels
from stmlang.graph.line import reversed_line_edges
from stmlang.graph.steps import (
    Arcs,
    Steps,
    edge_arcs,
    edge_level_sizes,
    most_steps,
    node_arcs,
    step_count,
    steps,
    thrifty_levels,
)
from stmlang.source.diagnostic import SpecError
from tests.graph.graphs import banded, ragged_dags, trees

PRIME = 10007
Numbers = np.ndarray


def recurrence(dag: DAG, out: Numbers, into: Numbers, source: Numbers, initial: Numbers) -> Numbers:
    """The state of every edge for a transition `out[o] into[i]`, in integers modulo a prime, by the definition."""
    state = np.zeros(dag.edge_count, np.int64)
    state[dag.entering] = initial
    for node in np.argsort(node_levels(dag), kind="stable"):
        total = (into * state)[dag.head == node].sum() % PRIME
        mine = dag.tail == node
        state[mine] = (source + out * total)[mine] % PRIME
    return state


def run(made: Steps, initial: Numbers, collect: Callable[[Numbers, Numbers], Numbers], finish: Callable, held: bool) -> Numbers:
    """The tables run as a lowering does; `collect(numbers, states)` applies gates of arcs, `finish(row, states)` makes of them
    what is written. Returns the final items' states."""
    pads = made.write.shape[1]
    slot = np.arange(made.item_count + pads) if held else made.slot
    size = made.item_count if held else made.slot_count
    buffer = np.append(np.zeros(size, np.int64), 0)
    buffer[np.minimum(slot[made.initial], size)] = initial
    for t in range(len(made.read)):
        buffer[size] = 0
        arcs = collect(made.number[t], buffer[np.minimum(slot[made.read[t]], size)])
        added = finish(t, arcs) % PRIME
        places = np.minimum(slot[made.write[t]], size)
        if made.resumed[t]:
            added[0] += buffer[places[0]]
        buffer[places] = added % PRIME
    return buffer[np.minimum(slot[made.final], size)]


def room(arcs: Arcs, width: int) -> int:
    """Steps enough for any sweep over so many arcs in so many levels."""
    return most_steps(len(arcs.level), len(np.unique(arcs.level)), width)


def summed(values: Numbers, places: Numbers, count: int) -> Numbers:
    total = np.zeros(count + 1, np.int64)
    np.add.at(total, places, values)
    return total[:count]


@settings(max_examples=100, deadline=None)
@given(
    dag=st.one_of(ragged_dags(), trees()),
    seed=st.integers(0, 2**32 - 1),
    width=st.integers(1, 9),
    held=st.booleans(),
    roomy=st.booleans(),
)
def test_both_sweeps_are_the_recurrence(dag: DAG, seed: int, width: int, held: bool, roomy: bool) -> None:
    random = np.random.default_rng(seed)
    out, into, source = random.integers(0, PRIME, (3, dag.edge_count))
    initial = random.integers(0, PRIME, len(dag.entering))
    wanted = recurrence(dag, out, into, source, initial)[dag.leaving]
    # Open edges pass states straight on, from and to items of their own.
    first, last = np.where(dag.tail == OPEN, 1, out), np.where(dag.head == OPEN, 1, into)
    added = np.append(np.where(dag.tail == OPEN, 0, source), 0)
    first, last = np.append(first, 0), np.append(last, 0)
    nodes = steps(node_arcs(dag), width, room(node_arcs(dag), width) if roomy else None)

    def by_node(t: int, arcs: Numbers) -> Numbers:
        states = summed(arcs, nodes.part_of[t], nodes.edge.shape[1]) + added[nodes.opening[t]]
        return summed(last[nodes.edge[t]] * states, nodes.added_to[t], nodes.write.shape[1])

    def gates(numbers: Numbers, states: Numbers) -> Numbers:
        return first[np.minimum(numbers, dag.edge_count)] * states

    assert run(nodes, initial, gates, by_node, held).tolist() == wanted.tolist()
    line = dag.line_edges
    transition = np.append(into[line[:, 0]] * out[line[:, 1]] % PRIME, 1)
    edges = steps(edge_arcs(dag), width, room(edge_arcs(dag), width) if roomy else None)

    def by_edge(t: int, arcs: Numbers) -> Numbers:
        return summed(arcs, edges.part_of[t], edges.edge.shape[1]) + added[edges.opening[t]]

    def lines(numbers: Numbers, states: Numbers) -> Numbers:
        return transition[np.minimum(numbers, len(line))] * states

    assert run(edges, initial, lines, by_edge, held).tolist() == wanted.tolist()


@settings(max_examples=100, deadline=None)
@given(dag=st.one_of(ragged_dags(), trees()), width=st.integers(1, 9), arcs_of=st.sampled_from([node_arcs, edge_arcs]))
def test_tables(dag: DAG, width: int, arcs_of: Callable[[DAG], Arcs]) -> None:
    """Indices increase, pads come last, what is written is written once a step, every number appears once."""
    arcs = arcs_of(dag)
    made = steps(arcs, width)
    numbers = made.number[made.number < 2**31 - 1]
    assert sorted(numbers.tolist()) == sorted(arcs.number[arcs.number >= 0].tolist())
    assert len(made.read) == step_count(np.bincount(arcs.level, minlength=1), made.read.shape[1])
    for table in (made.part_of, made.added_to):
        assert np.all(np.diff(table, axis=1) >= 0)
    assert all(len(set(row)) == len(row) for row in made.write.tolist())
    opened = made.opening[made.opening < dag.edge_count]
    assert sorted(opened.tolist()) == list(range(dag.edge_count))
    assert sorted(set(made.edge.ravel().tolist()) - {dag.edge_count}) == list(range(dag.edge_count))


@settings(max_examples=50, deadline=None)
@given(dag=st.one_of(ragged_dags(), trees()))
def test_line_edges_are_counted_without_making_them(dag: DAG) -> None:
    assert np.trim_zeros(edge_level_sizes(dag), "b").tolist() == np.bincount(edge_arcs(dag).level).tolist()
    line, back = dag.line_edges, dag.reversed().line_edges
    assert line[reversed_line_edges(dag)].tolist() == back[:, ::-1].tolist()


def test_buffers_are_as_wide_as_what_is_alive() -> None:
    chain = ragged_dag(1000, np.arange(999), np.arange(1, 1000))
    assert steps(node_arcs(chain), 64).slot_count == 1
    assert steps(edge_arcs(chain), 64).slot_count == 1
    comb = ragged_dag(199, np.asarray([*range(99), *range(100, 199)]), np.asarray([*range(1, 100), *range(1, 100)]))
    assert np.array_equal(thrifty_levels(comb), latest_levels(comb))
    assert steps(edge_arcs(comb), 64).slot_count <= 4
    assert steps(node_arcs(comb), 64).slot_count <= 2
    fan = comb.reversed()
    assert np.array_equal(thrifty_levels(fan), node_levels(fan))


@settings(max_examples=50, deadline=None)
@given(dag=st.one_of(ragged_dags(), trees()), width=st.integers(1, 9))
def test_roomy_tables_have_shapes_of_the_sizes_alone(dag: DAG, width: int) -> None:
    for arcs in (node_arcs(dag), edge_arcs(dag)):
        count = room(arcs, width)
        made = steps(arcs, width, count)
        for table in (made.read, made.number, made.part_of, made.edge, made.opening, made.added_to, made.write):
            assert table.shape == (count, width)
        assert made.slot.shape == (arcs.items + width,)
        assert made.slot_count == arcs.items


@given(st.lists(st.integers(1, 40), min_size=1, max_size=9), st.integers(1, 9))
def test_no_sweep_takes_more_steps_than_there_is_room_for(levels: list[int], width: int) -> None:
    """And some take as many."""
    assert step_count(np.asarray(levels), width) <= most_steps(sum(levels), len(levels), width)
    narrow = [1 + width * (size // width) for size in levels]
    assert step_count(np.asarray(narrow), width) == most_steps(sum(narrow), len(levels), width)


def test_a_wide_level_does_not_widen_the_others() -> None:
    chain = np.arange(1000)
    dag = ragged_dag(3001, np.append(chain, np.full(2000, 1000)), np.append(chain + 1, np.arange(1001, 3001)))
    made = steps(node_arcs(dag), 8)
    assert made.read.shape == (1000 + 250, 8)


def test_a_node_of_high_degree_is_added_up_over_many_steps() -> None:
    star = ragged_dag(20_001, np.arange(1, 20_001), np.zeros(20_000, np.int64))
    made = steps(node_arcs(star), 64)
    assert made.read.shape == (313, 64)
    assert made.write.shape == (313, 1)
    assert made.resumed.sum() == 312


def test_a_hub_has_no_line_edges() -> None:
    """10^10 pairs of edges: nothing may count them one by one."""
    count = 100_000
    ends = np.arange(1, count + 1)
    dag = ragged_dag(
        2 * count + 1, np.append(ends, np.zeros(count, np.int64)), np.append(np.zeros(count, np.int64), ends + count)
    )
    assert steps(node_arcs(dag), 1024).read.size < 3 * count
    assert edge_level_sizes(dag).sum() == count * count + count
    assert "line_edges" not in vars(dag)


def test_empty_graphs() -> None:
    for dag in (ragged_dag(0, np.zeros(0, np.int64), np.zeros(0, np.int64)), complete_tree(2, 0)):
        for arcs in (node_arcs(dag), edge_arcs(dag)):
            made = steps(arcs, 8)
            assert len(made.read) == 0
            assert made.slot_count == 0


def test_too_large_tables_are_refused() -> None:
    length = 60_000
    chain = np.arange(length)
    dag = ragged_dag(2 * length, np.append(chain[1:] - 1, chain[1:] - 1), np.append(chain[1:], length + chain[1:]))
    arcs = node_arcs(dag)
    wide = Arcs(
        arcs.items,
        arcs.edges,
        *(np.tile(part, 2) for part in (arcs.read, arcs.edge, arcs.write, arcs.number)),
        np.append(arcs.level, np.full(len(arcs.level), int(arcs.level.max()) + 1)),
        arcs.initial,
        arcs.final,
    )
    with pytest.raises(SpecError) as error:
        steps(wide, 2**20)
    assert error.value.diagnostics[0].code == "STM3304"


def test_a_million_edges() -> None:
    dag = banded(400_000, 1_000_000, 2000)
    made = steps(node_arcs(dag), 1024)
    assert made.slot_count < 0.1 * dag.node_count
    assert made.read.size < 2 * dag.edge_count
