"""Fully parallel: the gating matrix of the whole DAG by pairwise merges, then one attention pass."""

from __future__ import annotations

from stmlang.lower.merge_tree import whole_block, whole_tables
from stmlang.lower.strategy import Whole

LOWERING = Whole(whole_tables, whole_block)
