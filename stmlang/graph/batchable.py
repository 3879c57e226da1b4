"""Whether graphs can stand in a batch: edges of one port, within bounds, and graphs at all. What a program made by hand need be
none: arrays of numbers that fit, edges between its nodes, no cycle.

Readers and `convert` make no other; a `DAG` can be put together from any arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stmlang.graph.convert.finish import Converted
from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.levels import acyclic, find_cycle
from stmlang.graph.limits import refuse_above_largest
from stmlang.graph.refusal import kind_of, refusal, shown, whole
from stmlang.graph.show import cycle_text
from stmlang.source.diagnostic import SpecError
from stmlang.source.wording import listing

if TYPE_CHECKING:
    from jaxtyping import Int64

CONVERT_IT = "make it with `as_dag` or `convert`, which checks what it is given"
MAPPED = "map the scan over a batch of examples with `jax.vmap`"


def refuse_misshapen(number: int, dag: DAG) -> None:
    """Raises SpecError (STM3501) unless graph `number` of a batch has a number of nodes, and a tail, a head and a port for each
    edge, as whole numbers."""
    shape: Any = dag.node_shape
    sizes = [whole(size) for size in cast(tuple[Any, ...], shape)] if isinstance(shape, tuple) else [None]
    if any(size is None or size < 0 for size in sizes):
        raise refusal("STM3501", f"graph {number} has no number of nodes: its `node_shape` is {shape!r:.80}", CONVERT_IT)
    lengths: dict[str, int] = {}
    for name in ("tail", "head", "port"):
        array: Any = getattr(dag, name)
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
            what = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            message = f"the `{name}` of graph {number} is {what}, not an array of a whole number for each edge"
            raise refusal("STM3501", message, CONVERT_IT)
        lengths[name] = array.size
    if len(set(lengths.values())) > 1:
        counted = ", ".join(f"{length} in `{name}`" for name, length in lengths.items())
        raise refusal("STM3501", f"graph {number} has unequally many edges: {counted}", CONVERT_IT)


def refuse_cycle(number: int, dag: DAG) -> None:
    """Raises SpecError (STM3505) with a cycle where graph `number` of a batch has one. A graph is searched once."""
    if acyclic(dag):
        return
    cycle = find_cycle(dag.tail, dag.head, dag.node_count)
    assert cycle is not None
    names = dag.names
    steps = [int(dag.tail[edge]) for edge in cycle]
    text = cycle_text([str(step) if names is None else names[step] for step in steps])
    help = "leave one of these edges out, or make one node of those on cycles together: `as_dag(edges, condense=True)`"
    raise refusal("STM3505", f"graph {number} has a cycle: {text}", help)


def refuse_branching(dags: Sequence[DAG]) -> None:
    """In a tree edges lead from the children to the root: at most one leaves a node. Raises SpecError (STM3407)."""
    for number, dag in enumerate(dags):
        count = np.bincount(dag.tail, minlength=1)
        if count.max(initial=0) > 1:
            node = int(count.argmax())
            message = f"{int(count[node])} edges leave node {node} of graph {number}, so this is no tree"
            help = "bound the graphs as `dag(nodes <= N, edges <= E)`, or turn the edges around if they lead from the root"
            raise refusal("STM3407", message, help, "in a tree edges lead from the children to the root")


def batchable(graphs: Iterable[DAG | Converted]) -> list[DAG]:
    """The graphs as a list, each with edges of one port, all of them between nodes of its own, not too many in all."""
    try:
        dags = [graph.dag if isinstance(graph, Converted) else graph for graph in graphs]
    except TypeError:
        message = f"a batch is made of a list of graphs, not of one {kind_of(graphs)}"
        raise refusal("STM3501", message, "give a list, also of one: `batch([dag])`") from None
    _refuse_others(dags)
    node_counts, edge_counts = sizes_of(dags)
    refuse_above_largest("nodes", sum(node_counts.tolist()))
    refuse_above_largest("edges", sum(edge_counts.tolist()))
    tail, head = joined([dag.tail for dag in dags]), joined([dag.head for dag in dags])
    wrong = np.flatnonzero((np.minimum(tail, head) < 0) | (np.maximum(tail, head) >= np.repeat(node_counts, edge_counts)))
    if wrong.size:
        edge = int(wrong[0])
        number = int(np.searchsorted(np.cumsum(edge_counts), edge, side="right"))
        raise _stray(number, int(tail[edge]), int(head[edge]), int(node_counts[number]))
    for number, dag in enumerate(dags):
        refuse_cycle(number, dag)
    return dags


def _refuse_others(graphs: Sequence[object]) -> None:
    """Refuses what is no DAG, and edges of several kinds."""
    for number, dag in enumerate(graphs):
        if not isinstance(dag, DAG):
            message = f"number {number} of the graphs of a batch is of type {kind_of(dag)}"
            raise refusal("STM3501", message, "make a DAG of it: `as_dag(graph)`")
        if len(dag.ports) != 1:
            message = f"the edges of graph {number} belong to {len(dag.ports)} ports, {listing(dag.ports, 'and')}"
            raise refusal("STM3510", message, MAPPED, "graphs that are given at run time have the one port `edge`")
        refuse_misshapen(number, dag)


def _stray(number: int, tail: int, head: int, count: int) -> SpecError:
    """For an edge that does not join two nodes of its graph."""
    if OPEN in (tail, head):
        message = f"graph {number} has an edge that {'enters from' if tail == OPEN else 'leads'} outside"
        return refusal("STM3510", message, MAPPED, "each edge of a graph that is given at run time joins two nodes")
    message = f"graph {number} has an edge from node {tail} to node {head}, and nodes 0 ... {count - 1}"
    return refusal("STM3503", message, "number the nodes from 0 to their count less one")


def refuse_above_bounds(dags: Sequence[DAG], nodes: int | None, edges: int | None) -> None:
    """Holds every graph against the bounds of `dag(nodes <= N, edges <= E)`. Raises SpecError (STM3507)."""
    for what, sizes, bound in zip(("nodes", "edges"), sizes_of(dags), (nodes, edges), strict=True):
        _refuse_above_bound(what, sizes, bound)


def _refuse_above_bound(what: str, counts: Int64[np.ndarray, " count"], bound: int | None) -> None:
    if bound is None:
        return
    most = whole(bound)
    if most is None or most < 0:
        raise refusal("STM3507", f"{shown(bound)} cannot bound the {what} of a graph", "give a whole number")
    above = np.flatnonzero(counts > most)
    if above.size:
        number = int(above[0])
        message = f"graph {number} has {int(counts[number]):,} {what}, more than the {most:,} that the topology allows"
        raise refusal("STM3507", message, f"raise the bound, `dag({what} <= {int(counts.max())})`, or leave the graph out")


def sizes_of(dags: Sequence[DAG]) -> tuple[Int64[np.ndarray, " count"], Int64[np.ndarray, " count"]]:
    """Nodes and edges of each graph."""
    return np.asarray([dag.node_count for dag in dags], np.int64), np.asarray([dag.edge_count for dag in dags], np.int64)


def joined(arrays: list[Int64[np.ndarray, " own"]]) -> Int64[np.ndarray, " all"]:
    """The arrays one after the other; there may be none."""
    return np.concatenate([np.zeros(0, np.int64), *arrays])
