"""Streaming: many steps without drift, in every data type, one program for all of them, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph.batch import batch
from stmlang.graph.build import ragged_dag
from stmlang.nn import ScanLayer
from stmlang.program.states import LOG_SCALE
from stmlang.runtime.steps import step_cache_size

CHAINS = ["std:chain/gla", "std:chain/mlstm", "std:chain/deltanet", "std:plstm/chain"]
SMALL = {"heads": 2, "key": 3, "value": 2}
IMAGE = """
scan image(heads = 2, key = 3, value = 2) on grid(rows, cols) {
    source[out] = sigmoid(linear(x))
    transition[out, in] = 0.5 * tanh(linear(x))
    mark[in] = given(-1, 1)
    direct = param(0.5)
    stabilize P
}
"""
GRAPH = """
scan graph(heads = 2, key = 3, value = 2) on dag(nodes <= 32, edges <= 64) {
    source[out] = sigmoid(linear(x, e[out]))
    transition[out, in] = tanh(linear(x, e[out], e[in])) / degree(out)
    mark[in] = softmax(linear(x, e[in]), over = in)
    direct = 1 / degree(in)
    stabilize P
}
"""
LOUD = """
scan loud(heads = 2, key = 3, value = 2) on chain(time) {
    source = exp(linear(x))
    transition = sigmoid(linear(x))
    read after
    normalize mlstm
}
"""


def compiled(spec: str, dtype: str = "float32", **sizes: int) -> Any:
    known = {} if "{" in spec else SMALL
    return stmlang.compile(spec, dtype=dtype, tuned=False, **known, **sizes)


def steps(op: Any, state: Any, arguments: Any, count: int) -> tuple[Any, Any]:
    """So many steps from the first on, in one loop: the results and the state."""

    def step(state: Any, number: Any) -> Any:
        h, state = op.step(state, *op.step_arguments(number, *arguments))
        return state, h

    state, h = jax.lax.scan(step, state, jnp.arange(count))
    return h, state


def close(found: Any, expected: Any, tolerance: float) -> None:
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    np.testing.assert_allclose(found, expected, atol=tolerance * max(1.0, float(np.abs(expected).max(initial=0))), rtol=0)


@pytest.mark.parametrize("spec", CHAINS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-5), ("bfloat16", 2e-2)])
def test_narrow_types_round_as_the_whole_pass_does(spec: str, dtype: str, tolerance: float) -> None:
    op = compiled(spec, dtype, time=37)
    arguments = op.example(1)
    h, state = steps(op, op.init_state(), arguments, 37)
    whole, final = op(*arguments, return_state=True)
    assert h.dtype == op.dtype
    assert all(array.dtype == jnp.float32 for array in jax.tree.leaves(state))
    close(h, whole, tolerance)
    jax.tree.map(lambda a, b: close(a, b, 2e-5), op.final_state(state), final)


@pytest.mark.parametrize(
    ("spec", "dtype", "count"),
    [
        ("std:plstm/chain", "float32", 100_000),
        ("std:chain/mlstm", "bfloat16", 20_000),
        pytest.param("std:plstm/chain", "bfloat16", 100_000, marks=pytest.mark.slow),
        pytest.param("std:chain/mlstm", "float32", 100_000, marks=pytest.mark.slow),
        pytest.param("std:chain/mlstm", "bfloat16", 100_000, marks=pytest.mark.slow),
    ],
)
def test_there_is_no_drift(spec: str, dtype: str, count: int) -> None:
    """After so many steps the state is that of the float64 recurrence on the same, rounded arguments."""
    period = 97
    op, exact = compiled(spec, dtype, time=period), compiled(spec, "float64", time=period)
    arguments = op.example(2)
    precise = jax.tree.map(lambda array: array.astype(jnp.float64), arguments)

    @jax.jit
    def run(arguments: Any, state: Any) -> Any:
        def step(state: Any, number: Any) -> Any:
            one = exact if arguments[0].dtype == jnp.float64 else op
            h, state = one.step(state, *one.step_arguments(number % period, *arguments))
            return state, h[0, 0]

        return jax.lax.scan(step, state, jnp.arange(count))

    state, h = run(arguments, op.init_state())
    known, expected = run(precise, exact.init_state())
    close(h[-1000:], expected[-1000:], 2e-5 if dtype == "float32" else 2e-2)
    jax.tree.map(lambda a, b: close(a, b, 1e-4), op.final_state(state), exact.final_state(known))


@pytest.mark.parametrize("spec", [*CHAINS, LOUD])
def test_steps_and_whole_passes_follow_each_other(spec: str) -> None:
    op, first = compiled(spec, "float64", time=12), compiled(spec, "float64", time=5)
    arguments = op.example(3)
    whole, final = op(*arguments, return_state=True)
    kinds = {leaf.name: leaf.kind for leaf in op.scan.leaves}

    def cut(place: slice) -> Any:
        q, k, v, gates = arguments
        return q[place], k[place], v[place], {n: g if kinds[n] == "param" else g[place] for n, g in gates.items()}

    h, state = first.prefill(first.init_state(), *cut(slice(0, 5)))
    close(h, whole[:5], 1e-12)
    for number in (5, 6):
        h, state = op.step(state, *op.step_arguments(number, *arguments))
        close(h, whole[number], 1e-12)
    h, state = first.prefill(state, *cut(slice(7, 12)))
    close(h, whole[7:], 1e-12)
    jax.tree.map(lambda a, b: close(a, b, 1e-12), op.final_state(state), final)
    # Likewise with the states of calls, at scale one or not. They do not say how large the largest term was that `eps` goes by.
    tolerance = 1e-12 + 5 * op.scan.epsilon
    _, handed = first(*cut(slice(0, 5)), return_state=True)
    h, state = op.step(handed, *op.step_arguments(5, *arguments))
    close(h, whole[5], tolerance)
    h, state = op.step(state, *op.step_arguments(6, *arguments))
    close(first(*cut(slice(7, 12)), initial=state), whole[7:], tolerance)


def test_a_scale_of_its_own_keeps_states_finite() -> None:
    """exp(200 x) has no float32, and neither has a state at scale one; what is divided by has."""
    op, exact = compiled(LOUD, time=9), compiled(LOUD, "float64", time=9)
    q, k, v, gates = op.example(4)
    gates = {**gates, "source": 200 * gates["source"]}
    h, state = steps(op, op.init_state(), (q, k, v, gates), 9)
    assert np.isfinite(np.asarray(state[0]["time"])).all()
    assert float(np.abs(state[0][LOG_SCALE]).max()) > 88
    reference = exact.reference(*jax.tree.map(lambda array: np.asarray(array, np.float64), (q, k, v, gates)))
    close(h, reference, 1e-4)
    # A prompt and then steps is the same, where a whole pass hands over what overflows.
    first = compiled(LOUD, time=6)
    prompt = tuple(array[:6] for array in (q, k, v))
    _, held = first.prefill(first.init_state(), *prompt, {name: gate[:6] for name, gate in gates.items()})
    close(held[0][LOG_SCALE], steps(op, op.init_state(), (q, k, v, gates), 6)[1][0][LOG_SCALE], 1e-6)
    later, _ = op.step(held, *op.step_arguments(6, q, k, v, gates))
    close(later, reference[6], 1e-4)


def test_a_grid_goes_row_by_row_from_what_a_whole_pass_left() -> None:
    op, top = compiled(IMAGE, "float64", rows=5, cols=3), compiled(IMAGE, "float64", rows=2, cols=3)
    arguments = op.example(5)
    whole = op(*arguments)
    q, k, v, gates = arguments
    above = {name: gate if name == "direct" else gate[:2] for name, gate in gates.items()}
    h, state = top.prefill(top.init_state(), q[:2], k[:2], v[:2], above)
    close(h, whole[:2], 1e-12)
    _, handed = top(q[:2], k[:2], v[:2], above, return_state=True)
    close(top.init_state(handed)[0]["rows"], state[0]["rows"], 1e-12)
    for number in (2, 3, 4):
        h, state = op.step(state, *op.step_arguments(number, *arguments))
        close(h, whole[number], 1e-12)


def test_sizes_may_be_open() -> None:
    chain, known = compiled("std:chain/gla", "float64"), compiled("std:chain/gla", "float64", time=7)
    arguments = known.example(6)
    h, state = steps(chain, chain.init_state(), arguments, 7)
    close(h, known(*arguments), 1e-12)
    close(chain.prefill(chain.init_state(), *arguments)[0], h, 1e-12)
    filled = stmlang.compile("std:chain/gla", dtype="float64", time=stmlang.Lengths(up_to=64), **SMALL)
    h, behind = filled.prefill(filled.init_state(), *arguments)
    close(h, known(*arguments), 1e-12)
    jax.tree.map(lambda a, b: close(a, b, 1e-12), behind, state)
    image, sized = compiled(IMAGE, "float64"), compiled(IMAGE, "float64", rows=3, cols=2)
    arguments = sized.example(7)
    h, _ = image.step(image.init_state(nodes=(2,)), *sized.step_arguments(0, *arguments))
    close(h, sized(*arguments)[0], 1e-12)


def test_one_program_for_all_steps() -> None:
    op = compiled("std:chain/gla", time=11)
    arguments, state = op.example(8), op.init_state()
    before = step_cache_size()
    for number in range(5):
        _, state = op.step(state, *op.step_arguments(number, *arguments))
    assert step_cache_size() == before + 1

    @jax.jit
    def step(state: Any, *arguments: Any) -> Any:
        return op.step(state, *arguments)

    for number in range(5):
        _, state = step(state, *op.step_arguments(number, *arguments))
    assert step._cache_size() == 1  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def test_a_donated_state_is_used_up() -> None:
    op = compiled("std:plstm/chain", time=4)
    arguments, state = op.example(9), op.init_state()
    expected, kept = op.step(state, *op.step_arguments(0, *arguments))
    again, _ = op.step(kept, *op.step_arguments(1, *arguments), donate=True)
    assert kept[0]["time"].is_deleted()
    assert not state[0]["time"].is_deleted()
    close(again, op(*arguments)[1], 2e-5)
    close(expected, op(*arguments)[0], 2e-5)


def test_rows_of_a_batch_advance_or_stay() -> None:
    op = compiled("std:chain/mlstm", "float64", time=6)
    arguments = jax.tree.map(lambda *arrays: jnp.stack(arrays), *(op.example(seed) for seed in range(3)))
    kinds = {leaf.name for leaf in op.scan.leaves if leaf.kind == "param"}
    assert not kinds
    mask = jnp.asarray([[1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0]], bool)
    state = jax.tree.map(lambda array: jnp.stack([array] * 3), op.init_state())
    found = []
    for number in range(6):
        q, k, v, gates = jax.vmap(lambda *arrays, n=number: op.step_arguments(n, *arrays))(*arguments)
        h, state = jax.vmap(lambda s, q, k, v, g, a: op.step(s, q, k, v, g, advance=a))(state, q, k, v, gates, mask[:, number])
        found.append(h)
    whole, final = jax.vmap(lambda *arrays: op(*arrays[:4], return_state=True, mask=arrays[4]))(*arguments, mask)
    close(jnp.stack(found, 1), whole, 1e-12)
    jax.tree.map(lambda a, b: close(a, b, 1e-12), jax.vmap(op.final_state)(state), final)


def test_truncated_backpropagation() -> None:
    """The gradient of a few steps from a state that is held fixed is that of a whole pass from there."""
    op, piece = compiled("std:chain/deltanet", "float64", time=8), compiled("std:chain/deltanet", "float64", time=3)
    arguments = op.example(10)
    _, state = steps(op, op.init_state(), arguments, 5)
    later = jax.tree.map(lambda array: array[5:], arguments)

    def by_steps(arguments: Any) -> Any:
        return jnp.sum(steps(piece, state, arguments, 3)[0] ** 2)

    def at_once(arguments: Any) -> Any:
        return jnp.sum(piece(*arguments, initial=op.final_state(state)) ** 2)

    jax.tree.map(lambda a, b: close(a, b, 1e-12), jax.grad(by_steps)(later), jax.grad(at_once)(later))


@pytest.mark.parametrize("mode", ["P", "D"])
def test_graphs_that_come_at_run_time(mode: str) -> None:
    rng = np.random.default_rng(0)
    pairs = np.sort(np.stack([rng.choice(9, 2, replace=False) for _ in range(20)]), axis=1)
    names = rng.permutation(9)
    small = ragged_dag(3, np.asarray([2, 0]), np.asarray([0, 1]))
    graph = ragged_dag(9, names[pairs[:, 0]], names[pairs[:, 1]])
    op = stmlang.compile(GRAPH.replace("stabilize P", f"stabilize {mode}"), dtype="float64").at(batch([graph, small]))
    arguments = op.example(1)
    stream = op.stream()

    @jax.jit
    def run(stream: Any, arguments: Any) -> Any:
        return steps(Bound(stream), stream.init_state(), arguments, len(stream.order))[0]

    h = run(stream, arguments)
    close(h[jnp.argsort(stream.order)][:12], op(*arguments)[:12], 1e-12)


class Bound:
    """A stream under the names that a scan has."""

    def __init__(self, stream: Any) -> None:
        self.step, self.step_arguments = stream.step, stream.arguments


@pytest.mark.parametrize("spec", ["std:chain/mlstm", "std:chain/gla", IMAGE])
def test_layers_go_step_by_step(spec: str) -> None:
    sizes = {"rows": 4, "cols": 3} if spec == IMAGE else {"time": 6}
    op, nodes = compiled(spec, "float64", **sizes), tuple(sizes.values())
    layer = ScanLayer(op, 5, key=jax.random.key(0), gate="silu")
    x = jax.random.normal(jax.random.key(1), (*nodes, 5), jnp.float64)
    given = {"mark": jnp.full((*nodes, 2, 2), 0.3)} if spec == IMAGE else {}
    whole, state = layer(x, given=given), layer.init_state()
    for number in range(nodes[0]):
        y, state = layer.step(state, x[number], given={name: array[number] for name, array in given.items()})
        close(y, whole[number], 1e-12)
    y, behind = layer.prefill(layer.init_state(), x, given=given)
    close(y, whole, 1e-12)
    jax.tree.map(lambda a, b: close(a, b, 1e-12), behind, state)
    y, same = layer.step(state, x[0], given={name: array[0] for name, array in given.items()}, advance=False)
    assert not np.any(y)
    jax.tree.map(np.testing.assert_array_equal, same, state)


def test_layers_on_graphs_go_node_by_node() -> None:
    op = compiled(GRAPH.replace("dag(nodes <= 32, edges <= 64)", "dag { a -> c; b -> a, c; c -> d; b -> d }"), "float64")
    layer = ScanLayer(op, 4, edge_dim=2, key=jax.random.key(0))
    x, e = (jax.random.normal(jax.random.key(n), (rows, n), jnp.float64) for n, rows in ((4, 4), (2, op.edge_count)))
    whole, state = layer(x, edge_features=e), layer.init_state()
    for node in op.stream().order:
        y, state = layer.step(state, x[node], edge_features=e)
        close(y, whole[node], 1e-12)


def test_artifacts_hold_the_step(tmp_path: Any) -> None:
    op = compiled("std:chain/mlstm", time=5)
    op.export(tmp_path / "op.stmx", step=True)
    loaded = stmlang.load(tmp_path / "op.stmx")
    arguments = jax.tree.map(lambda *arrays: jnp.stack(arrays), *(op.example(seed) for seed in range(2)))
    state, found = loaded.init_state(batch=2), []
    for number in range(5):
        h, state = loaded.step(state, *jax.vmap(lambda *arrays, n=number: op.step_arguments(n, *arrays))(*arguments))
        found.append(h)
    close(jnp.stack(found, 1), loaded(*arguments), 1e-5)
    with pytest.raises(stmlang.SpecError) as error:
        loaded.init_state()
    assert error.value.diagnostics[0].code == "STM5312"
    op.export(tmp_path / "whole.stmx")
    with pytest.raises(stmlang.SpecError) as error:
        stmlang.load(tmp_path / "whole.stmx").init_state(batch=2)
    assert error.value.diagnostics[0].code == "STM5313"


CHAIN = compiled("std:chain/gla", time=4)
GRID = compiled(IMAGE, rows=2, cols=3)
TREE = stmlang.compile("std:plstm/tree", depth=2, **SMALL)
ARGUMENTS = CHAIN.step_arguments(0, *CHAIN.example())
REFUSED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "both ways": (
        lambda: stmlang.compile("scan a on chain(t = 3) { directions both; source = 1; transition = 0.5 }\n").init_state(),
        "STM5211",
        "also runs against the axis `t`",
    ),
    "whole arrays": (lambda: CHAIN.step(CHAIN.init_state(), *CHAIN.example()), "STM5201", "`q` must have the shape (2, 3)"),
    "another state": (lambda: CHAIN.step(GRID.init_state(), *ARGUMENTS), "STM5202", "there is no port `rows`"),
    "no state": (lambda: CHAIN.step(None, *ARGUMENTS), "STM5204", "`state` must be a tuple"),
    "a whole number": (lambda: CHAIN.step(CHAIN.init_state(), *ARGUMENTS, advance=1), "STM5210", "must be one truth value"),
    "a mask": (
        lambda: CHAIN.step(CHAIN.init_state(), *ARGUMENTS, advance=jnp.ones(4, bool)),
        "STM5210",
        "must be one truth value",
    ),
    "open sizes": (lambda: compiled(IMAGE).init_state(), "STM5201", "begin with the axes (rows, cols)"),
    "sides": (
        lambda: GRID.step(GRID.init_state(), *GRID.step_arguments(0, *GRID.example()), entering=({},)),
        "STM5202",
        "the port `cols` is missing",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, code, words = REFUSED[name]
    with pytest.raises(stmlang.SpecError) as error:
        call()
    (first, *_) = error.value.diagnostics
    assert first.code == code
    assert words in str(error.value)
