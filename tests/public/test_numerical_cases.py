"""Numbers: gates of exactly one, gates that erase or explode, sums in half precision, precision and 64-bit switches.

C01 (fla-org/flash-linear-attention#461, also #389). Causality was read off the sign of differences of log gates, so gates of
exactly one, whose difference is zero, let later inputs into earlier outputs. Here it comes from the order of the nodes.

C03 (inclusionAI/cuLA#89, tenstorrent/tt-metal#56550). Exponentials of summed log gates overflowed, or one factor of a product
underflowed, and the state was NaN or wiped out. Here a gate that erases does so once, and what comes after is kept.

C05 (proger/accelerated-scan#4, jax-ml/ml_dtypes#63). A running sum in bfloat16 stopped growing at 256, in some modes of
execution and not in others. Here every mode accumulates in float32 at least.

C39 (jax-ml/jax#22557, also #12008, #14022 and #6059). GPUs multiplied float32 matrices with ten bits and disagreed with CPUs;
the switch to 64 bits changed the type of what a loop carries. Here products run at the highest precision, and the declared
type is the type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import cycle
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.graph.dag import DAG
from tests.helpers.calls import as_tree, compiled, differentiated, error, errors, expected
from tests.helpers.cases import (
    ALL,
    CASES,
    CONSTANT,
    DELTA,
    DISTRIBUTE,
    MLSTM,
    NONE,
    ONE_TURN,
    READ_AFTER,
    SMALL,
)
from tests.public.chains import (
    PLAIN,
    Names,
    Tree,
    as_type,
    every_way,
    ones,
    recurrence,
    scan_on,
    settings,
    sweep,
    widened,
)

TURN = ONE_TURN.format("cols", "rows")
EVERY = [
    "chunkwise",
    "linear",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("recurrent", "parallel", "dense", "dense_nodes")),
]
"""The strategies for chains."""
LONG = [*EVERY[:-2], pytest.param("dense_nodes", marks=pytest.mark.slow)]
"""Those for chains of 4096 nodes: `dense` takes 4096 edges."""
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 2e-2}

# --- C01: gates of exactly one


def kept(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Six in ten exactly one, the others between 0.2 and 1."""
    rng = np.random.default_rng(seed)
    return np.where(rng.uniform(size=shape) < 0.6, 1.0, rng.uniform(0.2, 1, shape))


@cache
def chain_of_ones(dtype: str) -> tuple[Tree, Tree, Tree]:
    """Arguments for a chain of 96 nodes, a cotangent, and what the recurrence gives for them with all gradients."""
    op = stmlang.compile(scan_on("chain(t = 96)"), dtype="float64")
    q, k, v, gates, initial = as_tree(random_arguments(op, 0))
    gates["transition"] = kept(gates["transition"].shape, 1)
    tree = as_type((q, k, v, gates, initial), dtype)
    cotangent = ones(op, tree)
    return tree, cotangent, jax.jit(differentiated(recurrence, cotangent))(as_type(tree, "float64"))


def unmoved(call: Callable[..., Tree], tree: Tree, moved: Tree, nodes: np.ndarray) -> bool:
    """Whether a change of arguments leaves the results at some nodes as they are, to the last bit, and not all others."""
    before, after = (np.asarray(call(*arguments)) for arguments in (tree, moved))
    assert not np.array_equal(before[~nodes], after[~nodes])
    return np.array_equal(before[nodes], after[nodes])


def moved_at(tree: Tree, node: tuple[int, ...], gates: tuple[str, ...]) -> Tree:
    """Other keys, values and gates at a node."""
    q, k, v, old, initial = tree
    return (q, k.at[node].add(1), v.at[node].add(-3), old | {name: old[name].at[node].multiply(0.5) for name in gates}, initial)


def by_sign(q: Tree, k: Tree, v: Tree, gates: Tree, _: Tree) -> np.ndarray:
    """A chain that takes "no decay" for "not in the past": the mask is the sign of a difference of summed logarithms."""
    logs = np.cumsum(np.log(np.asarray(gates["transition"])[:, 0, 0, 0]))
    decay = logs[:, None] - logs[None, :]
    weights = np.where(decay <= 0, np.exp(np.minimum(decay, 0)), 0)
    return np.einsum("nm,nhk,mhk,mhv->nhv", weights, q, k, v)


SIZES = [16, *(pytest.param(size, marks=pytest.mark.slow) for size in (32, 64))]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("strategy", EVERY)
def test_C01_gates_of_one_are_no_decay(strategy: str, size: int) -> None:
    """Result, final state and every entry of every gradient."""
    tree, cotangent, wanted = chain_of_ones("float64")
    text = scan_on("chain(t = 96)")
    op = stmlang.compile(text, dtype="float64", strategy=strategy, config=settings(stmlang.compile(text), strategy, size))
    found = jax.jit(differentiated(op, cotangent))(tree)
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < 1e-12


@pytest.mark.parametrize("size", SIZES)
@sweep("chunkwise", "linear")
def test_C01_nothing_comes_before_its_cause(size: int, only: Names) -> None:
    """Inputs and gates change at one node: every output before it stays as it was, to the last bit. The rule by signs, which
    the case is about, fails this."""
    tree, _, ((wanted, _), _) = chain_of_ones("float32")
    gates = ("transition", "source", "direct")
    one = int(np.flatnonzero(tree[3]["transition"][:, 0, 0, 0] == 1)[20])
    assert not unmoved(by_sign, tree, moved_at(tree, (one,), ()), np.arange(96) < one)
    for name, op in every_way(scan_on("chain(t = 96)"), "float32", size, only).items():
        assert error(op(*tree), wanted) < 1e-5, name
        for t in (17, 48, 95):
            assert unmoved(op, tree, moved_at(tree, (t,), gates), np.arange(96) < t), f"{name} at {t}"


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["grid", "dag"])
def test_C01_on_grids_and_graphs(topology: str) -> None:
    """What is no descendant of the changed node stays as it is."""
    where, body, node = {"grid": ("grid(rows = 6, cols = 5)", TURN + NONE, (3, 2)), "dag": (SMALL, PLAIN, (1,))}[topology]
    for name, op in every_way(scan_on(where, body), "float32", 2).items():
        q, k, v, gates, initial = as_tree(random_arguments(op, 2))
        gates["transition"] = kept(gates["transition"].shape, 3)
        tree = as_type((q, k, v, gates, initial), "float32")
        moved = moved_at(tree, node, ("direct",) if topology == "dag" else ("transition", "source", "direct"))
        assert unmoved(op, tree, moved, ~descendants(op.dag, node)), name


def descendants(dag: DAG, node: tuple[int, ...]) -> np.ndarray:
    """Which nodes a path leads to from a node, itself among them."""
    reached = np.arange(dag.node_count) == np.ravel_multi_index(node, dag.node_shape)
    inner = (dag.tail >= 0) & (dag.head >= 0)
    for _ in range(dag.node_count):
        reached[dag.head[inner & reached[dag.tail]]] = True
    return reached.reshape(dag.node_shape)


# --- C03: gates that erase or explode

WHOLE = np.asarray([-2, -1, 0, 1, 2])
FAINT = float(np.exp(-90.0))
PATTERNS = {"at the start": (0,), "within a piece": (40,), "everywhere": tuple(range(128)), "twice in a row": (63, 64, 65)}


def whole_numbers(op: Any, seed: int) -> tuple[Tree, Tree, Tree]:
    """q, k and v from -2 to 2, so that sums are exact in float32."""
    rng = np.random.default_rng(seed)
    return tuple(rng.choice(WHOLE, shape).astype(np.float64) for shape in op.signature.inputs.values())


@pytest.mark.parametrize("body", ["given", pytest.param("read after", marks=pytest.mark.slow)])
@sweep("chunkwise", "linear")
def test_C03_a_reset_erases_what_was_and_nothing_else(body: str, only: Names) -> None:
    """Factors of exp(-90) among factors of exactly one. Numbers are whole, so what is kept by a factor of one is exact."""
    given = body == "given"
    ways = every_way(scan_on("chain(t = 128)", PLAIN if given else READ_AFTER), "float32", 32, only)
    keep, erase = (1.0, FAINT) if given else (90.0, -90.0)
    for name, op in ways.items():
        gates = {leaf: np.full(shape, keep) for leaf, shape in op.signature.gates.items()}
        for pattern, places in PATTERNS.items():
            transition = gates["transition"].copy()
            transition[list(places)] = erase
            tree = as_type((*whole_numbers(op, 0), gates | {"transition": transition}), "float32")
            found = op(*tree)
            np.testing.assert_allclose(found, op.reference(*tree), rtol=0, atol=1e-30, err_msg=f"{name} {pattern}")


@pytest.mark.slow
@pytest.mark.parametrize("body", ["read after", "given"])
def test_C03_in_half_precision(body: str) -> None:
    """One gate erases, all others keep: no NaN, and what the recurrence gives."""
    given = body == "given"
    keep, erase = (1.0, FAINT) if given else (90.0, -90.0)
    for name, op in every_way(scan_on("chain(t = 128)", PLAIN if given else READ_AFTER), "bfloat16", 32).items():
        q, k, v, _ = op.example(3)
        gates = {leaf: jnp.full(shape, keep, jnp.bfloat16) for leaf, shape in op.signature.gates.items()}
        gates["transition"] = gates["transition"].at[40].set(erase)
        found = op(q, k, v, gates)
        assert error(found, op.reference(*widened((q, k, v, gates)))) < 2e-2, name


@sweep("rows", "separable")
def test_C03_on_grids(only: Names) -> None:
    """Erased along a line, one turn closed, the number of paths being small."""
    for name, op in every_way(scan_on("grid(rows = 9, cols = 7)", TURN + NONE), "float32", 4, only).items():
        gates = {leaf: np.ones(shape) for leaf, shape in op.signature.gates.items()}
        gates["transition"][4] = FAINT
        gates["transition"][:, 2] = FAINT
        tree = as_type((*whole_numbers(op, 1), gates), "float32")
        np.testing.assert_allclose(op(*tree), op.reference(*tree), rtol=0, atol=1e-30, err_msg=name)


def test_C03_the_patterns_have_teeth() -> None:
    """Quotients of running products, which these tests are about, are no numbers where a gate is that faint, and where many
    gates are a little less than one."""
    with np.errstate(all="ignore"):
        logs = np.cumsum(np.where(np.arange(128) == 40, -90, 0).astype(np.float32))
        assert not np.isfinite(np.exp(logs[:, None]) * np.exp(-logs[None, :])).all()
        slow = np.exp(np.cumsum(np.full(4096, -0.05, np.float32)))
        assert np.isfinite(slow[:, None] / slow[None, :]).mean() < 0.6


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
@sweep("linear")
def test_C03_exponential_sources_run_at_a_scale(dtype: str, only: Names) -> None:
    """Sources that grow by exp(5) a node, up to exp(640), and by exp(50), which no double holds."""
    for name, op in every_way(scan_on("chain(t = 128)", MLSTM), dtype, 32, only).items():
        q, k, v, gates = op.example(4)
        ramp = jnp.arange(128, dtype=op.dtype)[:, None]
        steep = gates | {"source": 5 * ramp}
        found = op(q, k, v, steep)
        assert error(found, op.reference(*widened((q, k, v, steep)))) < TOLERANCE[dtype], name
        assert np.isfinite(np.asarray(op(q, k, v, gates | {"source": 50 * ramp}), np.float64)).all(), name


@pytest.mark.parametrize("strategy", LONG)
def test_C03_long_slow_decay(strategy: str) -> None:
    """exp(-0.05) at each of 4096 nodes: exp(-200) altogether."""
    text = scan_on("chain(t = 4096)", READ_AFTER)
    config = settings(stmlang.compile(text), strategy, 128)
    op = stmlang.compile(text, strategy=strategy, config=config)
    q, k, v, gates = op.example(2)
    gates = gates | {"transition": jnp.full_like(gates["transition"], float(-np.log(np.expm1(0.05))))}
    assert error(op(q, k, v, gates), op.reference(q, k, v, gates)) < 1e-5


# --- C05: sums in half precision


def test_C05_a_sum_in_half_precision_stops_growing() -> None:
    """Why sums are not in it."""
    total = ml_dtypes.bfloat16(0)
    for _ in range(1000):
        total = ml_dtypes.bfloat16(total + ml_dtypes.bfloat16(1))
    assert total == 256


LEAVES = ", ".join(f"a{number}" for number in range(511))
COUNTED: dict[str, tuple[str, str, int, int]] = {
    "chain": ("chain(t = 1024)", PLAIN, 1024, 1024),
    "grid": ("grid(rows = 20, cols = 20)", TURN + DISTRIBUTE, 400, 400),
    "into one": (f"dag {{ {LEAVES} -> root }}", PLAIN, 512, 2),
    "out of one": (f"dag {{ root -> {LEAVES} }}", PLAIN, 2, 512),
}
"""Topologies with all gates one; what the last node counts, and how many nodes the first is counted by."""


SOME = [("grid", ("rows", "separable")), ("into one", ("nodes", "dense_nodes"))]


@pytest.mark.parametrize(
    ("topology", "only"),
    [*SOME, *(pytest.param(name, None, marks=pytest.mark.slow) for name in COUNTED)],
    ids=["grid", "into one", *(f"{name}, every strategy" for name in COUNTED)],
)
def test_C05_counts_beyond_256(topology: str, only: Names) -> None:
    """In every mode."""
    where, body, last, _ = COUNTED[topology]
    for name, op in every_way(scan_on(where, body, key=1, value=1), "bfloat16", 16, only).items():
        h = op(*all_one(op))
        assert h.dtype == jnp.bfloat16
        assert abs(float(h.reshape(-1)[-1]) - last) <= last / 128, name


@pytest.mark.slow
@pytest.mark.parametrize("topology", COUNTED)
def test_C05_gradients_count_beyond_256(topology: str) -> None:
    """The gradient of the sum of results by the first value, in every mode."""
    where, body, _, first = COUNTED[topology]
    for name, op in every_way(scan_on(where, body, key=1, value=1), "bfloat16", 16).items():
        assert abs(first_gradient(op) - first) <= first / 128, name


@pytest.mark.parametrize("strategy", LONG)
def test_C05_counts_to_4096(strategy: str) -> None:
    """The length of the case: one unit of bfloat16's last place is allowed, in value and gradient."""
    text = scan_on("chain(t = 4096)", key=1, value=1)
    op = stmlang.compile(text, dtype="bfloat16", strategy=strategy, config=settings(stmlang.compile(text), strategy, 64))
    np.testing.assert_allclose((float(op(*all_one(op))[-1, 0, 0]), first_gradient(op)), 4096, rtol=1 / 128)


def all_one(op: Any) -> Tree:
    """Inputs and gates, all of them one."""
    inputs = [jnp.ones(shape, op.dtype) for shape in op.signature.inputs.values()]
    return (*inputs, {leaf: jnp.ones(shape, op.dtype) for leaf, shape in op.signature.gates.items()})


def first_gradient(op: Any) -> float:
    """The gradient of the sum of results by the first value."""
    q, k, v, gates = all_one(op)

    def gradient(v: jax.Array) -> jax.Array:
        h, back = jax.vjp(lambda v: op(q, k, v, gates), v)
        return back(jnp.ones_like(h))[0]

    found = jax.jit(gradient)(v)
    assert found.dtype == jnp.bfloat16
    return float(found.reshape(-1)[0])


@pytest.mark.parametrize(
    "name", ["chain 17", *(pytest.param(name, marks=pytest.mark.slow) for name in ("grid 5x3", "asia", "chain 9 delta"))]
)
def test_C05_modes_agree(name: str) -> None:
    """Every strategy near the reference, which is given the rounded arguments."""
    case = next(case for case in CASES if case.name == name)
    for way in case.strategies:
        op = compiled(case, way, "bfloat16")
        tree = as_type(as_tree(expected(case).arguments), "bfloat16")
        found = op(*tree, return_state=True)
        assert found[0].dtype == jnp.bfloat16
        assert max(errors(found, op.reference_result(*widened(tree))).values()) < 2e-2


# --- C39: precision and 64-bit switches

PROGRAMS: dict[str, tuple[str, str]] = {
    "chain": ("chain(t = 12)", PLAIN),
    "chain mlstm": ("chain(t = 12)", MLSTM),
    "chain delta": ("chain(t = 12)", DELTA),
    "grid": ("grid(rows = 4, cols = 6)", TURN + ALL + NONE),
    "grid constant": ("grid(rows = 4, cols = 6)", CONSTANT + NONE),
    "dag": (SMALL, PLAIN),
}


def placeholders(op: Any, *dtypes: str) -> Tree:
    """Arguments as shapes and types, the types taken in turn."""
    kinds = cycle(dtypes)

    def array(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, next(kinds))

    inputs = [array(shape) for shape in op.signature.inputs.values()]
    gates = {name: array(shape) for name, shape in op.signature.gates.items()}
    return (*inputs, gates, tuple({port: array(shape) for port, shape in part.items()} for part in op.signature.initial))


def trained(op: Any) -> Callable[..., Tree]:
    """Result, final states, and gradients by all arguments."""

    def call(*tree: Tree) -> Tree:
        found, back = jax.vjp(lambda *tree: op(*tree, return_state=True), *tree)
        return found, back(found)

    return call


FEW = ["chain", *(pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS if name != "chain")]


@pytest.mark.parametrize("program", FEW)
def test_C39_the_declared_type_is_the_type(program: str) -> None:
    """A float32 program gives float32, whatever types come in and whether or not JAX computes in 64 bits, and never computes in
    64 bits. A gradient has the type of the argument."""
    for name, op in every_way(scan_on(*PROGRAMS[program]), "float32", 4).items():
        for wide, types in ((False, ("float32", "bfloat16")), (True, ("float64", "float32", "bfloat16"))):
            with jax.enable_x64(wide):
                found, gradient = jax.eval_shape(trained(op), *placeholders(op, *types))
                given = [leaf.dtype for leaf in jax.tree.leaves(placeholders(op, *types))]
                assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {jnp.dtype("float32")}, f"{name} {types}"
                assert [leaf.dtype for leaf in jax.tree.leaves(gradient)] == given, f"{name} {types}"


def test_C39_an_accumulator_made_by_the_switch_has_teeth() -> None:
    """What the test above is about: zeros of no stated type, carried along."""

    def carried(x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda state, x: (state + x, state), jnp.zeros(()), x)[0]

    x = jax.ShapeDtypeStruct((3,), "float32")
    with jax.enable_x64(False):
        assert jax.eval_shape(carried, x).dtype == jnp.float32
    with jax.enable_x64(True):
        assert jax.eval_shape(carried, x).dtype == jnp.float64


@pytest.mark.parametrize(
    "program", ["chain delta", *(pytest.param(name, marks=pytest.mark.slow) for name in ("chain", "grid"))]
)
def test_C39_double_takes_any_type(program: str) -> None:
    """A float64 program gives float64, whatever types come in."""
    for name, op in every_way(scan_on(*PROGRAMS[program]), "float64", 4).items():
        found, _ = jax.eval_shape(trained(op), *placeholders(op, "float32", "float64", "bfloat16"))
        assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {jnp.dtype("float64")}, name


@pytest.mark.parametrize("program", FEW)
def test_C39_products_run_at_the_highest_precision(program: str) -> None:
    """Where a product may be rounded to ten bits, as on GPUs by default, none is, neither forward nor backward; and while JAX
    computes in 64 bits, a float32 program does not."""
    seen = 0
    for name, op in every_way(scan_on(*PROGRAMS[program]), "float32", 4).items():
        text = jax.jit(trained(op)).lower(*placeholders(op, "float32")).as_text()
        products = [line for line in text.splitlines() if "dot_general" in line or "convolution" in line]
        assert [line.strip()[:200] for line in products if line.count("HIGHEST") < 2] == [], name
        assert "xf64>" not in text, name
        seen += len(products)
    assert seen


@pytest.mark.skipif(jax.default_backend() == "cpu", reason="compares an accelerator with the reference")
@pytest.mark.parametrize("program", PROGRAMS)
def test_C39_accelerators_agree_with_the_reference(program: str) -> None:
    """Float32 on a GPU against float64 on the CPU."""
    for name, op in every_way(scan_on(*PROGRAMS[program]), "float32", 4).items():
        tree = as_type(as_tree(random_arguments(op, 5)), "float32")
        assert max(errors(op(*tree, return_state=True), op.reference_result(*widened(tree))).values()) < 1e-5, name
