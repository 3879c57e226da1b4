"""Graphs written out, `dag { ... }` and `tree { ... }`: their edges, and what would keep them from being one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

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
    names = list(graph.nodes)
    inner = {(tail, head): at for at, (tail, head) in enumerate(graph.edges) if tail != head and OPEN not in (tail, head)}
    successors: list[list[int]] = [[] for _ in names]
    for tail, head in inner:
        successors[tail].append(head)
    alive = set(range(len(names)))
    for count in range(MOST_CYCLES):
        alive = _on_cycles(successors, alive)
        if not alive:
            return count == 0
        cycle = _shortest_cycle(successors, alive)
        alive -= set(cycle)
        _report_cycle(problems, graph, inner, cycle)
    return False


def _report_cycle(problems: Problems, graph: _Graph, inner: dict[tuple[int, int], int], cycle: list[int]) -> None:
    names = list(graph.nodes)
    shown = arrows([names[node] for node in (*cycle, cycle[0])])
    steps = [graph.arrows[inner[pair]] for pair in zip(cycle, cycle[1:] + cycle[:1], strict=True)]
    labels = [Label(arrow.span, "and this one") for arrow in dict.fromkeys(steps[1:10]) if arrow is not steps[0]]
    note = "along a cycle every node would have to come before itself"
    problems.error("STM3004", f"these edges run in a circle: `{shown}`", steps[0].span, note, labels=labels)


def _on_cycles(successors: list[list[int]], alive: set[int]) -> set[int]:
    """The nodes among those alive that are left when nodes nothing leads to, or that lead nowhere, are taken away in turn."""
    predecessors: list[list[int]] = [[] for _ in successors]
    for tail in alive:
        for head in successors[tail]:
            predecessors[head].append(tail)
    left = set(alive)
    for backward, forward in ((predecessors, successors), (successors, predecessors)):
        degree = {node: sum(other in left for other in backward[node]) for node in left}
        ready = [node for node in left if degree[node] == 0]
        while ready:
            node = ready.pop()
            left.discard(node)
            for other in forward[node]:
                if other in left:
                    degree[other] -= 1
                    if degree[other] == 0:
                        ready.append(other)
    return left


def _shortest_cycle(successors: list[list[int]], alive: set[int]) -> list[int]:
    """A cycle among nodes each of which leads to another: walk until a node repeats, then go around that node by the
    shortest way."""
    node = min(alive)
    passed: set[int] = set()
    while node not in passed:
        passed.add(node)
        node = next(other for other in successors[node] if other in alive)
    before: dict[int, int] = {}
    queue = deque([node])
    while queue:
        at = queue.popleft()
        for other in successors[at]:
            if other == node:
                path = [at]
                while path[-1] != node:
                    path.append(before[path[-1]])
                return path[::-1]
            if other in alive and other not in before:
                before[other] = at
                queue.append(other)
    raise AssertionError("every node looked at leads to another one and so to a cycle")
