"""Shapes of everything a scan takes and gives: one rule, `(*nodes, head, [direction], ...)`.

On a regular topology the node axes are the grid's own and a port index is a dense axis. On any other one an array that belongs
to edges or to pairs of edges has one axis of them, in the order of `DAG`, in place of its node axes.
"""

from __future__ import annotations

from stmlang.graph.dag import DAG
from stmlang.scan.expression import PORT_INDICES, Index, InputName
from stmlang.scan.scan import Leaf, Scan, own_inputs
from stmlang.scan.sizes import dense_size
from stmlang.scan.topology import is_regular, ports

Shape = tuple[int, ...]


def index_size(scan: Scan, index: Index) -> int:
    """How many values an index takes; for `out` and `in` of a regular topology the number of ports.

    Raises ValueError for a port index of any other topology: it has no size of its own there.
    """
    match index:
        case "out" | "in":
            if not is_regular(scan.topology):
                raise ValueError(f"index '{index}' has no fixed size on a topology with ragged ports")
            return len(ports(scan.topology))
        case _:
            return dense_size(scan, index)


def leaf_shape(scan: Scan, dag: DAG, leaf: Leaf) -> Shape:
    """The shape of a leaf's array (the rule is in `Leaf`): `(*sites, head, [direction], [step], *indices)`."""
    direction = (len(scan.directions),) if leaf.directional and len(scan.directions) > 1 else ()
    dense = is_regular(scan.topology)
    axes: tuple[Index, ...] = tuple(index for index in leaf.indices if dense or index not in PORT_INDICES)
    sites = () if leaf.kind == "param" else leaf_sites(scan, dag, leaf)
    steps = several(scan.steps) if leaf.stepped else ()
    return (*sites, scan.heads, *direction, *steps, *(index_size(scan, index) for index in axes))


def leaf_sites(scan: Scan, dag: DAG, leaf: Leaf) -> Shape:
    """The axes in front of a leaf's head axis, were it no `param`: those of the nodes, one of edges, or one of line edges."""
    if is_regular(scan.topology):
        return dag.node_shape
    match sum(index in PORT_INDICES for index in leaf.indices):
        case 0:
            return dag.node_shape
        case 1:
            return (dag.edge_count,)
        case _:
            return (dag.line_rows,)


def query_shape(scan: Scan, dag: DAG) -> Shape:
    """Of `q`: `(*nodes, head, [direction], [read], key)`."""
    return (*dag.node_shape, *query_axes(scan))


def query_axes(scan: Scan) -> Shape:
    """Of the query of a node."""
    return (*head_axes(scan, "q"), *several(scan.reads), scan.key)


def key_shape(scan: Scan, dag: DAG) -> Shape:
    """Of `k`: `(*nodes, head, [direction], [step], [write], key)`."""
    return (*dag.node_shape, *head_axes(scan, "k"), *several(scan.writes), scan.key)


def value_shape(scan: Scan, dag: DAG) -> Shape:
    """Of `v`: `(*nodes, head, [direction], [step], [write], value)`."""
    return (*dag.node_shape, *head_axes(scan, "v"), *several(scan.writes), scan.value)


def head_axes(scan: Scan, name: InputName) -> Shape:
    """`(head, [direction], [step])` of an input: an axis of directions where each has its own, and one of steps of keys and
    values."""
    directions = several(len(scan.directions) if name in own_inputs(scan) else 1)
    return (scan.heads, *directions, *(() if name == "q" else several(scan.steps)))


def several(size: int) -> Shape:
    """The axis of what there may be more than one of: none of a single one."""
    return (size,) if size > 1 else ()


def output_shape(scan: Scan, dag: DAG) -> Shape:
    """Of the result: `(*nodes, head, [read], value)`; where directions are concatenated, with `direction * head` heads."""
    return (*dag.node_shape, output_heads(scan), *several(scan.reads), scan.value)


def output_heads(scan: Scan) -> int:
    """Heads of the result: those of all directions where they are concatenated."""
    return scan.heads * (len(scan.directions) if scan.combine == "concat" else 1)


def gating_shape(scan: Scan, dag: DAG) -> Shape:
    """Of the gating matrix: `(*source nodes, *target nodes, head, [step], [write], [read])`, heads as in the result; those of
    all directions where each has inputs of its own, which weigh its matrix and no other."""
    heads = scan.heads * len(scan.directions) if own_inputs(scan) else output_heads(scan)
    terms = (*several(scan.steps), *several(scan.writes), *several(scan.reads))
    return (*dag.node_shape, *dag.node_shape, heads, *terms)


def edge_state_shape(scan: Scan) -> Shape:
    """Of the state on one edge: `(head, [track], key, value)`; a normalized scan has one more value column, that of ones."""
    return (scan.heads, *several(scan.track), scan.key, scan.value + (scan.normalize != "none"))


def state_shapes(scan: Scan, dag: DAG, *, final: bool = False) -> tuple[dict[str, Shape], ...]:
    """For each direction and port, the shape of the states on the edges that enter (or leave, if `final`).

    Regular: `(*other axes, head, [track], key, value)`. Else `(edges of that port that enter, head, [track], key, value)`;
    what enters against a port's sense is what leaves along it. Only the open edges of a port count; a port without any has
    an array of length zero.
    """
    tail = edge_state_shape(scan)
    by_direction: list[dict[str, Shape]] = []
    for direction in scan.directions:
        shapes: dict[str, Shape] = {}
        for number, name in enumerate(dag.ports):
            if dag.regular is not None:
                sites = dag.regular[:number] + dag.regular[number + 1 :]
            else:
                forward = (direction.senses[number] > 0) != final
                edges = dag.entering if forward else dag.leaving
                sites = (int((dag.port[edges] == number).sum()),)
            shapes[name] = (*sites, *tail)
        by_direction.append(shapes)
    return tuple(by_direction)
