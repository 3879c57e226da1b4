"""Topologies of every kind, as texts: what they are made of shrinks to a single node.

Sizes are any whole numbers, so that nothing that works for powers of two or squares only goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import comb, prod

import numpy as np
from hypothesis import strategies as st

from stmlang.fuzz.trial import Listed

Arrow = tuple[int | None, int | None]
"""The numbers of an edge's tail and head, None for the outside."""

AXES = ("rows", "cols", "deep", "time")


@dataclass(frozen=True)
class Graph:
    """A graph that is written out: `arrows` in the order of writing between nodes, each of which has one of `names`."""

    kind: str
    names: tuple[str, ...]
    arrows: tuple[Arrow, ...]

    @property
    def text(self) -> str:
        """`dag { n1; n0 -> n2; n2 -> }`, or `tree { ... }`."""
        touched = {node for arrow in self.arrows for node in arrow}
        loners = [name for node, name in enumerate(self.names) if node not in touched]
        written = [f"{self._name(tail)} -> {self._name(head)}".strip() for tail, head in self.arrows]
        return f"{'tree' if self.kind == 'named tree' else 'dag'} {{ {'; '.join([*loners, *written])} }}"

    def _name(self, node: int | None) -> str:
        return "" if node is None else self.names[node]

    @property
    def inner(self) -> list[tuple[int, int]]:
        """The edges between two nodes."""
        return [(tail, head) for tail, head in self.arrows if tail is not None and head is not None]

    @property
    def fan(self) -> int:
        """The largest number of edges that leave a node, one at least."""
        return max([1, *np.bincount([tail for tail, _ in self.arrows if tail is not None], minlength=1).tolist()])

    @cached_property
    def walks(self) -> tuple[int, int]:
        """The largest number of paths between two nodes, and the length of the longest path."""
        size = len(self.names)
        step = np.zeros((size, size))
        for tail, head in self.inner:
            step[tail, head] += 1
        longest, walk, total = 0, step, np.eye(size)
        while walk.any():
            longest, total, walk = longest + 1, total + walk, walk @ step
        return int(total.max(initial=1)), longest


@dataclass(frozen=True)
class Layout:
    """A topology: `text` stands behind `on`, in a file with `declarations`. `regular` ones are chains and grids.

    `ports` are the names of its ports, `nodes` the number of its nodes, `fan` the largest number of edges that leave one;
    `paths` bounds the number of paths between two nodes, `length` is that of the longest. Where graphs are left to run time,
    `graphs` are some that may be given.
    """

    kind: str
    text: str
    ports: tuple[str, ...]
    regular: bool
    nodes: int
    fan: int
    paths: int
    length: int
    declarations: str = ""
    graphs: tuple[Listed, ...] | None = None


# --- graphs that are written out


@st.composite
def graphs(draw: st.DrawFn, kinds: Sequence[str] | None = None, most: int = 14) -> Graph:
    """Trees and DAGs of at most so many nodes that are written out, of the kinds `GRAPHS`, with open edges, isolated nodes,
    and names and edges in any order."""
    kind = draw(st.sampled_from(tuple(GRAPHS) if kinds is None else tuple(kinds)))
    size = draw(st.integers(1, most))
    loners = min(size - 1, draw(st.sampled_from((0, 0, 0, 1, 2))))
    inner = draw(GRAPHS[kind](size - loners))
    arrows: list[Arrow] = [*inner, *draw(_open(size, inner, tree=kind == "named tree"))]
    numbers = draw(_order(size))
    shuffled = tuple(arrows[place] for place in draw(_order(len(arrows))))
    return Graph(kind, tuple(f"n{number}" for number in numbers), shuffled)


def _order(size: int) -> st.SearchStrategy[list[int]]:
    """Any order of so many things; shrinks to the natural one."""
    return st.one_of(st.just(list(range(size))), st.permutations(range(size)))


@st.composite
def _open(draw: st.DrawFn, size: int, inner: Sequence[tuple[int, int]], tree: bool) -> list[Arrow]:
    """Edges from outside and to it; in a tree those that leave do so at roots."""
    nodes = st.integers(0, size - 1)
    entering = draw(st.lists(nodes, max_size=3))
    roots = sorted(set(range(size)) - {tail for tail, _ in inner})
    leaving = draw(st.lists(st.sampled_from(roots) if tree else nodes, max_size=3, unique=tree))
    return [*((None, node) for node in entering), *((node, None) for node in leaving)]


@st.composite
def _random(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """Any edges that lead to later nodes."""
    pair = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).map(lambda ends: (min(ends), max(ends)))
    pairs = draw(st.lists(pair, max_size=2 * size, unique=True))
    return [(tail, head) for tail, head in pairs if tail < head]


@st.composite
def _layered(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """Layers of up to four nodes; every node has some edges from the layer before, or all of them."""
    layers: list[range] = []
    while (start := layers[-1].stop if layers else 0) < size:
        layers.append(range(start, min(size, start + draw(st.integers(1, 4)))))
    full = draw(st.booleans())
    edges: list[tuple[int, int]] = []
    for before, layer in pairwise(layers):
        for head in layer:
            tails = before if full else draw(st.lists(st.sampled_from(before), max_size=2, unique=True))
            edges.extend((tail, head) for tail in tails)
    return edges


@st.composite
def _series_parallel(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """One edge, of which any one is again and again replaced by two in series, or given a detour beside it."""
    if size == 1:
        return []
    edges = [(0, 1)]
    for node in range(2, size):
        edge = draw(st.sampled_from(edges))
        if draw(st.booleans()):
            edges.remove(edge)
        edges += [(edge[0], node), (node, edge[1])]
    return edges


@st.composite
def _hub(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """One node between those that lead to it and those that it leads to; some edges pass it by."""
    hub = draw(st.integers(0, size - 1))
    spokes = [(node, hub) if node < hub else (hub, node) for node in range(size) if node != hub]
    past = [(node, size - 1 - node) for node in range(min(hub, size - 1 - hub))]
    return spokes + (past if draw(st.booleans()) else [])


@st.composite
def _star(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """One node that leads to all others, or that all others lead to."""
    inward = draw(st.booleans())
    return [(node, size - 1) for node in range(size - 1)] if inward else [(0, node) for node in range(1, size)]


@st.composite
def _tree(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """Children and their parents, or none."""
    edges: list[tuple[int, int]] = []
    for child in range(size - 1):
        parent = draw(st.one_of(st.integers(child + 1, size - 1), st.none()))
        edges += [] if parent is None else [(child, parent)]
    return edges


GRAPHS: Mapping[str, Callable[[int], st.SearchStrategy[list[tuple[int, int]]]]] = {
    "random dag": _random,
    "named tree": _tree,
    "layered dag": _layered,
    "series-parallel dag": _series_parallel,
    "hub dag": _hub,
    "star dag": _star,
}
"""The edges of a graph with so many nodes, by kind."""


# --- graphs that come at run time


def batches(nodes: int, edges: int, tree: bool) -> st.SearchStrategy[tuple[Listed, ...]]:
    """Up to four graphs of at most so many nodes and edges, numbered in any order, the graph without nodes among them; those
    that are no trees with parallel edges. There may be no graph at all."""
    count = st.sampled_from((1, 1, 2, 3, 4, 0))
    return count.flatmap(lambda count: st.tuples(*[_listed(nodes, edges, tree)] * count))


@st.composite
def _listed(draw: st.DrawFn, nodes: int, edges: int, tree: bool) -> Listed:
    size = draw(st.integers(0, nodes))
    if size == 0:
        return 0, ()
    loners = min(size - 1, draw(st.sampled_from((0, 0, 0, 1, 2))))
    kind = "named tree" if tree else draw(st.sampled_from(tuple(GRAPHS)))
    arrows = draw(GRAPHS[kind](size - loners))
    arrows += draw(st.lists(st.sampled_from(arrows), max_size=2)) if arrows and not tree else []
    number = draw(_order(size))
    shuffled = [arrows[place] for place in draw(_order(len(arrows)))]
    return size, tuple((number[tail], number[head]) for tail, head in shuffled[:edges])


@st.composite
def _at_run_time(draw: st.DrawFn, tree: bool) -> Layout:
    """A topology that graphs at run time must fit, and some that do."""
    drawn = draw(batches(8, 20, tree))
    most = [max([1, *sizes]) for sizes in ([nodes for nodes, _ in drawn], [len(edges) for _, edges in drawn])]
    shown = f"tree(nodes <= {most[0]})" if tree else f"dag(nodes <= {most[0]}, edges <= {most[1]})"
    graphs = [Graph("", ("",) * nodes, edges) for nodes, edges in drawn]
    return Layout(
        "run-time tree" if tree else "run-time dag",
        "g",
        ("edge",),
        False,
        sum(nodes for nodes, _ in drawn) + PADDING,
        max([1, *(graph.fan for graph in graphs)]),
        max([1, *(graph.walks[0] for graph in graphs)]),
        max([0, *(graph.walks[1] for graph in graphs)]),
        f"topology g = {shown}\n",
        drawn,
    )


PADDING = 16
"""About how many nodes fill up a batch of small graphs."""


# --- topologies


def topologies(kinds: Sequence[str] | None = None) -> st.SearchStrategy[Layout]:
    """Topologies of the kinds named, by default of any in `KINDS`: half of them chains and grids."""
    regular = ("chain", "grid") * (len(GRAPHS) // 2)
    return st.sampled_from(tuple(kinds) if kinds is not None else (*regular, *KINDS)).flatmap(_of_kind)


def _of_kind(kind: str) -> st.SearchStrategy[Layout]:
    match kind:
        case "chain":
            return _chains(37)
        case "grid":
            return _grids(42)
        case "complete tree":
            return _complete_trees(3)
        case "product":
            return _products()
        case "run-time dag" | "run-time tree":
            return _at_run_time(kind == "run-time tree")
        case _:
            return graphs((kind,)).map(_written)


@st.composite
def _chains(draw: st.DrawFn, most: int) -> Layout:
    size = draw(st.integers(1, most))
    return Layout("chain", f"chain(time = {size})", ("time",), True, size, 1, 1, size - 1)


@st.composite
def _grids(draw: st.DrawFn, most: int) -> Layout:
    """Two to four axes, of any sizes that make up at most so many nodes."""
    sides: list[int] = []
    for _ in range(draw(st.sampled_from((2, 2, 3, 4)))):
        sides.append(draw(st.integers(1, max(1, min(9, most // prod(sides))))))
    sides = [sides[place] for place in draw(_order(len(sides)))]
    names = AXES[: len(sides)]
    steps, paths = 0, 1
    for side in sides:
        steps, paths = steps + side - 1, paths * comb(steps + side - 1, side - 1)
    axes = ", ".join(f"{name} = {side}" for name, side in zip(names, sides, strict=True))
    return Layout("grid", f"grid({axes})", names, True, prod(sides), len(sides), paths, steps)


@st.composite
def _complete_trees(draw: st.DrawFn, deepest: int) -> Layout:
    depth = draw(st.integers(0, deepest))
    arity = draw(st.integers(1, 2 if depth > 2 else 3))
    nodes = sum(arity**level for level in range(depth + 1))
    return Layout("complete tree", f"tree(arity = {arity}, depth = {depth})", ("edge",), False, nodes, 1, 1, depth)


def _written(graph: Graph) -> Layout:
    paths, length = graph.walks
    return Layout(graph.kind, graph.text, ("edge",), False, len(graph.names), graph.fan, paths, length)


@st.composite
def _products(draw: st.DrawFn) -> Layout:
    """A tree or DAG times another one, a chain or a grid, either way around, written in place or by name."""
    first = draw(st.one_of(graphs(most=5).map(_written), _complete_trees(1)))
    second = draw(st.one_of(_chains(4), _grids(4), graphs(most=3).map(_written)))
    factors = (second, first) if draw(st.booleans()) else (first, second)
    declarations, texts = "", [factor.text for factor in factors]
    for number, factor in enumerate(factors):
        if draw(st.booleans()):
            declarations += f"topology part{number} = {factor.text}\n"
            texts[number] = f"part{number}"
    ragged = [factor for factor in factors if not factor.regular]
    ports = [f"edge{1 + ragged.index(factor)}" if port == "edge" and len(ragged) > 1 else port
             for factor in factors for port in factor.ports]  # fmt: skip
    return Layout(
        "product",
        " * ".join(texts),
        tuple(ports),
        False,
        first.nodes * second.nodes,
        first.fan + second.fan,
        first.paths * second.paths * comb(first.length + second.length, first.length),
        first.length + second.length,
        declarations,
    )


KINDS = ("chain", "grid", "complete tree", *GRAPHS, "product", "run-time dag", "run-time tree")
"""The names of all kinds."""
