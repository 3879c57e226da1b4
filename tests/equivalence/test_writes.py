"""Nodes that write and read several times: every strategy agrees with the recurrence, in value, states and gradient, and so do
gating matrices, masks and graphs that come at run time."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph import batch
from stmlang.graph.build import ragged_dag
from stmlang.oracle.dense import gating_by_paths, gating_matrix
from stmlang.oracle.recurrence import reference
from tests.equivalence.test_candidates import GRADIENT, VALUE, check, check_value, every
from tests.helpers.calls import as_tree, compiled, error, expected
from tests.helpers.cases import (
    ALL,
    ANY,
    BOTH,
    CONCAT,
    CONSTANT,
    CORNERS,
    KEY_TURN,
    MLSTM,
    NODES,
    NONE,
    SMALL,
    SQUARE,
    TREE,
    Case,
    delta,
    impulse,
    linear,
    raster,
    separable,
    tracks,
    ways,
)

GIVEN = """
    k = l2norm(k)
    source[out, write] = given()
    transition[out, in] = given()
    mark[in, read] = given()
    direct[read, write] = given()
"""
TURN = "    transition[out = cols, in = rows] = 0\n"
ONE_GATE_FOR_ALL = """
    v[value] = linear(x)
    source[out] = sigmoid(linear(x))
    transition[out, in] = 0.5
    direct = sum(mean(q, over = key), over = read) * sigmoid(linear(x))
"""
TRACKS = """
    source[out, track, write] = given()
    transition[out, in, track, track'] = l1norm(given(), over = track)
    mark[in, read, track] = given()
    direct[read, write] = given()
"""
TRACKS_AFTER = """
    source[write, track] = sigmoid(linear(x))
    transition[track, track'] = 0.5 * softmax(linear(x), over = track)
    read after
"""
ALL_TRACKS_AFTER = """
    source = sigmoid(linear(x))
    transition[track] = sigmoid(linear(x))
    read after
"""
KEY = """
    transition[key] = sigmoid(linear(x))
    source[key, write] = given(-1, 1)
    mark[in, read, value] = given()
    direct[read, key] = given()
"""
MATRIX = """
    source[out, write, value] = given()
    transition[out, in, key, key'] = given(-0.5, 0.5)
    mark[in, read, key, key'] = given()
    direct[value, write] = given()
"""
ERASE = """
    u[key] = l2norm(given())
    source[write] = given()
    strength = sigmoid(linear(x))
    transition[key, key'] = eye[key, key'] - strength * u[key] * u[key']
    mark[read] = given()
"""
SUM = """
    q = softplus(q)
    k = softplus(k)
    source[write] = sigmoid(linear(x))
    transition = sigmoid(linear(x))
    mark[read] = sigmoid(linear(x))
    direct = 1
    normalize sum
"""
CASES = (
    Case("chain 1", "chain(t = 1)", GIVEN + BOTH + NONE, (*ways({"tile": (1,)}), *linear(1)), writes=3, reads=2),
    Case("chain 5", "chain(t = 5)", GIVEN + CONCAT + NONE, (*ways({"tile": (2,)}), *linear(2)), writes=2, reads=3),
    Case(
        "chain 2 for all", "chain(t = 2)", ONE_GATE_FOR_ALL, (*ways({"tile": (1,)}), ("dense_nodes", None)), writes=2, reads=2
    ),
    Case("chain 7 tracks", "chain(t = 7)", TRACKS + BOTH + NONE, (*ANY, *tracks(1, 4)), writes=2, reads=3),
    Case("chain 5 tracks after", "chain(t = 5)", TRACKS_AFTER + BOTH, (*ANY, *tracks(2)), writes=2),
    Case("chain 4 all tracks after", "chain(t = 4)", ALL_TRACKS_AFTER, (*ANY, *tracks(8)), reads=2),
    Case("chain 6 key", "chain(t = 6)", KEY + BOTH, (*ANY, *linear(4)), writes=3, reads=2),
    Case("chain 5 erase", "chain(t = 5)", ERASE, (*ANY, *delta(2)), writes=2, reads=2),
    Case("chain 5 sum", "chain(t = 5)", SUM, (*ways({"tile": (3,)}), *linear(2)), writes=2, reads=2),
    Case("chain 7 mlstm", "chain(t = 7)", MLSTM + BOTH, (*ways({"tile": (3,)}), *linear(3)), writes=2, reads=2),
    Case("chain 5 constant", "chain(t = 5)", CONSTANT + BOTH + NONE, impulse((2,)), writes=2, reads=2),
    Case(
        "grid 3x2",
        SQUARE.format(3, 2),
        GIVEN + ALL + NONE,
        (*ways({"tile": (2, 1)}), *raster((2, 2)), ("rows", None)),
        heads=1,
        writes=2,
        reads=2,
    ),
    Case("grid 2x3 turn", SQUARE.format(2, 3), GIVEN + TURN + CONCAT + NONE, separable(2), writes=2, reads=2),
    Case("grid 3x2 key", SQUARE.format(3, 2), KEY_TURN.format("cols", "rows") + ALL + NONE, CORNERS, writes=2, reads=3),
    Case("grid 3x2 tracks", SQUARE.format(3, 2), TRACKS + ALL + NONE, ANY, heads=1, writes=2, reads=2),
    Case("grid 2x3 matrix", SQUARE.format(2, 3), MATRIX + NONE, ANY, writes=2, reads=3),
    Case("dag", SMALL, GIVEN + BOTH + NONE, (*ways({"block": 2}), *NODES), heads=1, writes=2, reads=3),
    Case("dag tracks", SMALL, TRACKS + CONCAT.replace("all", "both") + NONE, (*ANY, NODES[0]), heads=1, writes=3, reads=2),
    Case("tree matrix", TREE, MATRIX + NONE, (*ANY, NODES[0]), heads=1, writes=2, reads=2),
    Case("loners", "dag { a; b }", GIVEN + BOTH + NONE, (*ANY, *NODES), writes=2, reads=2),
)


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


@pytest.mark.parametrize("name", ["chain 5", "chain 7 tracks", "grid 3x2 tracks", "dag tracks"])
def test_gating_matrix(name: str) -> None:
    """For each write and each read, tracks summed; by the other oracle, and by a sum over paths."""
    case = next(case for case in CASES if case.name == name)
    op, arguments = compiled(case), expected(case).arguments
    q, k, v, gates, _ = as_tree(arguments)
    matrix = np.asarray(op.gating_matrix(gates, q, k, v))
    for method in ({}, {"method": gating_by_paths}) if op.dag.edge_count < 20 else ({},):
        assert error(matrix, gating_matrix(op.scan, op.dag, q, k, v, gates, **method)) < 1e-10


def test_gating_matrix_says_what_is_read() -> None:
    """`H[r] = sum over sources and writes of G q[r] . k[w] v[w]`."""
    case = next(case for case in CASES if case.name == "chain 7 tracks")
    op, arguments = compiled(case), expected(case).arguments
    q, k, v, gates, _ = as_tree(arguments)
    matrix = np.asarray(op.gating_matrix(gates))
    h = np.einsum("mhrk,nhwk,nmhwr,nhwv->mhrv", q, k, matrix, v)
    assert error(op(q, k, v, gates), h) < 1e-10


def test_read_after_tracks() -> None:
    """What leaves a node, its tracks added up, is what its query meets: the next node's mark of one says the same."""
    body = TRACKS_AFTER.replace("read after", "mark = 1")
    after, before = (
        stmlang.compile(f"scan s(key = 2, value = 3, track = 3, writes = 2) on chain(t = 5) {{{text}}}", dtype="float64")
        for text in (TRACKS_AFTER, body)
    )
    q, k, v, gates = after.example()
    h = np.asarray(after(q, k, v, gates))
    shifted = np.asarray(before(jnp.roll(q, 1, axis=0), k, v, gates))
    np.testing.assert_allclose(h[:-1], shifted[1:], rtol=0, atol=1e-12)


def test_masked_nodes_write_nothing() -> None:
    """On a chain they are skipped, whichever of their writes and reads there are."""
    case = next(case for case in CASES if case.name == "chain 7 tracks")
    op, arguments = compiled(case), expected(case).arguments
    q, k, v, gates, _ = as_tree(arguments)
    mask = np.asarray([True, True, False, True, True, False, True])
    short = stmlang.compile(case.text.replace("t = 7", "t = 5"), dtype="float64")
    kept = {name: array[mask] for name, array in gates.items()}
    h = np.asarray(op(q, k, v, gates, mask=jnp.asarray(mask)))
    assert error(h[mask], short(q[mask], k[mask], v[mask], kept)) < 1e-12
    assert not h[~mask].any()


GRAPHS = [
    ragged_dag(4, np.asarray([0, 0, 1, 2]), np.asarray([1, 2, 3, 3])),
    ragged_dag(1, np.zeros(0, np.int64), np.zeros(0, np.int64)),
    ragged_dag(3, np.asarray([2, 1]), np.asarray([1, 0])),
]
FACTORS = """
    f[out] = sigmoid(linear(x))
    source[out, write] = given()
    transition[out, in] = f[out] * 0.5
    mark[in, read] = given()
    direct[read, write] = given()
    directions both
    stabilize none
"""


@cache
def on_graphs(strategy: str) -> tuple[Any, list[np.ndarray], Any]:
    """A scan on a batch of graphs, what it gives on each of them, and the gradient of the sum of the squares."""
    text = f"scan s(key = 2, value = 3, writes = 2, reads = 3) on dag(nodes <= 16, edges <= 16) {{{FACTORS}}}"
    together = batch(GRAPHS)
    op = stmlang.compile(text, dtype="float64", strategy=strategy).at(together)

    def squares(*arguments: Any) -> tuple[jax.Array, list[Any]]:
        each = together.split_nodes(op(*arguments))
        return sum((jnp.sum(h**2) for h in each), jnp.zeros(())), each

    gradient, each = jax.grad(squares, argnums=(0, 1, 2, 3), has_aux=True)(*op.example())
    return op, [np.asarray(h) for h in each], gradient


@pytest.mark.parametrize("strategy", ["nodes", "packed", "packed_nodes"])
def test_graphs_at_run_time(strategy: str) -> None:
    op, each, gradient = on_graphs(strategy)
    q, k, v, gates = op.example()
    assert (q.shape[1:], k.shape[1:]) == ((1, 3, 2), (1, 2, 2))
    wanted = batch(GRAPHS).split_nodes(reference(op.scan, op.dag, q, k, v, gates).h)
    assert max(map(error, each, wanted)) < 1e-12
    assert max(jax.tree.leaves(jax.tree.map(error, gradient, on_graphs("recurrent")[2]))) < 1e-12


def test_one_write_and_read_have_no_axes() -> None:
    """A head that says one of each is one that says nothing."""
    plain = "scan s(key = 2, value = 3{}) on chain(t = 4) {{ source{} = given(); transition = 0.5; mark{} = given() }}"
    silent, said = (
        stmlang.compile(plain.format(*parts), dtype="float64")
        for parts in (("", "", ""), (", writes = 1, reads = 1", "[write]", "[read]"))
    )
    arguments = silent.example()
    assert (silent.signature.inputs, silent.signature.result) == (said.signature.inputs, said.signature.result)
    gates = {name: array[..., None] for name, array in arguments[3].items()}
    np.testing.assert_array_equal(silent(*arguments), said(*arguments[:3], gates))
