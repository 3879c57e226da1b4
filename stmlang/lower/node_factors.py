"""The factors of a rank-one transition by edge: those that the facts name, or those that a graph gives by itself."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from stmlang.graph.dag import DAG
from stmlang.lower.gates import straight
from stmlang.lower.operands import Factors, Operands
from stmlang.lower.strategy import LoweringContext
from stmlang.lower.tables import PAD, Indices, take


class Single(NamedTuple):
    """The factors of any transition where no node has several incoming and several outgoing edges. `out[e]` is the line edge of
    edge e and the only one that enters its tail, `into[e]` that of e and the only one that leaves its head; where they are
    absent the factor is one."""

    out: Int[Indices, " edge"]
    into: Int[Indices, " edge"]


def single_tables(context: LoweringContext) -> Single | None:
    """The tables of a graph whose transition is known to be of rank one by the graph alone."""
    facts = context.problem.facts
    return _single(context.dag) if facts is None or facts.rank_one is None else None


def _single(dag: DAG) -> Single:
    line = dag.line_edges
    entering = np.bincount(line[:, 1], minlength=dag.edge_count)
    alone = entering[line[:, 1]] == 1
    out, into = np.full(dag.edge_count, PAD), np.full(dag.edge_count, PAD)
    out[line[alone, 1]] = np.flatnonzero(alone)
    into[line[~alone, 0]] = np.flatnonzero(~alone)
    return Single(out.astype(np.int32), into.astype(np.int32))


def edge_factors(single: Single | None, operands: Operands) -> Factors:
    """The factors that the operands have, or those that the graph gives."""
    if single is None:
        assert operands.factors is not None
        return operands.factors

    def of(line: Indices) -> Array:
        gate = operands.transition
        if gate.shape[2] == 0:
            return jnp.ones((*gate.shape[:2], len(line), *gate.shape[3:]), gate.dtype)
        taken = take(gate, line, 2)
        return jnp.moveaxis(straight(line == PAD, jnp.moveaxis(taken, 2, 0)), 0, 2)

    return Factors(of(single.out), of(single.into))
