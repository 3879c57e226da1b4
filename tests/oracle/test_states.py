"""Cut and continued, the reference gives what it gives in one piece: so the states have the layout that is promised."""

from __future__ import annotations

import numpy as np
import pytest

from stmlang.graph.shapes import state_shapes
from stmlang.graph.topology import dag_of
from stmlang.oracle.recurrence import reference
from stmlang.oracle.sites import sites_of, topological_order
from stmlang.scan.scan import Direction
from tests.helpers.cuts import by_parts, by_tiles
from tests.helpers.scans import PLAIN, dag, given_scan, grid, orientations, random_inputs

CUTS = {
    "chain": (((3, 4, 2),), orientations(1)),
    "grid": (((2, 3), (1, 3, 1)), orientations(2)),
    "volume": (((1, 2), (3,), (2, 1)), orientations(3)[1:6:2]),
}


def close(found: tuple, wanted: tuple) -> None:
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-11, atol=1e-12)
    for name, array in wanted[1][0].items():
        np.testing.assert_allclose(found[1][0][name], array, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("track", [1, 2])
def test_tiles(name: str, track: int) -> None:
    pieces, directions = CUTS[name]
    for direction in directions:
        indices = PLAIN if track == 1 else PLAIN | {"transition": ("out", "in", "track", "track'"), "source": ("out", "track")}
        options = {"directions": (direction,), "heads": 2, "track": track}
        scan = given_scan(grid(*(sum(sizes) for sizes in pieces)), indices, **options)
        arguments = tuple(random_inputs(scan, dag_of(scan.topology), seed=3).values())

        def evaluate(sizes: tuple[int, ...], *arguments: object, indices: dict = indices, options: dict = options) -> tuple:
            tile = given_scan(grid(*sizes), indices, **options)
            found = reference(tile, dag_of(tile.topology), *arguments)
            return found.h, found.state

        whole = reference(scan, dag_of(scan.topology), *arguments)
        close(by_tiles(evaluate, pieces, direction.senses, arguments), (whole.h, whole.state))


def test_parts() -> None:
    edges = [(-1, 2), (2, 0), (0, 3), (2, 3), (3, 1), (0, 1), (1, -1), (-1, 0), (3, 4), (4, -1), (2, 4), (5, 4)]
    scan = given_scan(dag(6, edges), heads=2)
    graph = dag_of(scan.topology)
    arguments = tuple(random_inputs(scan, graph, seed=5).values())

    def evaluate(nodes: int, edges: list, *arguments: object) -> tuple:
        part = given_scan(dag(nodes, edges), heads=2)
        found = reference(part, dag_of(part.topology), *arguments)
        return found.h, found.state

    order = np.asarray(topological_order(sites_of(graph, Direction((1,)))))
    whole = reference(scan, graph, *arguments)
    for cuts in ((2,), (1, 3), (1, 2, 3, 4, 5)):
        parts = [np.sort(part) for part in np.split(order, cuts)]
        close(by_parts(evaluate, graph, parts, arguments), (whole.h, whole.state))


def test_nothing_to_scan() -> None:
    """On an axis of length zero what enters leaves as it came."""
    scan = given_scan(grid(0, 3), directions=orientations(2))
    graph = dag_of(scan.topology)
    inputs = random_inputs(scan, graph, seed=0)
    found = reference(scan, graph, **inputs)
    assert found.h.shape == (0, 3, 1, 3)
    for entering, leaving in zip(inputs["initial"], found.state, strict=True):
        np.testing.assert_array_equal(entering["a"], leaving["a"])
        assert leaving["b"].shape == (0, 1, 2, 3)


def test_backward_states_are_those_of_the_reversed_graph() -> None:
    scan = given_scan(dag(2, [(-1, 0), (-1, 1), (0, 1), (1, -1)]), directions=(Direction((1,)), Direction((-1,))))
    graph = dag_of(scan.topology)
    assert [shapes["edge"][0] for shapes in state_shapes(scan, graph)] == [2, 1]
    assert [shapes["edge"][0] for shapes in state_shapes(scan, graph, final=True)] == [1, 2]
