"""Graphs written out, `dag { ... }` and `tree { ... }`: their edges, and what would keep them from being one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from typing import Any

from stmlang.check.problems import Problems, arrows
from stmlang.scan.topology import OPEN, Static
from stmlang.source.diagnostic import Label
from stmlang.source.span import Span
from stmlang.syntax import tree

MOST_EDGES = 100_000
"""Of all graphs of a text together: an arrow between two lists stands for every pair, so that a short text can mean many edges.
"""

MOST_CYCLES = 5


@dataclass
class _Graph:
    """Nodes in order of mention; edges with the arrow that wrote each."""

    nodes: dict[str, int]
    edges: list[tuple[int, int]]
    arrows: list[tree.Arrow]


class Graphs:
    """The graphs of a text, each built once however many scans run on it."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._edges = 0
        self._built: dict[Span, Static | None] = {}

    def build(self, item: tree.TopologyInline) -> Static | None:
        """A graph that is written out, None if it is none: the reasons have been reported."""
        if item.span not in self._built:
            self._built[item.span] = _inline_graph(self._problems, item) if self._has_room(item) else None
        return self._built[item.span]

    def _has_room(self, item: tree.TopologyInline) -> bool:
        count = sum(max(1, len(arrow.tails)) * max(1, len(arrow.heads)) for arrow in item.arrows if arrow.arrow)
        if self._edges + count <= MOST_EDGES:
            self._edges += count
            return True
        together = f", {self._edges + count:,} with those of the graphs before" if self._edges else ""
        note = f"graphs written out have at most {MOST_EDGES:,} edges, all together"
        help = 'put it into a file: `dag from "graph.edges"`'
        self._problems.error("STM3009", f"these arrows stand for {count:,} edges{together}", item.span, note, help=help)
        return False


def _inline_graph(problems: Problems, item: tree.TopologyInline) -> Static | None:
    is_tree = item.kind.text == "tree"
    graph = _read(problems, item)
    if graph is None:
        return None
    sound = _simple(problems, graph)
    sound = (not is_tree or _single_parents(problems, graph)) and sound
    sound = _acyclic(problems, graph) and sound
    return Static(tuple(graph.nodes), tuple(graph.edges), is_tree, item.span) if sound else None


def _read(problems: Problems, item: tree.TopologyInline) -> _Graph | None:
    graph = _Graph({}, [], [])
    for arrow in item.arrows:
        for name in (*arrow.tails, *arrow.heads):
            graph.nodes.setdefault(name.text, len(graph.nodes))
        if not arrow.arrow:
            continue
        if not arrow.tails and not arrow.heads:
            note = "an edge that enters from outside is `-> a`, one that leaves is `a ->`"
            problems.error("STM3008", "this arrow touches no node", arrow.span, note)
            return None
        ends = ([graph.nodes[name.text] for name in names] or [OPEN] for names in (arrow.tails, arrow.heads))
        tails, heads = ends
        graph.edges += [(tail, head) for tail in tails for head in heads]
        graph.arrows += [arrow] * (len(tails) * len(heads))
    if not graph.nodes:
        problems.error("STM3008", f"this {item.kind.text} has no nodes", item.span, help="write `a -> b`, or `a` for one node")
        return None
    return graph


def _simple(problems: Problems, graph: _Graph) -> bool:
    """Neither self loops nor repeated edges. Open edges may repeat: each carries a state of its own."""
    names = list(graph.nodes)
    first: dict[tuple[int, int], tree.Arrow] = {}
    sound = True
    for (tail, head), arrow in zip(graph.edges, graph.arrows, strict=True):
        if tail == OPEN or head == OPEN:
            continue
        written = f"`{names[tail]} -> {names[head]}`"
        if tail == head:
            problems.error(
                "STM3005", f"{written} leads from a node to itself", arrow.span, "no node comes before itself in a DAG"
            )
            sound = False
        elif (tail, head) in first:
            labels = [Label(first[tail, head].span, "first written here")]
            problems.error("STM3006", f"the edge {written} is written twice", arrow.span, labels=labels)
            sound = False
        first.setdefault((tail, head), arrow)
    return sound


def _single_parents(problems: Problems, graph: _Graph) -> bool:
    """At most one edge leaves each node. Several roots are fine: a forest is scanned like a tree."""
    names = list(graph.nodes)
    leaving: dict[int, tuple[int, tree.Arrow]] = {}
    sound = True
    for (tail, head), arrow in zip(graph.edges, graph.arrows, strict=True):
        if tail == OPEN:
            continue
        if tail in leaving and (leaving[tail][0] != head or head == OPEN):
            other, before = leaving[tail]
            both = " and ".join("the outside" if node == OPEN else f"`{names[node]}`" for node in (other, head))
            note = "the edges of a tree lead from the children to their one parent"
            labels = [Label(before.span, "its first parent")] if before is not arrow else []
            help = "turn the arrows around if they point away from the root, or write `dag`"
            problems.error("STM3007", f"`{names[tail]}` has two parents, {both}", arrow.span, note, help=help, labels=labels)
            sound = False
        leaving.setdefault(tail, (head, arrow))
    return sound


# --- cycles


def _acyclic(problems: Problems, graph: _Graph) -> bool:
    """Whether there is no cycle; several that share no node are all reported, each as short as one through its nodes can be."""
    inner = {(tail, head): at for at, (tail, head) in enumerate(graph.edges) if tail != head and OPEN not in (tail, head)}
    order = TopologicalSorter[int]()
    for tail, head in inner:
        order.add(head, tail)
    try:
        order.prepare()
    except CycleError:
        for cycle in _cycles(list(inner)):
            _report_cycle(problems, graph, inner, cycle)
        return False
    return True


def _cycles(edges: list[tuple[int, int]]) -> Iterator[list[int]]:
    """The nodes of cycles that share none of them, as many as are reported: each is a shortest one through its first node,
    where a walk from the least node that is on a cycle meets itself."""
    networkx: Any = import_module("networkx")  # a third of a second, which only a graph that is refused takes
    graph = networkx.DiGraph(edges)
    for _ in range(MOST_CYCLES):
        components = networkx.strongly_connected_components(graph)
        circular = {node for component in components if len(component) > 1 for node in component}
        if not circular:
            return
        graph.remove_nodes_from([node for node in graph if node not in circular])
        first = networkx.find_cycle(graph, min(circular))[0][0]
        paths = networkx.bfs_tree(graph, first)
        last = next(node for node in paths if graph.has_edge(node, first))
        cycle = networkx.shortest_path(paths, first, last)
        yield cycle
        graph.remove_nodes_from(cycle)


def _report_cycle(problems: Problems, graph: _Graph, inner: dict[tuple[int, int], int], cycle: list[int]) -> None:
    names = list(graph.nodes)
    shown = arrows([names[node] for node in (*cycle, cycle[0])])
    steps = [graph.arrows[inner[pair]] for pair in zip(cycle, cycle[1:] + cycle[:1], strict=True)]
    labels = [Label(arrow.span, "and this one") for arrow in dict.fromkeys(steps[1:10]) if arrow is not steps[0]]
    note = "along a cycle every node would have to come before itself"
    problems.error("STM3004", f"these edges run in a circle: `{shown}`", steps[0].span, note, labels=labels)
