"""Compiled scans are values: equal specs, sizes and choices are equal, whatever became of them in between."""

from __future__ import annotations

import copy
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph import batch
from stmlang.graph.build import ragged_dag
from stmlang.nn import ScanLayer
from stmlang.runtime import planned
from stmlang.source.diagnostic import SpecError
from stmlang.strategies.registry import without_kernels
from tests.helpers.cases import KEY_TURN, NONE

BODY = "source = sigmoid(linear(x)); transition = 0.5; mark = 1; direct = 0"
DAG = f"scan s(heads = 1, key = 2, value = 2) on dag {{ a -> b, c; b, c -> d }} {{ {BODY} }}"
GRAPHS = f"topology g = dag(nodes <= 100, edges <= 200)\nscan s(heads = 1, key = 2, value = 2) on g {{ {BODY} }}"
CHAIN = f"scan s(heads = 1, key = 2, value = 2) on chain(t) {{ {BODY} }}"
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "chain": (CHAIN, {"t": 5}),
    "grid": ("std:plstm/image_p", {"rows": 3, "cols": 4}),
    "dag": (DAG, {}),
    "open": (CHAIN, {}),
    "graphs": (GRAPHS, {}),
}
COPIES = {
    "compiled again": lambda _, kind: made(kind),
    "copied": lambda op, _: copy.deepcopy(op),
    "stored": lambda op, _: pickle.loads(pickle.dumps(op)),
}


def made(kind: str, **options: Any) -> Any:
    spec, bound = KINDS[kind]
    return stmlang.compile(spec, **bound, **options)


@cache
def one(kind: str) -> Any:
    return made(kind)


def layer(op: Any, seed: int = 0) -> ScanLayer:
    return ScanLayer(op, 3, key=jax.random.key(seed))


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("kind", KINDS)
def test_equal(kind: str, way: str) -> None:
    op = one(kind)
    other = COPIES[way](op, kind)
    assert (op == other) is True
    assert hash(op) == hash(other)
    assert {op: 1}[other] == 1
    assert str(op) == str(other)
    assert jax.tree.structure(op) == jax.tree.structure(other)
    assert (op.scan, op.dtype) == (other.scan, other.dtype)


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_averaged(kind: str, way: str) -> None:
    """Averages of weights, target networks, weights that were loaded."""
    ours = layer(one(kind))
    theirs = layer(COPIES[way](one(kind), kind), 1)
    middle = jax.tree.map(lambda a, b: (a + b) / 2, ours.query, theirs.query)
    both = jax.tree.map(lambda a, b: (a + b) / 2 if jnp.issubdtype(a.dtype, jnp.floating) else a, ours, theirs)
    np.testing.assert_array_equal(both.query.weight, middle.weight)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("chain", {"dtype": "bfloat16"}),
        ("chain", {"strategy": "recurrent"}),
        ("chain", {"batch": 7}),
        ("grid", {"strategy": "chunkwise", "config": {"tile": (2, 2)}}),
        ("open", {"mode": "inference"}),
        ("graphs", {"dtype": "bfloat16"}),
    ],
)
def test_unequal(kind: str, options: dict[str, Any]) -> None:
    assert one(kind) != made(kind, **options)


def test_other_sizes_and_specs_are_unequal() -> None:
    assert stmlang.compile(CHAIN, t=5) != stmlang.compile(CHAIN, t=6)
    assert stmlang.compile(DAG) != stmlang.compile(DAG.replace("a -> b, c", "a -> b; a -> c; a -> d"))
    assert stmlang.compile(CHAIN, t=5) != stmlang.compile(CHAIN.replace("0.5", "0.25"), t=5)
    assert one("chain") != "a scan"


def test_comments_and_names_of_files_do_not_matter() -> None:
    assert stmlang.compile("# a comment\n" + CHAIN, t=5) == one("chain")


def test_stored_scans_compute_the_same() -> None:
    """In value, facts and plan, however far they have come."""
    for kind in ("grid", "dag"):
        op = one(kind)
        other = pickle.loads(pickle.dumps(op))
        arguments = op.example()
        np.testing.assert_array_equal(op(*arguments), other(*arguments))
        assert op.explain() == other.explain()
        assert op.plan == other.plan
    op = pickle.loads(pickle.dumps(one("open")))
    q = jnp.ones((4, 1, 2))
    np.testing.assert_array_equal(
        op(q, q, q, {op.scan.leaves[0].name: q[..., 0]}), one("open")(q, q, q, {op.scan.leaves[0].name: q[..., 0]})
    )


def test_nothing_is_compiled_twice_for_equal_scans() -> None:
    first, again = made("chain"), made("chain")
    arguments = first.example()
    first(*arguments)
    before = planned.evaluate_cache_size()
    again(*arguments)
    pickle.loads(pickle.dumps(first))(*arguments)
    assert planned.evaluate_cache_size() == before
    traced = 0

    @jax.jit
    def call(layer: ScanLayer, x: jax.Array) -> jax.Array:
        nonlocal traced
        traced += 1
        return layer(x)

    x = jnp.ones((5, 3))
    for op in (first, again, copy.deepcopy(first)):
        call(layer(op), x)
    assert traced == 1


def test_batches_of_one_shape_are_one_program() -> None:
    """Graphs that come at run time are told apart by their tables, and not in what is compiled."""
    graphs = [ragged_dag(3, np.array(tail), np.array(head)) for tail, head in (([0, 1], [1, 2]), ([0, 0], [1, 2]))]
    ours, theirs = (made("graphs").at(batch([graph])) for graph in graphs)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    assert ours.compilation == theirs.compilation
    assert ours != theirs
    assert ours == pickle.loads(pickle.dumps(ours))


def test_artifacts_are_values(tmp_path: Path) -> None:
    op, path = one("chain"), tmp_path / "op.stmx"
    op.export(path, platforms=["cpu"], batch=None)
    loaded = stmlang.load(path)
    for other in (stmlang.load(path), pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)):
        assert loaded == other
        assert hash(loaded) == hash(other)
        arguments = jax.tree.map(lambda array: jnp.asarray(array, "float32"), op.example())
        np.testing.assert_array_equal(loaded(*arguments), other(*arguments))


@pytest.mark.parametrize("kinds", [("chain", "grid"), ("open", "graphs"), ("dag", "chain")])
def test_messages_about_unlike_trees_are_short(kinds: tuple[str, str]) -> None:
    ours, theirs = (layer(one(kind)) for kind in kinds)
    with pytest.raises(ValueError, match="tree") as caught:
        jax.tree.map(lambda a, _: a, ours, theirs)
    assert len(str(caught.value)) < 2000


def test_artifacts_of_models_are_values(tmp_path: Path) -> None:
    model, path, x = layer(one("chain")), tmp_path / "model.stmx", jnp.ones((5, 3), "float32")
    narrow = jax.tree.map(lambda array: array.astype("bfloat16") if array.dtype == model.out.dtype else array, model)
    stmlang.export(narrow, x, path)
    loaded = stmlang.load(path)
    for other in (stmlang.load(path), pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)):
        assert (loaded == other, hash(loaded) == hash(other)) == (True, True)
        np.testing.assert_array_equal(loaded(x), other(x))
    assert loaded != 1


RANK_ONE = "source = sigmoid(linear(x)); transition = 0.5 * sigmoid(linear(x)); mark = 1; direct = 0"
KINDS_OF_TABLES: dict[str, tuple[str, dict[str, Any]]] = {
    **KINDS,
    "one node": (CHAIN, {"t": 1}),
    "one node of a dag": (f"scan s(heads = 1, key = 2, value = 2) on dag {{ a }} {{ {BODY} }}", {}),
    "rank one": (f"scan s(heads = 1, key = 2, value = 2) on dag {{ a -> b, c; b, c -> d }} {{ {RANK_ONE} }}", {}),
    "rank one graphs": (GRAPHS.replace(BODY, RANK_ONE), {}),
    "impulse": ("std:plstm/image_constant", {"rows": 3, "cols": 4}),
    "two types of turns": ("std:plstm/image_d", {"rows": 3, "cols": 4}),
    "one turn": (
        f"scan s(heads = 1, key = 2, value = 2) on grid(rows, cols) {{{KEY_TURN.format('cols', 'rows')}{NONE}}}",
        {"rows": 3, "cols": 4},
    ),
    "delta": ("std:chain/deltanet", {"time": 5}),
    "tracks": ("std:plstm/chain_tracking", {"time": 5}),
    "delta on an image": ("std:plstm/image_delta", {"rows": 3, "cols": 4}),
}


def is_empty(node: Any) -> bool:
    return type(node) is tuple and not node


@pytest.mark.filterwarnings("ignore::stmlang.StabilityWarning")
def test_tables_are_replaced_leaf_by_leaf() -> None:
    """Of all strategies: `eqx.tree_at` sees the leaves that JAX sees, which it does not where there are empty tuples."""
    seen: set[str] = set()
    for spec, bound in KINDS_OF_TABLES.values():
        assert stmlang.compile(spec, **bound)
        for strategy in without_kernels():
            try:
                op = stmlang.compile(spec, **bound, strategy=strategy.name)
                op = op.at(ragged_dag(3, np.asarray([0, 1]), np.asarray([1, 2]))) if isinstance(op, stmlang.GraphScan) else op
            except SpecError:
                continue
            if isinstance(op, stmlang.OpenScan):
                continue
            seen.add(strategy.name)
            assert not any(map(is_empty, jax.tree.leaves(op, is_leaf=is_empty)))
            leaves = jax.tree.leaves(op)
            moved = eqx.tree_at(jax.tree.leaves, op, [leaf + 1 for leaf in leaves]) if leaves else op
            for mine, other in zip(jax.tree.leaves(moved), leaves, strict=True):
                np.testing.assert_array_equal(mine, other + 1)
    assert {strategy.name for strategy in without_kernels()} - seen == set()
