"""Fully parallel: the gating matrix of the whole DAG by pairwise merges, then one attention pass."""

from __future__ import annotations

from stmlang.lower.adapters import by_block
from stmlang.lower.merge_tree import whole_block, whole_tables

LOWERING = by_block(whole_tables, whole_block)
