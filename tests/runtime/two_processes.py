"""One of two processes that share a chain by time, and the batch of a training step: `python -m ... NUMBER PORT`.

Prints how far value, gradients and the loss after a step are from those of one device, which each process computes by itself.
"""

from __future__ import annotations

import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import stmlang

SIZES = {"time": 7, "heads": 1, "key": 2, "value": 2}


def error(found: Any, wanted: Any) -> float:
    """The largest of all arrays, the parts of both processes together."""
    whole = multihost_utils.process_allgather(found, tiled=True)
    differences = jax.tree.map(lambda a, b: float(np.abs(np.asarray(a) - np.asarray(b)).max()), whole, wanted)
    return max(jax.tree.leaves(differences))


def scan(mesh: Mesh) -> float:
    """A scan in two pieces, of 4 nodes and of 3."""
    alone = stmlang.compile("std:plstm/chain", **SIZES)
    shared = stmlang.compile("std:plstm/chain", mesh=mesh, shard={"time": "x"}, **SIZES)
    arguments = jax.tree.map(np.asarray, alone.example(0))

    def both(op: Any) -> Any:
        return jax.jit(jax.value_and_grad(lambda arguments: (op(*arguments) ** 2).sum()))(arguments)

    return error(both(shared), jax.tree.map(np.asarray, both(alone)))


def step(mesh: Mesh) -> float:
    """A step of gradient descent on a batch of 4, two examples in each process."""
    layer = stmlang.nn.ScanLayer(stmlang.compile("std:plstm/chain", **SIZES), dim=3, key=jax.random.key(0))
    learned, rest = eqx.partition(layer, eqx.is_inexact_array)
    x = np.random.default_rng(0).standard_normal((4, 7, 3)).astype(np.float32)

    def loss(learned: Any, x: Any) -> Any:
        return jnp.mean(jax.vmap(eqx.combine(learned, rest))(x) ** 2)

    def after(learned: Any, x: Any) -> Any:
        return jax.tree.map(lambda array, slope: array - 0.1 * slope, learned, jax.grad(loss)(learned, x))

    wanted = jax.tree.map(np.asarray, jax.jit(after)(learned, x))
    whole, parts = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("x"))
    everywhere = jax.tree.map(lambda array: global_array(np.asarray(array), whole), learned)
    return error(jax.jit(after)(everywhere, global_array(x, parts)), wanted)


def global_array(array: np.ndarray, sharding: NamedSharding) -> jax.Array:
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def main(number: int, port: int) -> None:
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, number, initialization_timeout=120)
    mesh = Mesh(np.array(jax.devices()), ("x",))
    assert mesh.size == jax.process_count() == 2
    print(scan(mesh), step(mesh), flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
