"""Directions with queries, keys or values of their own: every strategy agrees with the recurrence, in value, states and
gradient, and so do gating matrices, masks, segments, steps, batches of graphs, and the sum of the directions one by one."""

from __future__ import annotations

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
from stmlang.oracle.dense import gating_by_paths, gating_matrix, solved
from stmlang.oracle.recurrence import reference
from tests.equivalence.test_candidates import GRADIENT, VALUE, check, check_value, every
from tests.helpers.calls import as_tree, compiled, error, expected
from tests.helpers.cases import (
    ANY,
    CONSTANT,
    CORNERS,
    DELTA,
    ERASE,
    FACTORS,
    GIVEN,
    KEY,
    KEY_TURN,
    MAMBA,
    MAMBA_2D,
    MATRIX,
    MLSTM,
    NODES,
    NONE,
    ONE_TURN,
    OVERWRITE_EDGES,
    OVERWRITE_TURN,
    RAGGED,
    READ_AFTER,
    SMALL,
    SQUARE,
    SUM,
    SYSTEM,
    TRACKS,
    TREE,
    Case,
    delta,
    delta_separable,
    impulse,
    linear,
    raster,
    separable,
    walk,
    ways,
)

BOTH, ALL, CONCAT = (f"    directions {words}\n" for words in ("both own q k v", "all own q k v", "all own q k v concat"))
KEYS, QUERIES, VALUES = (f"    directions {words}\n" for words in ("both own k", "all own q", "all own v concat"))
TWO = "    directions +rows -cols, -rows +cols own q k v\n"
WRITES = """
    k = l2norm(k)
    source[out, write] = given()
    transition[out, in] = given()
    mark[in, read] = given()
    direct[read, write] = given()
"""
REDEFINED = """
    decay = sigmoid(linear(x))
    q = q * given()
    k = l2norm(k) * decay
    source[out] = sum(k[key] * q[key], over = key)
    transition[out, in] = decay * 0.5
    mark[in] = given()
    direct = mean(v, over = value)
"""
CASES = (
    Case("chain 1", "chain(t = 1)", GIVEN + BOTH + NONE, (*ways({"tile": (1,)}), *linear(1))),
    Case("chain 2", "chain(t = 2)", READ_AFTER + CONCAT, (*ways({"tile": (1,)}), *linear(1))),
    Case("chain 13", "chain(t = 13)", READ_AFTER + BOTH, (*ways({"tile": (4,)}), *linear(5))),
    Case("chain 7 keys", "chain(t = 7)", GIVEN + KEYS + NONE, (*ways({"tile": (3,)}), *linear(3))),
    Case("chain 5 redefined", "chain(t = 5)", REDEFINED + BOTH + NONE, (*ways(), *linear(2))),
    Case("chain 5 key", "chain(t = 5)", KEY + VALUES, (*ANY, *linear(4), *walk(2))),
    Case("chain 7 mamba", "chain(t = 7)", MAMBA + BOTH, (*ANY, *walk(3))),
    Case("chain 9 delta", "chain(t = 9)", DELTA + BOTH, (*ANY, *delta(4), *SYSTEM), key=4),
    Case("chain 5 erase", "chain(t = 5)", ERASE + CONCAT + NONE, (*ANY, *delta(3))),
    Case("chain 5 tracks", "chain(t = 5)", TRACKS + BOTH + NONE, (*ANY, *walk(2))),
    Case("chain 5 sum", "chain(t = 5)", SUM + BOTH, (*ways({"tile": (3,)}), *linear(2))),
    Case("chain 7 mlstm", "chain(t = 7)", MLSTM + BOTH, (*ways({"tile": (3,)}), *linear(3))),
    Case("chain 5 constant", "chain(t = 5)", CONSTANT + BOTH + NONE, impulse((2,))),
    Case("chain 5 writes", "chain(t = 5)", WRITES + BOTH + NONE, (*ways({"tile": (2,)}), *linear(2)), writes=2, reads=3),
    Case("grid 1x1", SQUARE.format(1, 1), GIVEN + ALL + NONE, (*ways({"tile": (1, 1)}), *raster((1, 1))), heads=1),
    Case("grid 3x2", SQUARE.format(3, 2), GIVEN + ALL + NONE, (*ways({"tile": (2, 1)}), *raster((2, 2)), ("rows", None))),
    Case("grid 3x4 queries", SQUARE.format(3, 4), GIVEN + QUERIES + NONE, (("rows", None), ("parallel", None)), heads=1),
    Case("grid 2x3 writes", SQUARE.format(2, 3), WRITES + TWO + NONE, (*ANY, ("rows", None)), heads=1, writes=2, reads=2),
    Case("grid 4x3 turn", SQUARE.format(4, 3), ONE_TURN.format("cols", "rows") + ALL + NONE, separable(2, 4)),
    Case("grid 2x5 turn", SQUARE.format(2, 5), ONE_TURN.format("rows", "cols") + CONCAT + NONE, separable(2)),
    Case("grid 3x4 constant", SQUARE.format(3, 4), CONSTANT + ALL + NONE, impulse((3, 2))),
    Case("grid 3x2 mamba", SQUARE.format(3, 2), MAMBA_2D + ALL, (*ANY, *walk(2))),
    Case("grid 2x3 key turn", SQUARE.format(2, 3), KEY_TURN.format("cols", "rows") + TWO + NONE, (*CORNERS, *walk(1))),
    Case("grid 2x3 key writes", SQUARE.format(2, 3), KEY_TURN.format("cols", "rows") + ALL + NONE, CORNERS, writes=2, reads=2),
    Case("grid 3x2 matrix", SQUARE.format(3, 2), MATRIX + TWO + NONE, (*ANY, *walk(3))),
    Case("grid 3x2 overwrite", SQUARE.format(3, 2), OVERWRITE_EDGES + TWO + NONE, SYSTEM),
    Case(
        "grid 3x5 overwrite turn", SQUARE.format(3, 5), OVERWRITE_TURN.format("cols", "rows") + ALL + NONE, delta_separable(2)
    ),
    Case(
        "grid 2x2x2", "grid(a = 2, b = 2, c = 2)", GIVEN + "    directions +a -b +c, -a +b +c own k v\n" + NONE, ways(), heads=1
    ),
    Case("dag", SMALL, GIVEN + BOTH + NONE, (*ways({"block": 2}), *NODES)),
    Case("dag concat", SMALL, RAGGED + CONCAT.replace("all", "both") + NONE, (*ways({"block": 4}), *NODES), heads=1),
    Case("dag keys", SMALL, REDEFINED + KEYS.replace("own k", "own q k") + NONE, (*ANY, ("dense", None)), heads=1),
    Case("dag writes", SMALL, WRITES + BOTH + NONE, (*ANY, *NODES), heads=1, writes=2, reads=3),
    Case("dag delta", SMALL, DELTA + BOTH, (*ANY, NODES[0], *SYSTEM)),
    Case("tree", TREE, FACTORS + BOTH + NONE, (*ways({"block": 4}), *NODES), heads=1),
    Case("loners", "dag { a; b }", GIVEN + BOTH + NONE, (*ANY, *NODES)),
)


def case_of(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


@pytest.mark.parametrize(("case", "way"), every(CASES, GRADIENT))
def test_value_and_gradient(case: Case, way: Any) -> None:
    check(case, way, "float64", 1e-10)


@pytest.mark.parametrize(("case", "way"), every(CASES, VALUE))
def test_value(case: Case, way: Any) -> None:
    check_value(case, way)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "way"), every(CASES))
def test_double(case: Case, way: Any) -> None:
    check(case, way, "float64", 1e-10)


@pytest.mark.parametrize("name", ["chain 13", "grid 3x2", "dag", "dag concat"])
def test_second_oracle(name: str) -> None:
    """The dense solve, which adds up directions by itself."""
    op, wanted = compiled(case_of(name)), expected(case_of(name))
    assert error(wanted.result.h, solved(op.scan, op.dag, *as_tree(wanted.arguments)).h) < 1e-10


@pytest.mark.parametrize("name", ["chain 13", "grid 3x2", "dag", "chain 5 writes", "dag writes"])
def test_gating_matrix(name: str) -> None:
    """One for each direction, side by side; by the other oracle, and by a sum over paths."""
    op, arguments = compiled(case_of(name)), expected(case_of(name)).arguments
    q, k, v, gates, _ = as_tree(arguments)
    matrix = np.asarray(op.gating_matrix(gates, q, k, v))
    assert matrix.shape[2 * len(op.node_shape)] == op.scan.heads * len(op.scan.directions)
    for method in ({}, {"method": gating_by_paths}) if op.dag.edge_count < 20 else ({},):
        assert error(matrix, gating_matrix(op.scan, op.dag, q, k, v, gates, **method)) < 1e-10


@pytest.mark.parametrize("text", ["chain(t = 6)", "grid(t = 3, u = 2)"])
def test_sum_of_single_directions(text: str) -> None:
    """Each direction by itself with its own queries, keys and values, added up."""
    body = "scan s(heads = 2, key = 3, value = 2) on {} {{ directions {}; source = {}; transition = 0.5; direct = {} }}"
    both = stmlang.compile(body.format(text, "both own q k v", "given()", "given()"), dtype="float64")
    q, k, v, gates = both.example()
    rank = len(both.node_shape)
    assert q.shape[rank : rank + 2] == (2, 2)
    h = both(q, k, v, gates)
    each = []
    for number, word in enumerate(("forward", "backward")):
        op = stmlang.compile(body.format(text, word, "given()", "given()"), dtype="float64")
        own = {name: jnp.take(array, number, rank + 1) if name == "source" else array for name, array in gates.items()}
        each.append(op(*(jnp.take(array, number, rank + 1) for array in (q, k, v)), own))
    assert error(h, sum(each)) < 1e-12


def test_equal_inputs_are_shared_ones() -> None:
    """With the same arrays for all directions the result is that of directions that share them."""
    text = "scan s(heads = 2, key = 3, value = 2) on grid(rows = 3, cols = 4) {{ directions all{}; source[out] = given(); {} }}"
    rest = "transition[out, in] = given(-0.5, 0.5); mark[in] = given()"
    shared, own = (stmlang.compile(text.format(words, rest), dtype="float64") for words in ("", " own q v"))
    q, k, v, gates = shared.example()
    repeated = (jnp.repeat(array[:, :, :, None], 4, axis=3) for array in (q, v))
    several = next(repeated), k, next(repeated)
    assert error(own(*several, gates), shared(q, k, v, gates)) < 1e-12


def test_masks_and_segments() -> None:
    """Packed pieces are the pieces one by one, and what is masked is skipped."""
    case = case_of("chain 13")
    op, arguments = compiled(case), expected(case).arguments
    q, k, v, gates, _ = as_tree(arguments)
    mask = np.asarray([True, False, True, True, True, False, False, True, True, True, True, True, False])
    numbers = np.asarray([0] * 5 + [1] * 8)
    h = np.asarray(op(q, k, v, gates, mask=jnp.asarray(mask), segments=jnp.asarray(numbers)))
    for number in range(2):
        kept = mask & (numbers == number)
        short = stmlang.compile(case.text.replace("t = 13", f"t = {kept.sum()}"), dtype="float64")
        alone = short(q[kept], k[kept], v[kept], {name: array[kept] for name, array in gates.items()})
        assert error(h[kept], alone) < 1e-12
    assert not h[~mask].any()


def test_walked_masks() -> None:
    """Where nodes evaluate their gates too."""
    body = "transition[key, value] = given(0, 1); source = given(); read after"
    text = f"scan s(key = 2, value = 3) on chain(t = 6) {{ directions both own k v; {body} }}"
    ops = [stmlang.compile(text, dtype="float64", strategy=name) for name in ("walk", "recurrent")]
    arguments, mask = ops[0].example(), jnp.asarray([True, False, True, True, False, True])
    first, second = (op(*arguments, mask=mask) for op in ops)
    assert error(first, second) < 1e-12


def test_steps() -> None:
    """Row by row, several directions that go along the rows."""
    text = "scan s(heads = 2, key = 2, value = 3) on grid(rows = 3, cols = 4) {"
    text += (
        " directions +rows +cols, +rows -cols own q k v concat; source[out] = given(); transition[out, in] = given(-0.5, 0.5) }"
    )
    op = stmlang.compile(text, dtype="float64")
    arguments = op.example()
    state, rows = op.init_state(), []
    for number in range(3):
        h, state = op.step(state, *op.step_arguments(number, *arguments))
        rows.append(h)
    assert error(jnp.stack(rows), op(*arguments)) < 1e-12


GRAPHS = [
    ragged_dag(4, np.asarray([0, 0, 1, 2]), np.asarray([1, 2, 3, 3])),
    ragged_dag(1, np.zeros(0, np.int64), np.zeros(0, np.int64)),
    ragged_dag(3, np.asarray([2, 1]), np.asarray([1, 0])),
]


@pytest.mark.parametrize("strategy", ["recurrent", "nodes", "packed", "packed_nodes"])
def test_graphs_at_run_time(strategy: str) -> None:
    body = "f[out] = sigmoid(linear(x)); source[out] = given(); mark[in] = given(); direct = given(); stabilize none"
    body += "; transition[out, in] = f[out] * 0.5; directions both own q k v"
    text = f"scan s(key = 2, value = 3) on dag(nodes <= 16, edges <= 16) {{ {body} }}"
    together = batch(GRAPHS)
    op = stmlang.compile(text, dtype="float64", strategy=strategy).at(together)
    q, k, v, gates = op.example()
    assert q.shape[1:] == (1, 2, 2)
    wanted = together.split_nodes(reference(op.scan, op.dag, q, k, v, gates).h)
    assert max(map(error, together.split_nodes(op(q, k, v, gates)), wanted)) < 1e-12


def test_artifacts(tmp_path: Path) -> None:
    """Of a scan with its step."""
    text = "scan s(heads = 2, key = 2, value = 3) on grid(rows = 2, cols = 3) { directions +rows +cols, +rows -cols own k v;"
    op = stmlang.compile(text + " source[out] = given(); transition[out, in] = given(-0.5, 0.5) }")
    path = tmp_path / "own.stmx"
    op.export(path, step=True, batch=None)
    loaded, arguments = stmlang.load(path), op.example()
    h = op(*arguments)
    assert error(loaded(*arguments), h) < 1e-5
    state = loaded.init_state()
    for number in range(2):
        row, state = loaded.step(state, *op.step_arguments(number, *arguments))
        assert error(row, h[number]) < 1e-5


def test_sizes_that_come_with_the_arrays() -> None:
    """An open scan takes any length, and one of few lengths fills up."""
    text = (
        "scan s(key = 2, value = 3, reads = 2) on chain(time) { directions both own q v; source = given(); transition = 0.5 }"
    )
    closed = stmlang.compile(text, dtype="float64", time=5)
    arguments = closed.example()
    for op in (stmlang.compile(text, dtype="float64"), stmlang.compile(text, dtype="float64", time=stmlang.Lengths(up_to=16))):
        assert error(op(*arguments), closed(*arguments)) < 1e-12


def test_one_direction_has_no_axis() -> None:
    """What each direction has of its own, a single one has."""
    text = "scan s(key = 2, value = 3) on chain(t = 4) {{ directions {}; source = given(); transition = 0.5 }}"
    plain, own = (stmlang.compile(text.format(words), dtype="float64") for words in ("backward", "backward own q k v"))
    assert plain.signature.inputs == own.signature.inputs
    arguments = plain.example()
    np.testing.assert_array_equal(plain(*arguments), own(*arguments))


def test_layer() -> None:
    """A layer has a projection for each direction, and its gradient reaches all of them."""
    op = stmlang.compile(
        "scan s(heads = 2, key = 3, value = 2) on chain(t = 5) { directions both own q v; source = 1; transition = 0.5 }"
    )
    layer = ScanLayer(op, 6, gate="silu", key=jax.random.key(0))
    assert layer.query.weight.shape == (2, 2, 3, 6)
    assert layer.key.weight.shape == (2, 3, 6)
    assert layer.value.weight.shape == (2, 2, 2, 6)
    x = jax.random.normal(jax.random.key(1), (5, 6))
    gradient = jax.grad(lambda weight: jnp.sum(jnp.sin(_with_query(layer, weight)(x))))(layer.query.weight)
    assert (np.abs(np.asarray(gradient)).max(axis=(0, 2, 3)) > 0).all()


def _with_query(layer: Any, weight: Any) -> Any:
    return eqx.tree_at(lambda layer: layer.query.weight, layer, weight)
