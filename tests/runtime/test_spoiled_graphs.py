"""A number that is not finite stays in its graph: in no other one of a batch does it change a value or a derivative."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph import Batch, batch
from tests.graph.graphs import banded
from tests.runtime.test_graphs import features, layer, random_graph, spec

HERE = batch([random_graph(5, 8, 0), random_graph(13, 30, 1), banded(70, 100, 3, 2), random_graph(9, 14, 3)])
"""The third is in two cells, one of which the others share. All that fills the batch up is one graph more."""
WAYS = (("P", "packed"), ("P", "recurrent"), ("rank one", "packed_nodes"), ("rank one", "nodes"))
WIDE = "topology g = dag(nodes <= 1024, edges <= 4096)"
Arguments = Any
"""`{"q": ..., "k": ..., "v": ...}` and the gates by name."""


class Ways:
    """A scan on the batch, by a strategy: its result, its gradient and its derivative along tangents, compiled once."""

    def __init__(self, name: str, strategy: str) -> None:
        text = WIDE + "\n" + spec(name).split("\n", 1)[1]
        on = stmlang.compile(text, strategy=strategy, tuned=False)
        assert isinstance(on, stmlang.GraphScan)
        self.on = on.at(HERE)
        *inputs, gates = self.on.example(3)
        self.arguments: dict[str, Any] = {**dict(zip("qkv", inputs, strict=True)), **gates}
        random = np.random.default_rng(0)
        self.change = {key: random.standard_normal(array.shape).astype(np.float32) for key, array in self.arguments.items()}
        weight = random.standard_normal(self.on.signature.result).astype(np.float32)
        self.weight = np.where(HERE.node_mask[:, None, None], weight, 0)
        self.compiled = jax.jit(self.everything_of)

    def run(self, given: Arguments) -> Any:
        gates = {key: array for key, array in given.items() if key not in "qkv"}
        return self.on(given["q"], given["k"], given["v"], gates)

    def everything_of(self, given: Arguments, weight: Any, change: Arguments) -> dict[str, Any]:
        value, pull = jax.vjp(self.run, given)
        return {"value": value, "tangent": jax.jvp(self.run, (given,), (change,))[1], **pull(weight)[0]}

    def everything(self, given: Arguments, weight: Any = None, change: Arguments = None) -> dict[str, Any]:
        """By what it is of: the result, the gradient of each argument, the tangent."""
        weight, change = self.weight if weight is None else weight, self.change if change is None else change
        return jax.tree.map(np.asarray, self.compiled(given, weight, change))

    @property
    def read(self) -> list[str]:
        """The arguments that have a row for each node or edge."""
        sizes = (HERE.bucket.nodes, HERE.bucket.edges)
        return [key for key, array in self.arguments.items() if len(array) in sizes]


ways = cache(Ways)


def rows(array: Any, graph: int, here: Batch = HERE) -> slice:
    """Where the nodes or edges of a graph stand, or the padding behind the last one."""
    nodes = len(array) == here.bucket.nodes
    start = here.node_start if nodes else here.edge_start
    return slice(int(start[graph]), int(start[graph + 1]) if graph < here.count else len(array))


def spoiled(array: Any, graph: int, number: float) -> Any:
    """A copy with such a number at the second node or edge of a graph, in one head."""
    copy = np.array(array)
    copy[rows(array, graph)][1, ..., 0] = number
    return copy


def refuse_others(found: dict[str, Any], clean: dict[str, Any], graph: int, what: str) -> None:
    """Holds everything outside of a graph against what it is where no number is spoiled."""
    for key, array in found.items():
        if len(array) not in (HERE.bucket.nodes, HERE.bucket.edges):
            continue  # shared by all graphs
        for other in set(range(HERE.count)) - {graph}:
            here = rows(array, other)
            np.testing.assert_allclose(array[here], clean[key][here], rtol=1e-5, atol=1e-6, err_msg=f"{what}: {key} of {other}")


@pytest.mark.parametrize(("name", "strategy"), WAYS)
def test_no_other_graph_is_reached(name: str, strategy: str) -> None:
    """NaN and infinity in each argument, in the tangent of each, and in the cotangent; in small graphs, large ones, padding."""
    made = ways(name, strategy)
    clean = made.everything(made.arguments)
    assert all(np.isfinite(array).all() for array in clean.values())
    for graph, number in ((1, np.nan), (2, np.nan), (HERE.count, np.nan), (0, np.inf)):
        for what in made.read:
            given = {**made.arguments, what: spoiled(made.arguments[what], graph, number)}
            refuse_others(made.everything(given), clean, graph, f"{number} in {what} of {graph}")
            change = {**made.change, what: spoiled(made.change[what], graph, number)}
            found = made.everything(made.arguments, change=change)
            refuse_others(found, clean, graph, f"{number} in a tangent of {what} of {graph}")
        found = made.everything(made.arguments, weight=spoiled(made.weight, graph, number))
        refuse_others(found, clean, graph, f"{number} in a cotangent of {graph}")


@pytest.mark.parametrize(("name", "strategy"), WAYS[::2])
def test_nothing_that_is_spoiled_comes_out_finite(name: str, strategy: str) -> None:
    """What a NaN spoils in the recurrence, node by node, it spoils in cells too. So it is with gradients, and where states are
    swept, but for those of what nothing reads, which are zero."""
    made, swept = ways(name, strategy), ways(name, dict(WAYS[1::2])[name])
    clean = swept.everything(made.arguments)
    for graph in (1, 2):
        for what in made.read:
            given = {**made.arguments, what: spoiled(made.arguments[what], graph, np.nan)}
            found, wanted = made.everything(given), swept.everything(given)
            gates = {key: value for key, value in given.items() if key not in "qkv"}
            wanted["value"] = np.asarray(made.on.reference(given["q"], given["k"], given["v"], gates))
            assert np.isnan(wanted["value"]).any() or what not in "qkv"
            for key, values in wanted.items():
                here = np.isnan(values) & (clean[key] != 0)
                assert np.isnan(found[key][here]).all(), f"NaN in {what}: {key}"


def test_products_of_different_graphs_may_overflow() -> None:
    """Large queries of one graph, keys of another and cotangents of a third: no two of them meet."""
    made = ways("P", "packed")
    clean, weight = made.everything(made.arguments), np.array(made.weight)
    large = {key: np.array(array) for key, array in made.arguments.items()}
    for array, graph in ((large["q"], 0), (large["k"], 1), (weight, 3)):
        array[rows(array, graph)] *= np.float32(1e25)
    found = made.everything(large, weight)
    assert all(np.isfinite(array).all() for key, array in found.items())
    for graph in (0, 1):
        here = rows(clean["value"], graph)
        np.testing.assert_allclose(found["value"][here] / np.float32(1e25), clean["value"][here], rtol=1e-3, atol=1e-4)
    here = rows(clean["q"], 3)
    np.testing.assert_allclose(found["q"][here] / np.float32(1e25), clean["q"][here], rtol=1e-3, atol=1e-4)


def test_features_of_a_graph_stay_with_it() -> None:
    """A layer's outputs and the gradients of its inputs."""
    dags = list(HERE.dags[:2])
    here, made, (x, e) = batch(dags), layer("P", "packed"), features(dags)
    on = made.op.at(here)

    @jax.jit
    def both(x: Any, e: Any) -> Any:
        y, pull = jax.vjp(lambda x, e: made(x, edge_features=e, on=on), x, e)
        return y, pull(jnp.ones_like(y))

    nodes, edges = here.nodes(x), here.edges(e)
    clean = both(nodes, edges)
    for given in ((spoiled_first(nodes), edges), (nodes, spoiled_first(edges))):
        found = both(*given)
        assert np.isnan(found[0][: len(x[0])]).any()
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(clean), strict=True):
            kept = rows(one, 1, here)
            np.testing.assert_allclose(one[kept], other[kept], rtol=0, atol=1e-12)


def spoiled_first(array: Any) -> Any:
    copy = np.array(array)
    copy[0] = np.nan
    return copy
