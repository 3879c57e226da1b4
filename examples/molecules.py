"""Molecules: which of them are mutagenic, from graphs of atoms and bonds, no two alike.

    python examples/molecules.py FOLDER

FOLDER holds the set MUTAG of the TUDataset collection, `FOLDER/MUTAG/MUTAG_A.txt` and its companions. Each batch of graphs is
brought to one of few shapes, so that a new batch does not compile anew. Every tenth molecule is held back for the test.
"""

from __future__ import annotations

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import stmlang
from stmlang.graph import Batch, GraphSet, batch, tudataset
from stmlang.models.graph import PLSTM, Inputs


def made(graphs: GraphSet, key: jax.Array) -> PLSTM:
    """One pair of layers, P- and D-mode, 32 features wide."""
    p = stmlang.compile("std:plstm/graph_p", heads=2, key=8, value=8)
    d = stmlang.compile("std:plstm/graph_d", heads=2, key=8, value=8)
    nodes, edges = graphs.nodes[0].shape[1], graphs.edges[0].shape[1]
    return PLSTM(p, d, classes=2, node_features=nodes, edge_features=edges, dim=32, pairs=1, key=key)


def inputs(model: PLSTM, graphs: GraphSet, chosen: np.ndarray) -> tuple[Batch, Inputs, np.ndarray]:
    """Some molecules as a batch, what the model reads of them, and their classes; those of padding are 0."""
    assert graphs.labels is not None
    together = batch([graphs.dags[number] for number in chosen])
    read = model.prepare(together, [graphs.nodes[number] for number in chosen], [graphs.edges[number] for number in chosen])
    return together, read, together.graphs(graphs.labels[chosen])


@eqx.filter_jit
def step(
    model: PLSTM, state: optax.OptState, read: Inputs, classes: jax.Array, real: jax.Array
) -> tuple[PLSTM, optax.OptState, jax.Array]:
    def loss(model: PLSTM) -> jax.Array:
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(model(read), classes), where=real)

    value, slope = eqx.filter_value_and_grad(loss)(model)
    updates, state = OPTIMIZER.update(slope, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, value


OPTIMIZER = optax.adamw(3e-3)


def main(folder: str, steps: int = 200) -> float:
    """Train, print, and return the share of right molecules among those held back."""
    graphs, generator = tudataset("MUTAG", folder), np.random.default_rng(0)
    order = generator.permutation(len(graphs.dags))
    test, train = order[::10], np.delete(order, np.s_[::10])
    model = made(graphs, jax.random.key(0))
    state = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))
    for number in range(steps):
        together, read, classes = inputs(model, graphs, generator.choice(train, 32, replace=False))
        model, state, value = step(model, state, read, classes, together.graph_mask)
        if number % 50 == 0:
            print(f"step {number}: loss {value:.3f}")
    together, read, classes = inputs(model, graphs, test)
    guesses = np.asarray(model(read)).argmax(-1)
    right = float((guesses == classes)[together.graph_mask].mean())
    print(f"{right:.1%} of {len(test)} molecules held back are right")
    return right


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python examples/molecules.py FOLDER, which holds MUTAG/MUTAG_A.txt", file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1])
