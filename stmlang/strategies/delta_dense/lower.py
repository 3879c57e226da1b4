"""The delta rule on a DAG as one triangular system for each head and direction."""

from __future__ import annotations

from stmlang.lower.delta_system import run_system, system_tables
from stmlang.lower.strategy import Lowering

LOWERING = Lowering(system_tables, run_system)
