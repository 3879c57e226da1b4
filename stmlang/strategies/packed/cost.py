"""Graphs at run time: rows of path weights, level by level, and attention in blocks of the cells that graphs lie in.

Rows are those of edges; levels are as many as for any sweep over them.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate
from stmlang.cost.packed import needs_cells, packed_cost
from stmlang.cost.problem import Problem
from stmlang.cost.sweeps import edge_profile, needs_line_edges
from stmlang.cost.target import Target
from stmlang.strategies.base import Offers, plain_strategy

NAME = "packed"


def _refuses(problem: Problem) -> str | None:
    """Graphs that fit into cells, with scalar gates."""
    return needs_cells(problem) or needs_line_edges(problem)


def _cost(problem: Problem, target: Target) -> Candidate:
    return packed_cost(NAME, problem, target, edge_profile(problem, None), problem.counts.edges)


STRATEGY = plain_strategy(NAME, "rows of path weights, attention in blocks", _refuses, _cost, offers=Offers(at_run_time=True))
