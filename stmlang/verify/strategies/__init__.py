"""Hypothesis strategies for everything that a scan can be made of."""

from __future__ import annotations

from stmlang.verify.strategies.values import PROFILES, gate_values, random_arguments

__all__ = ["PROFILES", "gate_values", "random_arguments"]
