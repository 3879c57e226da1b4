"""From a spec to a callable: options, open sizes, what is said of wrong calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.runtime.compiled import CompiledScan

CHAIN = """
scan decay(heads = 2, key = 3, value = 4) on chain(t) {
    source     = sigmoid(linear(x))
    transition = sigmoid(linear(x))
    read after
}
"""


def chain(**options: Any) -> CompiledScan:
    return stmlang.compile(CHAIN, t=6, **options)


def codes(error: pytest.ExceptionInfo[stmlang.SpecError]) -> set[str]:
    return {diagnostic.code for diagnostic in error.value.diagnostics}


def test_text_path_and_library_are_the_same_door(tmp_path: Path) -> None:
    path = tmp_path / "decay.stm"
    path.write_text(CHAIN)
    texts = [stmlang.compile(source, t=6).scan.span.file.text for source in (CHAIN, path, str(path))]
    assert texts == [CHAIN] * 3
    assert stmlang.compile("std:plstm/image_p", rows=2, cols=3, key=4, value=4).dag.node_shape == (2, 3)


@pytest.mark.parametrize("strategy", ["recurrent", "parallel", "dense"])
def test_a_strategy_can_be_asked_for(strategy: str) -> None:
    op = chain(strategy=strategy)
    assert op.plan.strategy == strategy
    q, k, v, gates = op.example()
    np.testing.assert_allclose(op(q, k, v, gates), op.reference(q, k, v, gates), atol=1e-5)


def test_the_result_has_the_declared_type_whatever_comes_in() -> None:
    q, k, v, gates = chain().example()
    assert chain()(q, k, v, gates).dtype == jnp.float32
    half = jax.tree.map(lambda array: array.astype(jnp.bfloat16), (q, k, v, gates))
    assert chain()(*half).dtype == jnp.float32
    assert chain(dtype="bfloat16")(*half).dtype == jnp.bfloat16


def test_open_sizes_are_bound_by_the_call() -> None:
    op = stmlang.compile(CHAIN)
    assert isinstance(op, stmlang.OpenScan)
    for length in (4, 7, 4):
        bound = op.at((length,))
        q, k, v, gates = bound.example()
        np.testing.assert_allclose(op(q, k, v, gates), op.reference(q, k, v, gates), atol=1e-5)
        assert bound is op.bind(t=length)
    assert len(op.compiled) == 2
    with pytest.raises(stmlang.SpecError) as error:
        op.explain()
    assert codes(error) == {"STM5001"}
    with pytest.raises(stmlang.SpecError) as error:
        op.at((3, 4))
    assert codes(error) == {"STM5201"}


def test_float64_says_how_to_switch_it_on() -> None:
    with jax.enable_x64(False), pytest.raises(stmlang.SpecError, match="jax_enable_x64"):
        chain(dtype="float64")


def wrong_calls() -> dict[str, tuple[set[str], Any]]:
    """What is done to good arguments, and the codes it must give."""

    def change(**changes: Any) -> Any:
        return lambda arguments: {**arguments, **changes}

    def gate(name: str, array: Any) -> Any:
        return lambda arguments: {**arguments, "gates": {**arguments["gates"], name: array}}

    def dropped(arguments: dict[str, Any]) -> dict[str, Any]:
        return {**arguments, "gates": {"source": arguments["gates"]["source"]}}

    ones = jnp.ones
    return {
        "batched": ({"STM5201"}, change(q=ones((5, 6, 2, 3)), k=ones((5, 6, 2, 3)), v=ones((5, 6, 2, 4)))),
        "rank": ({"STM5201"}, change(v=ones((6, 2)))),
        "transposed": ({"STM5201"}, change(q=ones((2, 6, 3)))),
        "integers": ({"STM5205"}, change(k=ones((6, 2, 3), jnp.int32))),
        "list": ({"STM5203"}, change(q=[[1.0]])),
        "gates as a list": ({"STM5203"}, change(gates=[])),
        "missing leaf": ({"STM5202"}, dropped),
        "unknown leaf": ({"STM5202"}, gate("sorce", ones((6, 2)))),
        "leaf shape": ({"STM5201"}, gate("source", ones((2, 6)))),
        "several": ({"STM5201", "STM5202"}, lambda a: gate("x", ones(()))(change(q=ones((1,)))(a))),
        "state not a tuple": ({"STM5204"}, change(initial={"t": ones((2, 3, 4))})),
        "state of two directions": ({"STM5204"}, change(initial=({}, {}))),
        "state without port": ({"STM5202"}, change(initial=({},))),
        "state shape": ({"STM5201"}, change(initial=({"t": ones((2, 4, 3))},))),
        "state entry": ({"STM5204"}, change(initial=(None,))),
    }


@pytest.mark.parametrize("name", wrong_calls())
def test_wrong_calls_name_what_is_wrong(name: str) -> None:
    expected, spoil = wrong_calls()[name]
    op = chain()
    q, k, v, gates = op.example()
    with pytest.raises(stmlang.SpecError) as error:
        op(**spoil({"q": q, "k": k, "v": v, "gates": gates}))
    assert codes(error) == expected


def test_batched_arguments_are_sent_to_vmap() -> None:
    op = chain()
    q, k, v, gates = op.example()
    with pytest.raises(stmlang.SpecError, match=r"jax\.vmap"):
        op(*jax.tree.map(lambda array: array[None], (q, k, v, gates)))


def test_what_has_no_gating_matrix_says_so() -> None:
    text = "scan s(key = 3, value = 2) on chain(t = 4) { source = 1; transition[key] = sigmoid(linear(x)); read after }"
    op = stmlang.compile(text)
    with pytest.raises(stmlang.SpecError) as error:
        op.gating_matrix(op.example()[3])
    assert codes(error) == {"STM5206"}


def test_gating_matrix_asks_for_the_inputs_that_gates_read() -> None:
    text = "scan s(key = 3, value = 2) on chain(t = 4) { source = sum(k, over = key); transition = 0.5 }"
    op = stmlang.compile(text)
    q, k, v, gates = op.example()
    with pytest.raises(stmlang.SpecError) as error:
        op.gating_matrix(gates)
    assert codes(error) == {"STM5202"}
    matrix = op.gating_matrix(gates, k=k)[..., 0]
    h = jnp.einsum("mk,nk,mn,mv->nv", k[:, 0], q[:, 0], matrix, v[:, 0])
    np.testing.assert_allclose(h, op.reference(q, k, v, gates)[:, 0], atol=1e-5)


def test_tables_are_leaves_that_no_gradient_touches() -> None:
    op = stmlang.compile("std:plstm/tree", depth=3, key=4, value=4)
    leaves = jax.tree.leaves(op)
    assert leaves
    assert not any(eqx.is_inexact_array(leaf) for leaf in leaves)
    traced = eqx.filter_jit(lambda op, arguments: op(*arguments))
    np.testing.assert_allclose(traced(op, op.example()), op(*op.example()), atol=1e-6)


def test_it_can_be_compiled_mapped_and_differentiated_as_it_stands() -> None:
    op = stmlang.compile("std:plstm/dag_p", strategy="recurrent", key=3, value=2)
    arguments = op.example()
    expected = op(*arguments)
    np.testing.assert_allclose(jax.jit(op)(*arguments), expected, atol=1e-6)
    batch = jax.tree.map(lambda array: jnp.stack([array, array]), arguments)
    np.testing.assert_allclose(jax.jit(jax.vmap(op))(*batch)[1], expected, atol=1e-6)
    np.testing.assert_allclose(jax.checkpoint(op)(*arguments), expected, atol=1e-6)
    assert jax.jacrev(op)(*arguments).shape == expected.shape + arguments[0].shape
    assert op == jax.tree.map(lambda leaf: leaf, op)
    assert op == stmlang.compile("std:plstm/dag_p", strategy="recurrent", key=3, value=2)
    assert op != stmlang.compile("std:plstm/dag_p", strategy="recurrent", key=3, value=3)


def test_it_says_briefly_what_it_is() -> None:
    assert repr(chain(strategy="dense")) == "<CompiledScan decay: 6 nodes, dense, float32>"
    assert repr(stmlang.compile(CHAIN)) == "<OpenScan decay: no size yet for t>"


def test_two_calls_give_the_same_bits() -> None:
    op = stmlang.compile("std:plstm/image_d", rows=5, cols=4, key=8, value=8)
    arguments = op.example(3)
    np.testing.assert_array_equal(op(*arguments), op(*arguments))
    np.testing.assert_array_equal(op.example(3)[0], arguments[0])


def test_planning_hands_tables_to_jax_without_a_program_for_each_of_their_shapes(caplog: pytest.LogCaptureFixture) -> None:
    """XLA is first asked to compile something by a call."""
    with jax.log_compiles():
        op = stmlang.compile(
            "scan one on tree(arity = 3, depth = 3) {\n source = 1\n transition = 0.5\n}\n", strategy="recurrent"
        )
        assert jax.tree.leaves(op)
        assert "Finished XLA compilation" not in caplog.text
        op(*op.example())
        assert "Finished XLA compilation" in caplog.text
