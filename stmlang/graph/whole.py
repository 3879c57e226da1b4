"""Whether a graph that a program made by hand is one: arrays of numbers that fit, edges between its nodes, no cycle.

Readers and `convert` make no other; a `DAG` can be put together from any arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.levels import acyclic, find_cycle
from stmlang.graph.refusal import refusal, whole
from stmlang.graph.show import cycle_text

CONVERT_IT = "make it with `as_dag` or `convert`, which checks what it is given"


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
    shown = cycle_text([str(step) if names is None else names[step] for step in steps])
    help = "leave one of these edges out, or make one node of those on cycles together: `as_dag(edges, condense=True)`"
    raise refusal("STM3505", f"graph {number} has a cycle: {shown}", help)


def refuse_branching(dags: Sequence[DAG]) -> None:
    """In a tree edges lead from the children to the root: at most one leaves a node. Raises SpecError (STM3407)."""
    for number, dag in enumerate(dags):
        count = np.bincount(dag.tail, minlength=1)
        if count.max(initial=0) > 1:
            node = int(count.argmax())
            message = f"{int(count[node])} edges leave node {node} of graph {number}, so this is no tree"
            help = "bound the graphs as `dag(nodes <= N, edges <= E)`, or turn the edges around if they lead from the root"
            raise refusal("STM3407", message, help, "in a tree edges lead from the children to the root")
