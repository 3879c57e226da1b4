"""The recurrence on node states: rank-one transitions over trees, DAGs and products, level by level.

Work is linear in edges, and no line edge is counted, as none is made. Training keeps one state a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stmlang.cost.candidate import Candidate, ConfigValue, Rejection, Strategy
from stmlang.cost.problem import Problem
from stmlang.cost.sweeps import NODE_PASSES, level_sweep, needs_node_states, node_profile
from stmlang.cost.work import takes_no_settings

NAME = "nodes"


def propose(problem: Problem) -> Iterable[Candidate | Rejection]:
    """One candidate for rank-one transitions on ragged topologies."""
    yield build(problem, {})


def build(problem: Problem, config: Mapping[str, ConfigValue]) -> Candidate | Rejection:
    """It has no settings."""
    if reason := takes_no_settings(config):
        return Rejection(NAME, reason)
    if problem.axes is not None:
        return Rejection(NAME, "it is for trees and DAGs: a grid's rows and wavefronts are regular")
    if reason := needs_node_states(problem):
        return Rejection(NAME, reason)
    counts = problem.counts
    profile = node_profile(problem, problem.dag)
    held = counts.nodes + counts.entering
    return level_sweep(NAME, problem, profile, NODE_PASSES, held, min(held, counts.slots + counts.entering))


STRATEGY = Strategy(NAME, "sweep over levels, one state a node", propose, build, at_run_time=True)
