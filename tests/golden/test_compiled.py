"""Every strategy gives the numbers of the pLSTM authors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph.topology import dag_of
from stmlang.oracle.derivative import Arguments, derivative
from tests.golden.cases import ALL, CHAINS, GRAPHS, TRACKING, Case, load
from tests.golden.test_plstm import close
from tests.helpers.data import data_folder
from tests.helpers.turns import half, halves

LARGE = 100
"""From so many nodes on only one strategy that forms the gating matrix is compiled: it takes seconds."""


def ways(name: str, case: Case) -> list[tuple[str, dict | None]]:
    """The strategies that take a case."""
    if case.track > 1:
        return [("recurrent", None), *([("tracks", {"chunk": 4})] if name in CHAINS else [])]
    tile = {"block": 4} if name in GRAPHS else {"tile": (5,) if name in CHAINS else (3, 2)}
    found = [("recurrent", None), ("parallel", None), ("chunkwise", tile), ("dense", None)]
    return found[:3] if case.q[..., 0, 0].size >= LARGE // case.count else found


@halves
@pytest.mark.parametrize("name", ALL)
def test_value(name: str, late: bool) -> None:
    case = load(data_folder("golden/plstm"), name)
    for number, (strategy, config) in enumerate(half(ways(name, case), ALL.index(name), late)):
        op = stmlang.compile(case.spec, dtype="float64", strategy=strategy, config=config)
        found, state = op(case.q, case.k, case.v, case.gates, case.initial, return_state=True)
        close(case.summed(np.asarray(found)), case.h)
        if case.final is not None:
            close(np.asarray(state[0]["a"]), case.final[0]["a"])
        if case.gating is not None and number == 0:
            close(np.asarray(op.gating_matrix(case.gates)), case.gating)


DIFFERENTIATED = [name for name in GRAPHS if name.startswith("graph_")]


@halves
@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradient(name: str, late: bool) -> None:
    case = load(data_folder("golden/plstm"), name)
    for strategy, config in half(ways(name, case), DIFFERENTIATED.index(name), late):
        op = stmlang.compile(case.spec, dtype="float64", strategy=strategy, config=config)
        product = jax.jit(jax.grad(lambda *given, op=op: jnp.sum(op(*given) * case.cotangent), argnums=(0, 1, 2, 3)))
        *inputs, gates = product(case.q, case.k, case.v, case.gates)
        for argument, gradient in (dict(zip("qkv", inputs, strict=True)) | gates).items():
            wanted = case.gradients[argument]
            if argument == "transition":
                gradient = np.where(case.gates["transition"] == 0, 0, gradient)
            close(np.asarray(gradient), wanted)


@pytest.mark.parametrize("name", TRACKING)
def test_gradient_with_tracks(name: str) -> None:
    """Of what each argument moves by itself, where the recurrence's derivative is known along any change."""
    case, rng = load(data_folder("golden/plstm"), name), np.random.default_rng(0)
    graph, at = dag_of(case.topology), Arguments(case.q, case.k, case.v, case.gates, case.initial)
    strategy, config = ways(name, case)[-1]
    op = stmlang.compile(case.spec, dtype="float64", strategy=strategy, config=config)
    cotangent = rng.normal(size=op.signature.result)
    product = jax.jit(jax.grad(lambda *given: jnp.sum(op(*given, case.initial) * cotangent), argnums=(0, 1, 2, 3)))
    *inputs, gates = product(case.q, case.k, case.v, case.gates)
    for argument, gradient in (dict(zip("qkv", inputs, strict=True)) | gates).items():
        change = rng.normal(size=gradient.shape)
        moved = {key: change if key == argument else np.zeros_like(getattr(case, key)) for key in "qkv"}
        along = Arguments(**moved, gates={argument: change} if argument in case.gates else {})
        close(np.sum(np.asarray(gradient) * change), np.sum(cotangent * derivative(case.scan, graph, at, along).h))
