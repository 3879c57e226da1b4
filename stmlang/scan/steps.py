"""Chains whose nodes take several steps each: the chain of all steps, of which the last ones are read.

A node with n steps is n nodes in a row. Each has a key, a value and gates of its own, and the query of the node; what the node
gives is what the last of them gives, in the sense of the scan. A gate without the index `step` is the same for all of them.
"""

from __future__ import annotations

from dataclasses import replace

from stmlang.scan.scan import Leaf, Scan
from stmlang.scan.topology import Axis, Regular


def unrolled(scan: Scan) -> Scan:
    """The scan on the chain of all steps. A leaf that a step learns has a value for each node there."""
    assert isinstance(scan.topology, Regular)
    axes = tuple(Axis(axis.name, None if axis.size is None else axis.size * scan.steps) for axis in scan.topology.axes)
    topology = replace(scan.topology, axes=axes)
    return replace(scan, topology=topology, leaves=tuple(map(_at_nodes, scan.leaves)), steps=1)


def _at_nodes(leaf: Leaf) -> Leaf:
    if not leaf.stepped:
        return leaf
    return replace(leaf, kind="given" if leaf.kind == "param" else leaf.kind, stepped=False)
