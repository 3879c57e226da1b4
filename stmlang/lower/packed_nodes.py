"""`packed` for transitions of rank one, `f[out] g[in]`: rows of nodes, arcs are edges, and no line edge is numbered.

s[n] = sum over edges e into n of g[e] (f[e] s[tail e] + source[e] at the tail's place)
G[n] = sum over edges e into n of mark[e] (f[e] s[tail e] + source[e] at the tail's place)
"""

from __future__ import annotations

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.steps import node_arcs
from stmlang.lower.operands import Operands
from stmlang.lower.packed import Packed, Rows, Sweep, at_heads, outputs_by, packed_tables, placed, propagated, scalar, steps_of
from stmlang.lower.strategy import Closed, Setup, Tables
from stmlang.lower.tables import take
from stmlang.plan.levels import StepShape, node_profile


def _tables(setup: Setup) -> Tables:
    return packed_tables(setup, node_profile(setup.problem, setup.dag), _sweep)


def _sweep(dag: DAG, shape: StepShape) -> Sweep:
    ahead, back = node_arcs(dag), node_arcs(dag.reversed())
    return Sweep(steps_of(ahead, shape), steps_of(back, shape), dag.tail.astype(np.int32), dag.head.astype(np.int32))


def _gating(made: Packed, operands: Operands) -> Rows:
    assert operands.factors is not None
    source, mark = scalar(operands.source), scalar(operands.mark)
    out, into = scalar(operands.factors.out), scalar(operands.factors.into)
    nodes = made.place.shape[0]
    rows = propagated(made.sweep, into * out, placed(made, into * source, made.head, nodes))
    read = at_heads(made, (mark * out)[..., None] * take(rows, made.tail, 0))
    return read + placed(made, mark * source, made.head, nodes)


LOWERING = Closed(_tables, outputs_by(_gating), factored=True)
