"""Every strategy inside of `jax.shard_map` with its types checked: value, final states and gradient."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.graph import batch
from stmlang.graph.build import ragged_dag
from stmlang.strategies.registry import strategies
from tests.equivalence.test_candidates import every
from tests.helpers.calls import as_tree, compiled
from tests.helpers.cases import QUICK, Case, Way

PER_STRATEGY = 2
"""Cases of each strategy that always run, the last of the table; the others are slow."""


def last_of_each(cases: tuple[Case, ...]) -> set[tuple[str, str]]:
    chosen: set[tuple[str, str]] = set()
    for strategy in {way[0] for case in cases for way in case.strategies}:
        names = [case.name for case in cases if strategy in {way[0] for way in case.strategies} and not case.files]
        chosen |= {(name, strategy) for name in names[-PER_STRATEGY:]}
    return chosen


FEW = last_of_each(QUICK)


def traced(op: object, tree: object) -> None:
    """The types of a call and of its gradient; inputs differ from shard to shard, gates and states do not."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("shard",))

    def both(q: jax.Array, k: jax.Array, v: jax.Array, rest: tuple) -> object:
        def loss(arguments: tuple) -> jax.Array:
            found = op(*arguments[:3], *arguments[3], return_state=True)
            return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(found))

        def one(q: jax.Array, k: jax.Array, v: jax.Array) -> object:
            arguments = (q, k, v, rest)
            return loss(arguments), op(*arguments[:3], rest[0]), jax.grad(loss)(arguments)

        return jax.vmap(one)(q, k, v)

    q, k, v, *rest = jax.tree.map(jnp.asarray, tree)
    split, whole = PartitionSpec("shard"), PartitionSpec()
    sharded = jax.shard_map(both, mesh=mesh, in_specs=(split, split, split, whole), out_specs=split, check_vma=True)
    jax.make_jaxpr(sharded)(q[None], k[None], v[None], tuple(rest))


@pytest.mark.parametrize(("case", "way"), [pair for pair in every(QUICK) if (pair.values[0].name, pair.values[1][0]) in FEW])
def test_types(case: Case, way: Way) -> None:
    op = compiled(case, way)
    traced(op, as_tree(random_arguments(op, 0, case.values)))


@pytest.mark.slow
@pytest.mark.parametrize(("case", "way"), every(QUICK))
def test_types_of_all(case: Case, way: Way) -> None:
    op = compiled(case, way)
    traced(op, as_tree(random_arguments(op, 0, case.values)))


GRAPHS = """topology g = dag(nodes <= 100, edges <= 200)
scan s(heads = 1, key = 2, value = 2) on g {
    f[out] = given(0, 1); source[out] = given(); transition[out, in] = f[out]; mark = 1; direct = given()
}"""


def test_types_of_rows() -> None:
    op = stmlang.compile("std:plstm/image_p", dtype="float64", rows=4, cols=3, heads=1, key=2, value=2, strategy="rows")
    traced(op, (*op.example(), None))


def test_every_strategy_is_traced() -> None:
    assert {strategy for _, strategy in FEW} | {"rows", "packed", "packed_nodes"} == {
        strategy.name for strategy in strategies()
    }


@pytest.mark.parametrize("strategy", ["packed", "packed_nodes"])
def test_types_of_graphs_at_run_time(strategy: str) -> None:
    """What no case of the table runs."""
    graphs = batch([ragged_dag(3, np.array([0, 1, 0]), np.array([1, 2, 2]))])
    op = stmlang.compile(GRAPHS, dtype="float64", strategy=strategy).at(graphs)
    traced(op, (*op.example(), None))


def test_two_devices() -> None:
    """The numbers of a call that is mapped, and the gradient of gates that all shards share."""
    script = """
import stmlang, jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
tile = {"tile": (2, 2), "segments": 1}
op = stmlang.compile("std:plstm/image_p", rows=3, cols=4, heads=1, key=2, value=2, strategy="raster", config=tile)
q, k, v, gates = op.example()
q, k, v = (jnp.stack([array, -array, 2 * array, array + 1]) for array in (q, k, v))
def loss(q, k, v, gates):
    return jnp.sum(jax.vmap(op, (0, 0, 0, None))(q, k, v, gates) ** 2)
mesh = Mesh(np.array(jax.devices()), ("shard",))
assert mesh.size == 2
def total(*given):
    return jax.lax.psum(loss(*given), "shard")
split = jax.shard_map(total, mesh=mesh, in_specs=(P("shard"),) * 3 + (P(),), out_specs=P())
found, wanted = (jax.jit(jax.value_and_grad(call, (0, 3)))(q, k, v, gates) for call in (split, loss))
for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
    np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)
"""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"})
