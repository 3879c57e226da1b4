"""Arrays without a number are no operands of `jax.shard_map`: XLA of jaxlib 0.11.2 ends the process where one is."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

import stmlang
from tests.helpers.smallest import smallest
from tests.runtime.test_graphs import GRAPHS
from tests.runtime.test_sharded_graphs import along, divided

OPERANDS = re.compile(r"sdy\.manual_computation.*")
EMPTY = re.compile(r"tensor<(?:\d+x)*0x")


def mapped_of(text: str) -> list[str]:
    """The lines that say what `shard_map` is given."""
    lines = OPERANDS.findall(text)
    assert lines
    return lines


def test_of_shares() -> None:
    """Those of graphs whose tables are empty in part, and of what a user maps over them: features without an entry."""
    on = divided("P", 2).at(GRAPHS)
    assert any(table.size == 0 for table in jax.tree.leaves(on.scans.tables))
    x, none = np.ones((*on.node_shape, 3)), np.ones((*on.node_shape, 0))

    def forward(on: stmlang.ShardedGraphs, x: jax.Array, none: jax.Array) -> jax.Array:
        return on.each(lambda _, x, none: jnp.concatenate([x, none], -1).sum(0), x, none)

    lowered = jax.jit(forward).lower(on, x, none)
    assert not [line for line in mapped_of(lowered.as_text()) if EMPTY.search(line)]
    np.testing.assert_array_equal(lowered.compile()(on, x, none), np.sum(x, 1))


def test_of_a_scan_that_a_user_maps() -> None:
    """A compiled function hands on the tables of a scan that it closes over."""
    op = smallest("parallel").op
    assert any(table.size == 0 for table in jax.tree.leaves(op.tables))
    q, k, v, gates = op.example()
    inputs = tuple(jnp.stack([array, array]) for array in (q, k, v))

    def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jax.vmap(lambda q, k, v: op(q, k, v, gates))(q, k, v)

    split = PartitionSpec("x")
    lowered = jax.jit(jax.shard_map(local, mesh=along(2), in_specs=split, out_specs=split)).lower(*inputs)
    assert not [line for line in mapped_of(lowered.as_text()) if EMPTY.search(line)]
    np.testing.assert_allclose(lowered.compile()(*inputs), np.stack([op(q, k, v, gates)] * 2), rtol=1e-12)
