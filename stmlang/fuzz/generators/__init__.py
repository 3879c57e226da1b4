"""Hypothesis strategies for everything that a scan can be made of.

`topologies` and `graphs`, `specs` and their values (`gate_values`), and both together, `trials`. What they draw is well
typed and well conditioned by construction, and shrinks to small sizes and few, short equations.
"""

from __future__ import annotations

from stmlang.fuzz.generators.specs import specs, trials
from stmlang.fuzz.generators.topologies import KINDS, Graph, Layout, graphs, topologies
from stmlang.fuzz.generators.values import PROFILES, gate_values, random_arguments

__all__ = [
    "KINDS",
    "PROFILES",
    "Graph",
    "Layout",
    "gate_values",
    "graphs",
    "random_arguments",
    "specs",
    "topologies",
    "trials",
]
