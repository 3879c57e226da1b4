"""Graphs that are given at run time: what is traced again, and that each gives in a batch what it gives by itself.

C19 (fla-org/flash-linear-attention#1147, also #758 and #1037; patrick-kidger/equinox#686 and #1062). A number that depends on
the length was part of a program's key, so every new length compiled or tuned again, and training fell to a third of its
speed. Here few buckets of sizes have a program each.

C23 (pyg-team/pytorch_geometric#190). The number of nodes was guessed from the largest id that an edge names: an isolated last
node shifted every graph behind it in the batch, and the numbers were wrong in silence. Here it is known or asked for.

C25 (dmlc/dgl#134). A batch of graphs without cycles was said to have one. Here a batch is what its members are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.graph import DAG, Batch, Bucket, as_dag, batch, convert, from_edge_index
from stmlang.graph.build import ragged_dag
from stmlang.graph.levels import find_cycle, node_levels
from stmlang.nn import ScanLayer
from stmlang.source.diagnostic import SpecError
from tests.helpers.calls import as_tree, error
from tests.helpers.cases import BOTH, GIVEN_FACTORS, NONE
from tests.helpers.scans import arrows
from tests.public.chains import PLAIN, Tree, scan_on

AT_RUN_TIME = "topology g = dag(nodes <= 512, edges <= 1024)\n"
BODIES = {"recurrent": PLAIN + BOTH, "nodes": GIVEN_FACTORS + BOTH + NONE}
"""A body for each strategy that takes graphs at run time."""


@cache
def at_run_time(strategy: str) -> stmlang.GraphScan:
    text = AT_RUN_TIME + scan_on("g", BODIES[strategy])
    found = stmlang.compile(text, dtype="float64", strategy=strategy)
    assert isinstance(found, stmlang.GraphScan)
    return found


@cache
def alone(nodes: int, edges: tuple[tuple[int, int], ...], strategy: str, seed: int) -> tuple[Tree, np.ndarray]:
    """Arguments of a graph that is written into the spec, and what the recurrence gives for them."""
    op = stmlang.compile(scan_on(arrows(nodes, list(edges)), BODIES[strategy]), dtype="float64")
    tree = as_tree(random_arguments(op, seed))
    return tree, op.reference(*tree)


def random_graph(rng: np.random.Generator, most: int) -> DAG:
    """A DAG of 1 to `most` nodes, numbered in no particular order, mostly in several components."""
    count = int(rng.integers(1, most + 1))
    place = rng.permutation(count)
    pairs = np.unique(np.sort(rng.integers(0, count, (int(rng.integers(0, count + 1)), 2)), axis=1), axis=0)
    pairs = place[pairs[pairs[:, 0] < pairs[:, 1]]]
    return ragged_dag(count, pairs[:, 0], pairs[:, 1])


def by_itself(dag: DAG, strategy: str, seed: int) -> tuple[Tree, np.ndarray]:
    """`alone`, of a DAG."""
    return alone(dag.node_count, tuple(zip(dag.tail.tolist(), dag.head.tolist(), strict=True)), strategy, seed)


def side_by_side(on: Any, trees: list[Tree]) -> Tree:
    """Arguments of a batch from those of its graphs; NaN for all that is padding."""

    def filled(shape: tuple[int, ...], *arrays: Any) -> np.ndarray:
        real = np.concatenate([np.asarray(array) for array in arrays])
        return np.concatenate([real, np.full((shape[0] - len(real), *shape[1:]), np.nan)])

    q, k, v = (filled(shape, *(tree[place] for tree in trees)) for place, shape in enumerate(on.signature.inputs.values()))
    gates = {name: filled(shape, *(tree[3][name] for tree in trees)) for name, shape in on.signature.gates.items()}
    return q, k, v, gates


def results(on: Any, here: Batch, trees: list[Tree]) -> Iterator[np.ndarray]:
    """What each graph of a batch gives."""
    return (np.asarray(part) for part in here.split_nodes(on(*side_by_side(on, trees))))


# --- C19: what is traced again

MOST = 8
"""Programs for thirty-two sizes."""
GATES = "    source = sigmoid(linear(x))\n    transition = sigmoid(linear(x))\n    mark = tanh(linear(x))\n"


@cache
def scan(topology: str) -> Any:
    return stmlang.compile((AT_RUN_TIME if topology == "g" else "") + scan_on(topology, GATES), dtype="float64")


def layer(topology: str, seed: int = 0) -> ScanLayer:
    return ScanLayer(scan(topology), 4, key=jax.random.key(seed))


class Traced:
    """A compiled call of a layer on graphs, which counts how often it is traced."""

    def __init__(self) -> None:
        self.count = 0
        self.call = eqx.filter_jit(self._call)

    def _call(self, layer: ScanLayer, x: jax.Array, on: Any) -> jax.Array:
        self.count += 1
        return layer(x, on=on)


def features(dag: DAG) -> np.ndarray:
    return np.random.default_rng(dag.node_count).standard_normal((dag.node_count, 4))


def path(length: int) -> DAG:
    return ragged_dag(length, np.arange(length - 1), np.arange(1, length))


def test_C19_lengths_share_programs() -> None:
    """Thirty-two lengths as graphs in one bucket: few programs, and the same numbers as from chains of those very lengths."""
    rng, mine, traced = np.random.default_rng(0), layer("g"), Traced()
    dags = [path(int(length)) for length in rng.permutation(np.arange(1, 129))[:32]]
    bucket = Bucket.covering(Bucket.of([dag]) for dag in dags)
    for number, dag in enumerate(dags):
        here = batch([dag], bucket=bucket)
        (found,) = here.split_nodes(traced.call(mine, jnp.asarray(here.nodes([features(dag)])), mine.op.at(here)))
        if number < 3:
            exact = eqx.filter_jit(layer(f"chain(t = {dag.node_count})"))(jnp.asarray(features(dag)))
            assert error(found, exact) < 1e-12
    assert traced.count <= MOST


def test_C19_graphs_share_programs() -> None:
    """Thirty-two batches, no two of the same size: few programs, whose numbers are those of each graph in a bucket of its own.
    Other seeds of the layer compile nothing."""
    rng, mine, traced = np.random.default_rng(0), layer("g"), Traced()
    lists = [[random_graph(rng, 80) for _ in range(12)] for _ in range(32)]
    sizes = {(sum(dag.node_count for dag in dags), sum(dag.edge_count for dag in dags)) for dags in lists}
    assert len(sizes) == 32
    bucket = Bucket.covering(Bucket.of(dags) for dags in lists)
    for dags in lists:
        here = batch(dags, bucket=bucket)
        x = here.nodes([features(dag) for dag in dags])
        found = here.split_nodes(traced.call(mine, jnp.asarray(x), mine.op.at(here)))
    assert traced.count <= MOST
    before = traced.count
    traced.call(layer("g", 1), jnp.asarray(x), layer("g").op.at(here))
    assert traced.count == before
    for dag, part in list(zip(dags, found, strict=True))[:2]:
        single = batch([dag])
        (exact,) = single.split_nodes(mine(jnp.asarray(single.nodes([features(dag)])), on=mine.op.at(single)))
        assert error(part, exact) < 1e-12


# --- C23: isolated nodes and the number of nodes

LONER = ragged_dag(3, np.asarray([0]), np.asarray([1]))
DIAMOND = ragged_dag(4, np.asarray([0, 0, 1, 2]), np.asarray([1, 2, 3, 3]))


@pytest.mark.parametrize("strategy", BODIES)
def test_C23_batches_give_what_their_graphs_give(strategy: str) -> None:
    """With isolated nodes in the middle and at the end."""
    dags = [LONER, DIAMOND, LONER]
    singles = [by_itself(dag, strategy, number) for number, dag in enumerate(dags)]
    here = batch(dags)
    assert here.node_start.tolist() == [0, 3, 7, 10]
    found = results(at_run_time(strategy).at(here), here, [tree for tree, _ in singles])
    for (_, wanted), part in zip(singles, found, strict=True):
        assert error(part, wanted) < 1e-12


@pytest.mark.parametrize("ids", [[100, 3, 7], ["carbon", "oxygen", "3"], [100, "3", (7, "a")]])
def test_C23_ids_are_mapped_by_a_table(ids: list[Any]) -> None:
    """Which is the order of `nodes`, with nodes that no edge names."""
    found = convert([(ids[0], ids[1])], nodes=ids)
    assert list(found.ids) == ids
    assert (found.dag.tail.tolist(), found.dag.head.tolist(), found.dag.node_count) == ([0], [1], 3)
    here = batch([found.dag, DIAMOND])
    assert here.tail.tolist()[:5] == [0, 3, 3, 4, 5]


def test_C23_a_node_count_that_nobody_gave_shifts_nothing() -> None:
    """Where nothing says how many nodes there are it is an error; an edge list that ends too early is one as soon as features
    come for it."""
    index = np.asarray([[0], [1]])
    with pytest.raises(TypeError, match="nodes"):
        from_edge_index(index, listing="directed")  # type: ignore[call-arg]
    with pytest.raises(SpecError, match="STM3503"):
        as_dag({"edge_index": index}, listing="directed")
    assert as_dag({"edge_index": index, "x": np.ones((3, 2))}, listing="directed").node_count == 3
    assert as_dag([(0, 1)], nodes=3).node_count == 3
    short = batch([as_dag([(0, 1)]), DIAMOND])
    with pytest.raises(SpecError, match="STM3509"):
        short.nodes([np.ones((3, 4)), np.ones((4, 4))])


# --- C25: disjoint unions


@cache
def many(count: int) -> tuple[DAG, ...]:
    rng = np.random.default_rng(0)
    return tuple(random_graph(rng, 40) for _ in range(count))


def test_C25_a_batch_has_no_cycle_and_the_levels_of_its_members() -> None:
    """256 graphs of up to 40 nodes, in several components: no cycle, and each node at the level that it has in its own
    graph."""
    dags = many(256)
    assert {dag.node_count for dag in dags} >= {1, 40}
    here = batch(dags)
    assert find_cycle(here.tail, here.head, here.bucket.nodes) is None
    levels = [node_levels(dag) for dag in dags]
    np.testing.assert_array_equal(node_levels(here.dag)[here.node_mask], np.concatenate(levels))
    assert node_levels(here.dag).max() == max(part.max() for part in levels)


@pytest.mark.parametrize("strategy", BODIES)
@pytest.mark.parametrize("count", [40, pytest.param(256, marks=pytest.mark.slow)])
def test_C25_a_batch_gives_what_its_members_give(count: int, strategy: str) -> None:
    """Whatever the order in which they stand."""
    dags = many(count)
    singles = [by_itself(dag, strategy, number) for number, dag in enumerate(dags)]
    for order in (np.arange(count), np.random.default_rng(1).permutation(count)):
        here = batch([dags[number] for number in order])
        found = results(at_run_time(strategy).at(here), here, [singles[number][0] for number in order])
        for number, part in zip(order, found, strict=True):
            assert error(part, singles[number][1]) < 1e-12
