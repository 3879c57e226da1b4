"""Topologies as numbers: hand-checked small cases and the orders that other rooms rely on."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from stmlang.graph.build import complete_tree, regular_dag
from stmlang.graph.dag import OPEN
from stmlang.graph.line import line_count
from stmlang.graph.topology import dag_of
from stmlang.scan.topology import Axis, CompleteTree, Product, Regular, Runtime, Static, ports
from stmlang.source.diagnostic import SpecError
from stmlang.source.span import SourceFile, Span

HERE = Span(SourceFile("<test>", "x"), 0, 1)


def regular(**sizes: int | None) -> Regular:
    return Regular(tuple(Axis(name, size) for name, size in sizes.items()), HERE)


def static(count: int, *edges: tuple[int, int]) -> Static:
    return Static(tuple(f"n{node}" for node in range(count)), edges, False, HERE)


def code_of(error: pytest.ExceptionInfo[SpecError]) -> str:
    return error.value.diagnostics[0].code


def test_chain() -> None:
    dag = dag_of(regular(time=3))
    assert dag.tail.tolist() == [OPEN, 0, 1, 2]
    assert dag.head.tolist() == [0, 1, 2, OPEN]
    assert dag.ports == ("time",)
    assert dag.regular == (3,)
    assert dag.line_edges.tolist() == [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize("sizes", [(1,), (0,), (2, 3), (1, 7), (3, 4, 5), (0, 4), (4, 0), (2, 1, 2, 3), (0, 0)])
def test_regular_edge_order(sizes: tuple[int, ...]) -> None:
    """Per port a C-ordered array with that axis one longer; edge j enters the j-th node and leaves the one before."""
    names = [f"a{axis}" for axis in range(len(sizes))]
    dag = regular_dag(sizes, names)
    nodes = {place: number for number, place in enumerate(product(*map(range, sizes)))}
    expected: list[tuple[int, int, int]] = []
    for axis in range(len(sizes)):
        longer = [size + (place == axis) for place, size in enumerate(sizes)]
        for place in product(*map(range, longer)):
            before = tuple(at - (along == axis) for along, at in enumerate(place))
            expected.append((nodes.get(before, OPEN), nodes.get(place, OPEN), axis))
    assert list(zip(dag.tail.tolist(), dag.head.tolist(), dag.port.tolist(), strict=True)) == expected
    assert dag.node_count == len(nodes)
    assert line_count(dag) == len(nodes) * len(sizes) ** 2


def test_size_zero_passes_states_through() -> None:
    dag = regular_dag([0, 2], ["rows", "cols"])
    assert dag.tail.tolist() == dag.head.tolist() == [OPEN, OPEN]
    assert dag.entering.tolist() == dag.leaving.tolist() == [0, 1]


def test_static_keeps_order_and_names() -> None:
    dag = dag_of(static(3, (OPEN, 0), (0, 2), (0, 1), (2, OPEN), (0, 2)))
    assert dag.tail.tolist() == [OPEN, 0, 0, 2, 0]
    assert dag.head.tolist() == [0, 2, 1, OPEN, 2]
    assert dag.names == ("n0", "n1", "n2")
    assert dag.line_edges.tolist() == [[0, 1], [0, 2], [0, 4], [1, 3], [4, 3]]
    assert dag_of(static(0)).line_edges.shape == (0, 2)


@pytest.mark.parametrize(("arity", "depth"), [(0, 0), (0, 5), (1, 0), (1, 4), (2, 0), (2, 1), (2, 4), (3, 3), (5, 2)])
def test_complete_tree(arity: int, depth: int) -> None:
    dag = complete_tree(arity, depth)
    count = dag.node_count
    assert count == sum(arity**level for level in range(depth + 1))
    assert dag.tail.tolist() == list(range(count - 1))
    children = np.bincount(dag.head, minlength=count)
    assert set(children.tolist()) <= {0, arity}
    steps = np.zeros(count, int)
    for node in range(count - 2, -1, -1):
        steps[node] = steps[dag.head[node]] + 1
    assert steps.tolist() == sorted(steps.tolist(), reverse=True)
    assert all(steps[node] == (depth if arity else 0) for node in range(count) if not children[node])


def test_tree_children_are_neighbours() -> None:
    assert dag_of(CompleteTree(2, 2, HERE)).head.tolist() == [4, 4, 5, 5, 6, 6]


@pytest.mark.parametrize(
    "factors",
    [
        (static(3, (0, 1), (0, 2), (1, 2), (OPEN, 0)), regular(time=2)),
        (regular(rows=2, cols=3), static(2, (0, 1), (0, 1))),
        (static(2, (0, 1)), regular(rows=2), static(3, (2, 0), (0, 1))),
        (CompleteTree(2, 1, HERE), regular(time=0)),
    ],
)
def test_product(factors: tuple[Static | Regular | CompleteTree, ...]) -> None:
    """Against the definition: one component moves along an edge of its factor, ports in order."""
    topology = Product(factors, HERE)
    dag = dag_of(topology)
    parts = [dag_of(factor) for factor in factors]
    shapes = tuple(size for part in parts for size in part.node_shape)
    assert dag.node_shape == shapes
    assert dag.ports == tuple(port.name for port in ports(topology))
    nodes = {place: number for number, place in enumerate(product(*(range(part.node_count) for part in parts)))}
    expected: list[tuple[int, int, int]] = []
    base = 0
    for place, part in enumerate(parts):
        for port in range(len(part.ports)):
            edges = np.flatnonzero(part.port == port)
            ranges = [edges if along == place else range(other.node_count) for along, other in enumerate(parts)]
            for combination in product(*ranges):
                ends = [
                    nodes.get((*combination[:place], int(end[combination[place]]), *combination[place + 1 :]), OPEN)
                    for end in (part.tail, part.head)
                ]
                expected.append((ends[0], ends[1], base + port))
        base += len(part.ports)
    assert list(zip(dag.tail.tolist(), dag.head.tolist(), dag.port.tolist(), strict=True)) == expected


def test_refusals() -> None:
    with pytest.raises(SpecError) as error:
        dag_of(Runtime(8, 16, False, HERE))
    assert code_of(error) == "STM3301"
    with pytest.raises(SpecError) as error:
        dag_of(regular(rows=3, cols=None))
    assert code_of(error) == "STM3302"
    assert "`cols`" in error.value.diagnostics[0].message
    for sizes in ((2**31 - 1,), (2**16, 2**16), (2**31 - 1,) * 40):
        with pytest.raises(SpecError) as error:
            regular_dag(sizes, [f"a{axis}" for axis in range(len(sizes))])
        assert code_of(error) == "STM3303"
    for arity, depth in ((2, 2**31 - 1), (1, 2**31 - 1), (2**31 - 1, 2), (46341, 2)):
        with pytest.raises(SpecError) as error:
            complete_tree(arity, depth)
        assert code_of(error) == "STM3303"


def test_too_many_line_edges_are_counted_without_allocation() -> None:
    """A star with 100,000 edges in and out: 10^10 line edges."""
    count = 10**5
    edges = tuple((node, 0) for node in range(1, count + 1)) + tuple((0, node) for node in range(count + 1, 2 * count + 1))
    dag = dag_of(static(2 * count + 1, *edges))
    assert line_count(dag) == count**2
    with pytest.raises(SpecError) as error:
        _ = dag.line_edges
    assert code_of(error) == "STM3303"
