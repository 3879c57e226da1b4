"""`packed` on nodes, for rank-one transitions: no line edge is counted, as none is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stmlang.cost.candidate import Candidate, ConfigValue, Rejection, Strategy
from stmlang.cost.problem import Problem
from stmlang.cost.sweeps import needs_node_states, node_profile
from stmlang.cost.work import takes_no_settings
from stmlang.strategies.packed.cost import needs_cells, packed_cost

NAME = "packed_nodes"


def propose(problem: Problem) -> Iterable[Candidate | Rejection]:
    """One candidate for rank-one transitions on graphs that fit into cells."""
    yield build(problem, {})


def build(problem: Problem, config: Mapping[str, ConfigValue]) -> Candidate | Rejection:
    """It has no settings."""
    if reason := takes_no_settings(config) or needs_cells(problem) or needs_node_states(problem):
        return Rejection(NAME, reason)
    counts = problem.counts
    return packed_cost(NAME, problem, node_profile(problem, None), counts.nodes + counts.edges)


STRATEGY = Strategy(NAME, "rows of path weights of nodes, attention in blocks", propose, build, at_run_time=True)
