"""The recurrence on node states: rank-one transitions over trees, DAGs and products, level by level.

Work is linear in edges, and no line edge is counted, as none is made. Training keeps one state a node.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate
from stmlang.cost.problem import Problem
from stmlang.cost.sweeps import level_sweep, needs_node_states, node_profile
from stmlang.cost.target import Target
from stmlang.strategies.base import Needs, Offers, plain_strategy

NAME = "nodes"


def _refuses(problem: Problem) -> str | None:
    """Ragged topologies, and transitions of rank one."""
    if problem.axes is not None:
        return "it is for trees and DAGs: a grid's rows and wavefronts are regular"
    return needs_node_states(problem)


def _cost(problem: Problem, target: Target) -> Candidate:
    counts = problem.counts
    profile = node_profile(problem, problem.dag)
    held = counts.nodes + counts.entering
    return level_sweep(NAME, problem, target, profile, held, min(held, counts.slots + counts.entering))


STRATEGY = plain_strategy(
    NAME,
    "sweep over levels, one state a node",
    _refuses,
    _cost,
    offers=Offers(at_run_time=True, several=True),
    needs=Needs(factors=True),
)
