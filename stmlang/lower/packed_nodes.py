"""`packed` for transitions of rank one, `f[out] g[in]`: rows of nodes, arcs are edges, and no line edge is numbered.

s[n] = sum over edges e into n of g[e] (f[e] s[tail e] + source[e] at the tail's place)
G[n] = sum over edges e into n of mark[e] (f[e] s[tail e] + source[e] at the tail's place)
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.steps import node_arcs
from stmlang.lower.operands import Operands
from stmlang.lower.packed import (
    Joined,
    Packed,
    Rows,
    Sweep,
    joined,
    outputs_by,
    packed_tables,
    placed,
    propagated,
    scalar,
    steps_of,
)
from stmlang.lower.strategy import Closed, Setup, Tables
from stmlang.lower.tables import take
from stmlang.plan.levels import StepShape, node_profile


def _tables(setup: Setup) -> Tables:
    return packed_tables(setup, node_profile(setup.problem, setup.dag), _sweep)


def _sweep(dag: DAG, shape: StepShape) -> Sweep:
    ahead, back = node_arcs(dag), node_arcs(dag.reversed())
    return Sweep(steps_of(ahead, shape), steps_of(back, shape), dag.tail.astype(np.int32), dag.head.astype(np.int32))


def _reading(tables: Sequence[Packed], operands: Sequence[Operands]) -> tuple[Joined, Rows]:
    factors = [part.factors for part in operands if part.factors is not None]
    source, mark = scalar([part.source for part in operands]), scalar([part.mark for part in operands])
    out, into = scalar([part.out for part in factors]), scalar([part.into for part in factors])
    nodes, width, edges = tables[0].place.shape[0], tables[0].node.shape[1], tables[0].tail.shape[0]
    made = joined(tables, nodes)
    first = jnp.repeat(nodes * jnp.arange(len(tables)), edges, total_repeat_length=len(tables) * edges)
    start = jnp.zeros((len(tables) * nodes + 1, source.shape[1], width), source.dtype)
    rows = propagated(made.sweep, into * out, placed(made, start, first + made.head, into * source))
    passed = (mark * out)[..., None] * take(rows, first + made.tail, 0)
    return made, placed(made, passed, jnp.arange(len(made.tail)), mark * source)


LOWERING = Closed(_tables, outputs_by(_reading), factored=True)
