"""Each round of messages against its formula, written out node by node in numpy: value, and gradient by central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.graph import batch
from stmlang.graph.build import ragged_dag
from stmlang.models.graph.inputs import Links
from stmlang.models.graph.rounds import GAT, GCN, GIN, GINE, MPNN, GraphLSTM
from stmlang.source.diagnostic import SpecError

DIM, EDGE_FEATURES = 4, 3
TAIL, HEAD = np.asarray([0, 0, 1, 3, 0]), np.asarray([1, 2, 2, 1, 1])
"""A triangle with a tail, one edge of it twice; node 4 has no neighbour."""
NODES = 5
FEATURES = np.random.default_rng(0).standard_normal((len(TAIL), EDGE_FEATURES))
NEAR: list[list[tuple[int, int]]] = [
    [(int(HEAD[e]), e) for e in range(len(TAIL)) if TAIL[e] == i]
    + [(int(TAIL[e]), e) for e in range(len(TAIL)) if HEAD[e] == i]
    for i in range(NODES)
]
"""`(neighbour, edge)` for each link of each node."""


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def linear(map: Any, x: Any) -> Any:
    return map.weight @ x + map.bias


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def gcn(own: GCN, h: Any) -> list[Any]:
    degree = [1 + len(near) for near in NEAR]
    sums = [sum((h[j] / np.sqrt(degree[i] * degree[j]) for j, _ in NEAR[i]), h[i] / degree[i]) for i in range(NODES)]
    return [relu(linear(own.linear, total)) for total in sums]


def gat(own: GAT, h: Any) -> list[Any]:
    value = [linear(own.linear, x).reshape(own.send.shape) for x in h]
    found: list[Any] = []
    for i in range(NODES):
        heads: list[Any] = []
        for head in range(len(own.send)):
            from_nodes = [i, *(j for j, _ in NEAR[i])]
            scores = np.asarray([own.send[head] @ value[j][head] + own.receive[head] @ value[i][head] for j in from_nodes])
            weights = np.exp(np.where(scores > 0, scores, 0.2 * scores))
            heads.append(sum(w * value[j][head] for w, j in zip(weights / weights.sum(), from_nodes, strict=True)))
        total = np.concatenate(heads) + own.bias
        found.append(np.where(total > 0, total, np.exp(total) - 1))
    return found


def gin(own: GIN, h: Any, told: Callable[[int, int], Any] | None = None) -> list[Any]:
    """`told(j, edge)` is what a node learns over a link, `h[j]` where nothing else is said."""
    up: list[Any] = []
    for i in range(NODES):
        told_by = (h[j] if told is None else told(j, edge) for j, edge in NEAR[i])
        up.append(linear(own.up, sum(told_by, (1 + own.eps) * h[i])))
    moved = np.asarray(up) - own.norm.shift * np.mean(up, axis=0)
    normal = own.norm.scale * moved / np.sqrt(np.mean(moved**2, axis=0) + own.norm.eps) + own.norm.bias
    return [relu(linear(own.down, relu(row))) for row in normal]


def gine(own: GINE, h: Any) -> list[Any]:
    return gin(own.rest, h, lambda j, edge: relu(h[j] + linear(own.links, FEATURES[edge])))


def mpnn(own: MPNN, h: Any) -> list[Any]:
    found: list[Any] = []
    for i in range(NODES):
        message = np.zeros(DIM)
        for j, edge in NEAR[i]:
            message = message + linear(own.down, relu(linear(own.up, np.concatenate([h[i], h[j], FEATURES[edge]]))))
        a, b = linear(own.from_message, message).reshape(3, DIM), linear(own.from_state, h[i]).reshape(3, DIM)
        z, r = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
        found.append(z * h[i] + (1 - z) * np.tanh(a[2] + r * b[2]))
    return found


def lstm(own: GraphLSTM, h: Any, m: Any, x: Any) -> tuple[list[Any], list[Any], Any]:
    w, b = own.from_features.weight.reshape(4, DIM, DIM), own.from_features.bias.reshape(4, DIM)
    u, v = own.from_state.reshape(4, DIM, DIM), own.from_neighbours.reshape(4, DIM, DIM)
    told: list[Any] = []
    kept: list[Any] = []
    for i in range(NODES):
        count = max(len(NEAR[i]), 1)
        near = sum((h[j] for j, _ in NEAR[i]), np.zeros(DIM)) / count
        pre = [w[k] @ x[i] + u[k] @ h[i] + b[k] + (v[k] @ near if k else 0) for k in range(4)]
        around = sum((sigmoid(w[0] @ x[i] + v[0] @ h[j] + b[0]) * m[j] for j, _ in NEAR[i]), np.zeros(DIM)) / count
        kept.append(around + sigmoid(pre[0]) * m[i] + sigmoid(pre[1]) * np.tanh(pre[3]))
        told.append(np.tanh(sigmoid(pre[2]) * kept[-1]))
    return told, kept, x


ROUNDS: dict[str, tuple[Callable[[Any], Any], Callable[..., Any], int]] = {
    "gcn": (lambda key: GCN(DIM, key=key), lambda own, h: (gcn(own, h),), 1),
    "gat": (lambda key: GAT(DIM, heads=2, key=key), lambda own, h: (gat(own, h),), 1),
    "gin": (lambda key: GIN(DIM, key=key), lambda own, h: (gin(own, h),), 1),
    "gine": (lambda key: GINE(DIM, edge_features=EDGE_FEATURES, key=key), lambda own, h: (gine(own, h),), 1),
    "mpnn": (lambda key: MPNN(DIM, edge_features=EDGE_FEATURES, key=key), lambda own, h: (mpnn(own, h),), 1),
    "lstm": (lambda key: GraphLSTM(DIM, key=key), lstm, 3),
}
"""How to make it, its formula, and how many arrays its state has."""


def links() -> tuple[Links, int]:
    """Those of the graph in a batch, in float64, and the batch's number of nodes."""
    here = batch([ragged_dag(NODES, TAIL, HEAD)])
    made = Links.of(here.arrays, jnp.asarray(here.edges([FEATURES])))
    return made._replace(degree=made.degree.astype(jnp.float64), sizes=made.sizes.astype(jnp.float64)), here.bucket.nodes


@pytest.mark.parametrize("name", ROUNDS)
def test_a_round_is_its_formula(name: str) -> None:
    make, formula, arrays = ROUNDS[name]
    random = np.random.default_rng(1)
    on, count = links()

    def noise(like: Any) -> Any:
        return random.standard_normal(like.shape)

    # Every parameter at random, so that no bias is zero.
    learned, fixed = eqx.partition(make(jax.random.key(0)), eqx.is_inexact_array)
    point = jax.tree.map(noise, learned), [noise(np.zeros((NODES, DIM))) for _ in range(arrays)]
    change, weight = jax.tree.map(noise, point), [noise(np.zeros((NODES, DIM))) for _ in range(arrays)]

    def padded(array: Any) -> Any:
        return jnp.zeros((count, DIM)).at[:NODES].set(array) + jnp.where(jnp.arange(count) < NODES, 0, 7.0)[:, None]

    def compiled(learned: Any, state: Any) -> Any:
        found = eqx.combine(learned, fixed)(tuple(padded(array) for array in state), on)
        return [array[:NODES] for array in found]

    def score(learned: Any, state: Any) -> Any:
        return sum(jnp.sum(w * array) for w, array in zip(weight, compiled(learned, state), strict=True))

    def by_formula(step: float) -> Any:
        learned, state = jax.tree.map(lambda a, b: a + step * b, point, change)
        return formula(eqx.combine(learned, fixed), *state)

    wanted = by_formula(0.0)
    for found, expected in zip(jax.jit(compiled)(*point), wanted, strict=True):
        np.testing.assert_allclose(found, np.asarray(expected), atol=1e-12)
    ends = [
        sum(float(np.sum(w * np.asarray(a))) for w, a in zip(weight, by_formula(step), strict=True)) for step in (1e-6, -1e-6)
    ]
    gradient = jax.jit(jax.grad(score, argnums=(0, 1)))(*jax.tree.map(jnp.asarray, point))
    slope = sum(float(jnp.sum(a * b)) for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(change), strict=True))
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)


def test_heads_divide_the_features() -> None:
    with pytest.raises(SpecError, match="STM5208"):
        GAT(DIM, heads=3, key=jax.random.key(0))
