"""The types of every case inside of `jax.shard_map`: value, final states and gradient. That every strategy runs there, on two
devices, is in the table of `test_transforms.py`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

from stmlang.fuzz.generators import random_arguments
from tests.equivalence.test_candidates import every
from tests.helpers.calls import as_tree, compiled
from tests.helpers.cases import QUICK, Case, Way


def traced(op: object, tree: object) -> None:
    """The types of a call and of its gradient; inputs differ from shard to shard, gates and states do not."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("shard",))

    def both(q: jax.Array, k: jax.Array, v: jax.Array, rest: tuple) -> object:
        def loss(arguments: tuple) -> jax.Array:
            result = op(*arguments[:3], *arguments[3], return_state=True)
            return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(result))

        def single(q: jax.Array, k: jax.Array, v: jax.Array) -> object:
            arguments = (q, k, v, rest)
            return loss(arguments), op(*arguments[:3], rest[0]), jax.grad(loss)(arguments)

        return jax.vmap(single)(q, k, v)

    q, k, v, *rest = jax.tree.map(jnp.asarray, tree)
    split, whole = PartitionSpec("shard"), PartitionSpec()
    sharded = jax.shard_map(both, mesh=mesh, in_specs=(split, split, split, whole), out_specs=split, check_vma=True)
    jax.make_jaxpr(sharded)(q[None], k[None], v[None], tuple(rest))


@pytest.mark.slow
@pytest.mark.parametrize(("case", "way"), every(QUICK))
def test_types(case: Case, way: Way) -> None:
    op = compiled(case, way)
    traced(op, as_tree(random_arguments(op, 0, case.values)))
