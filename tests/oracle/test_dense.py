"""The three oracles agree: node by node, by one dense solve on the line graph, path by path."""

from __future__ import annotations

import numpy as np
import pytest

from stmlang.graph.topology import dag_of
from stmlang.oracle.dense import gating_by_paths, gating_matrix, solved
from stmlang.oracle.recurrence import reference
from stmlang.scan.scan import Direction, Scan
from stmlang.scan.topology import CompleteTree, Product, ports
from tests.helpers.scans import NOWHERE, PLAIN, dag, given_scan, grid, orientations, random_inputs

DIAMOND = dag(4, [(-1, 0), (0, 1), (0, 2), (1, 3), (2, 3), (3, -1), (0, 3)])
TRACKS = {"source": ("out", "track"), "transition": ("out", "in", "track", "track'"), "mark": ("in", "track"), "direct": ()}
BOTH = (Direction((1,)), Direction((-1,)))

CASES: dict[str, Scan] = {
    "one node": given_scan(grid(1)),
    "chain": given_scan(grid(5), heads=2),
    "chain both": given_scan(grid(4), directions=orientations(1), combine="concat"),
    "chain tracks": given_scan(grid(4), TRACKS, track=3, directions=orientations(1)),
    "chain sum": given_scan(grid(4), normalize="sum"),
    "chain mlstm": given_scan(grid(4), normalize="mlstm"),
    "row": given_scan(grid(1, 4)),
    "grid": given_scan(grid(3, 2), heads=2, directions=orientations(2)),
    "grid zero turn": given_scan(grid(2, 3), zero=(("b", "a"),), directions=orientations(2), directional_direct=True),
    "grid tracks": given_scan(grid(2, 2), TRACKS, track=2),
    "volume": given_scan(grid(2, 1, 3), directions=orientations(3)[2:6]),
    "diamond": given_scan(DIAMOND, directions=BOTH),
    "diamond backward": given_scan(DIAMOND, directions=BOTH[1:], heads=2),
    "no edges": given_scan(dag(2, []), directions=BOTH),
    "no edges enter": given_scan(dag(2, [(1, -1)]), TRACKS, track=2),
    "tree": given_scan(CompleteTree(2, 2, NOWHERE), directions=BOTH),
    "product": given_scan(Product((grid(2), DIAMOND), NOWHERE), directions=(Direction((1, 1)), Direction((-1, -1)))),
}


@pytest.mark.parametrize("name", CASES)
def test_oracles_agree(name: str) -> None:
    scan = CASES[name]
    graph = dag_of(scan.topology)
    inputs = random_inputs(scan, graph, seed=len(name))
    if scan.normalize == "sum":
        inputs["initial"] = None
        inputs = {name: np.abs(array) if name in "qk" else array for name, array in inputs.items()}
        inputs["gates"] = {name: np.abs(array) for name, array in inputs["gates"].items()}
    ours, dense = reference(scan, graph, **inputs), solved(scan, graph, **inputs)
    np.testing.assert_allclose(ours.h, dense.h, rtol=1e-11, atol=1e-12)
    for mine, other in zip(ours.state, dense.state, strict=True):
        assert mine.keys() == other.keys() == {port.name for port in ports(scan.topology)}
        for port in mine:
            np.testing.assert_allclose(mine[port], other[port], rtol=1e-11, atol=1e-12)
    del inputs["initial"]
    by_solve = gating_matrix(scan, graph, **inputs)
    by_paths = gating_matrix(scan, graph, **inputs, method=gating_by_paths)
    np.testing.assert_allclose(by_solve, by_paths, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("gate", PLAIN)
def test_every_gate_matters(gate: str) -> None:
    scan = CASES["grid"]
    graph = dag_of(scan.topology)
    inputs = random_inputs(scan, graph, seed=1)
    before = reference(scan, graph, **inputs).h
    inputs["gates"][gate] = inputs["gates"][gate] + 0.1
    assert not np.allclose(before, reference(scan, graph, **inputs).h)
