"""`packed` on nodes, for rank-one transitions: no line edge is counted, as none is made."""

from __future__ import annotations

from stmlang.cost.candidate import Candidate
from stmlang.cost.packed import needs_cells, packed_cost
from stmlang.cost.problem import Problem
from stmlang.cost.sweeps import needs_node_states, node_profile
from stmlang.cost.target import Target
from stmlang.strategies.base import Needs, Offers, plain_strategy

NAME = "packed_nodes"


def _refuses(problem: Problem) -> str | None:
    """Graphs that fit into cells, with scalar gates and rank-one transitions."""
    return needs_cells(problem) or needs_node_states(problem)


def _cost(problem: Problem, target: Target) -> Candidate:
    counts = problem.counts
    return packed_cost(NAME, problem, target, node_profile(problem, None), counts.nodes + counts.edges)


STRATEGY = plain_strategy(
    NAME,
    "rows of path weights of nodes, attention in blocks",
    _refuses,
    _cost,
    offers=Offers(at_run_time=True),
    needs=Needs(factors=True),
)
