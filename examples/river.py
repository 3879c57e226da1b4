"""A river network: what flows past each place, learned from rain and slopes on rivers that are all different.

    python examples/river.py

Each river is a tree whose edges lead downstream. At every place rain falls, and of what arrives there a share goes on that
depends on the slope. The model is a scan on the same tree, whose transition it has to find; it is tested on larger rivers.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import stmlang
from stmlang.graph import DAG, Batch, as_dag, batch

SPEC = """
scan flow(heads = 2, key = 4, value = 4) on tree(nodes <= 4096) {
    source     = sigmoid(linear(x))
    transition = sigmoid(linear(x))
    mark       = 1
    direct     = sigmoid(linear(x))
}
"""


class Flow(eqx.Module):
    """Features of a place in, a layer without a norm, since sizes matter, what flows out."""

    inward: eqx.nn.Linear
    layer: stmlang.nn.ScanLayer
    outward: eqx.nn.Linear

    def __init__(self, dim: int, key: jax.Array) -> None:
        inward, own, outward = jax.random.split(key, 3)
        self.inward, self.outward = eqx.nn.Linear(2, dim, key=inward), eqx.nn.Linear(dim, 1, key=outward)
        self.layer = stmlang.nn.ScanLayer(stmlang.compile(SPEC), dim, norm=None, key=own)

    def __call__(self, places: jax.Array, on: stmlang.CompiledScan) -> jax.Array:
        x = jax.nn.gelu(jax.vmap(self.inward)(places))
        return jax.vmap(self.outward)(x + self.layer(x, on=on))[:, 0]


def river(count: int, generator: np.random.Generator) -> tuple[DAG, np.ndarray, np.ndarray]:
    """A tree, rain and slope of each place, and what flows past it. Place 0 is the mouth."""
    below = np.array([0, *(generator.integers(max(0, place - 8), place) for place in range(1, count))])
    rain, slope = generator.exponential(size=count), generator.random(count)
    flow = rain.copy()
    for place in range(count - 1, 0, -1):
        flow[below[place]] += flow[place] * (0.5 + 0.4 * slope[below[place]])
    edges = np.stack([np.arange(1, count), below[1:]], axis=1)
    return as_dag(edges, nodes=count), np.stack([rain, slope], axis=1), flow


def rivers(count: int, size: int, generator: np.random.Generator) -> tuple[Batch, np.ndarray, np.ndarray]:
    """Several in a batch, and for all of its places the features and what flows past."""
    dags, places, flows = zip(*(river(size, generator) for _ in range(count)), strict=True)
    together = batch(dags)
    return together, together.nodes(places), together.nodes(flows)


@eqx.filter_jit
def step(model: Flow, state: optax.OptState, on: stmlang.CompiledScan, places: jax.Array, flow: jax.Array, real: jax.Array):
    value, slope = eqx.filter_value_and_grad(error)(model, on, places, flow, real)
    updates, state = OPTIMIZER.update(slope, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, value


def error(model: Flow, on: stmlang.CompiledScan, places: jax.Array, flow: jax.Array, real: jax.Array) -> jax.Array:
    """The squared error as a share of the variance: 1 for who says the mean."""
    mean = jnp.sum(flow, where=real) / real.sum()
    return jnp.sum((model(places, on) - flow) ** 2, where=real) / jnp.sum((flow - mean) ** 2, where=real)


OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-2))


def main(steps: int = 300) -> float:
    """Train on rivers of 100 places, print, and return the error on those of 400."""
    generator = np.random.default_rng(0)
    model = Flow(16, jax.random.key(0))
    state = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))
    for number in range(steps):
        together, places, flow = rivers(8, 100, generator)
        model, state, value = step(model, state, model.layer.op.at(together), places, flow, together.node_mask)
        if number % 50 == 0:
            print(f"step {number}: unexplained {value:.3f}")
    together, places, flow = rivers(8, 400, generator)
    left = float(error(model, model.layer.op.at(together), places, flow, together.node_mask))
    print(f"of the variance on rivers of 400 places, {left:.2%} is unexplained")
    return left


if __name__ == "__main__":
    main()
