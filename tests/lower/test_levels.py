"""Level sweeps at scale: hubs without line edges, memory of a training step, buffers of a forward one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang

BODY = """
    f[out] = given()
    g[in] = given()
    source[out] = given()
    transition[out, in] = f[out] * g[in]
    mark[in] = given()
    direct = 0
    stabilize none
"""


def on_graph(folder: Path, pairs: np.ndarray, key: int, dtype: str) -> Any:
    """A rank-one scan over the DAG of these pairs of nodes."""
    (folder / "graph.edges").write_text("".join(f"{tail} {head}\n" for tail, head in pairs.tolist()))
    path = folder / "scan.stm"
    path.write_text(f'scan test(heads = 1, key = {key}, value = {key}) on dag from "graph.edges" {{{BODY}}}\n')
    return stmlang.compile(path, dtype=dtype, strategy="nodes")


def test_a_hub_forms_no_line_graph(tmp_path: Path) -> None:
    """50,000 edges in, 50,000 out: 2.5 * 10^9 pairs, more than can be numbered. Every state is a single number here."""
    count = 50_000
    ends = np.arange(1, count + 1)
    zero = np.zeros(count, np.int64)
    op = on_graph(tmp_path, np.concatenate([np.stack([ends, zero], 1), np.stack([zero, ends + count], 1)]), 1, "float64")
    q, k, v, gates = (np.asarray(part) if not isinstance(part, dict) else part for part in op.example(0))
    h = np.asarray(op(q, k, v, gates))[:, 0, 0]
    assert "line_edges" not in vars(op.dag)
    f, g, source, mark = (np.asarray(gates[name])[:, 0] for name in ("f", "g", "source", "mark"))
    names = np.asarray([int(name) for name in op.dag.names])
    tail, head, hub = op.dag.tail, op.dag.head, int(np.flatnonzero(names == 0)[0])
    kv = k[:, 0, 0] * v[:, 0, 0]
    into, out = np.flatnonzero(head == hub), np.flatnonzero(tail == hub)
    arriving = source[into] * kv[tail[into]]
    state = np.sum(g[into] * arriving)
    np.testing.assert_allclose(h[hub], q[hub, 0, 0] * np.sum(mark[into] * arriving), rtol=1e-9)
    np.testing.assert_allclose(
        h[head[out]], q[head[out], 0, 0] * mark[out] * (f[out] * state + source[out] * kv[hub]), rtol=1e-9
    )


def test_training_holds_one_state_a_node(tmp_path: Path) -> None:
    """And a forward sweep those that are still to be read: a long band has few."""
    rng, count = np.random.default_rng(0), 3000
    tails = rng.integers(0, count - 8, 2 * count)
    pairs = np.unique(np.stack([tails, tails + rng.integers(1, 8, 2 * count)], 1), axis=0)
    op = on_graph(tmp_path, pairs, 32, "float32")
    q, k, v, gates = op.example(0)
    states = op.dag.node_count * 32 * 32 * 4

    def loss(v: jax.Array) -> jax.Array:
        return jnp.sum(op(q, k, v, gates) ** 2)

    def temporary(function: Any) -> int:
        return jax.jit(function).lower(v).compile().memory_analysis().temp_size_in_bytes

    assert temporary(loss) < 0.6 * states
    assert temporary(jax.grad(loss)) < 3 * states


OPEN_ENDS = "dag { -> s; s -> t, u; t, u -> w; w ->; u -> }"


@pytest.mark.parametrize("strategy", ["recurrent", "nodes", "dense_nodes", "parallel", "chunkwise", "dense"])
def test_what_no_node_reads_may_be_anything(strategy: str) -> None:
    """Nothing is written on an edge that enters from outside, and nobody reads one that leaves: NaN there reaches no result, no
    state and no other gradient."""
    text = f"scan test(heads = 1, key = 2, value = 2) on {OPEN_ENDS} {{{BODY}}}"
    op = stmlang.compile(text, dtype="float64", strategy=strategy)
    q, k, v, gates = op.example(0)
    initial = jax.tree.map(jnp.ones_like, op.zero_state())
    dead = {name: op.dag.tail < 0 if name in ("source", "f") else op.dag.head < 0 for name in ("source", "f", "mark", "g")}

    def called(gates: Any) -> Any:
        found = op(q, k, v, gates, initial, return_state=True)
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(found)), found

    filled = gates | {name: jnp.where(where[:, None], jnp.nan, gates[name]) for name, where in dead.items()}
    evaluated = jax.jit(jax.value_and_grad(called, has_aux=True))
    (_, wanted), gradient = evaluated(gates)
    (_, found), other = evaluated(filled)
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(one, two)
    for name, array in gradient.items():
        live = ~dead.get(name, np.zeros(len(array), bool))
        np.testing.assert_array_equal(np.asarray(other[name])[live], np.asarray(array)[live])
