"""What would be chosen for graphs that come at run time, before there are any: by their size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stmlang.graph.batch import bucket_for
from stmlang.graph.capacity import LARGEST_CELL, MOST_PACKED, Capacity, Demand, levels_above, spread_above
from stmlang.graph.packing import pieces
from stmlang.plan.plan import Plan
from stmlang.scan.topology import Runtime
from stmlang.source.columns import table, wrapped
from stmlang.source.wording import count

TOGETHER = 64
"""Graphs in a batch, as long as there are not too many nodes in all of them."""
NODES_TOGETHER = 2**14
SIZES = (16, 64, 256, 1024, 2**14, 2**18)


@dataclass(frozen=True)
class Outlook:
    """What is chosen for a batch of `graphs` graphs of `nodes` nodes and `edges` edges each."""

    graphs: int
    nodes: int
    edges: int
    strategy: str
    room: Capacity


def outlook(topology: Runtime, planned: Callable[[Capacity], Plan]) -> Iterator[Outlook]:
    """For graphs of several numbers of nodes up to the bound of the topology, each with an edge for every node, as few levels
    as rooms have, and as many arcs as edges. `planned` makes the plan for a room."""
    most = min(topology.nodes, SIZES[-1])
    for nodes in dict.fromkeys(min(size, most) for size in SIZES):
        edges, graphs = min(nodes, topology.edges), max(1, min(TOGETHER, NODES_TOGETHER // max(nodes, 1)))
        bucket = bucket_for(graphs * nodes, graphs * edges, graphs)
        spread = spread_above(int(pieces([nodes], LARGEST_CELL)[0]), 1)
        needs = Demand(graphs * edges, graphs * edges, min(nodes, levels_above(0)), (nodes,) * graphs, spread)
        room = Capacity.covering(bucket.nodes, bucket.edges, [needs])
        yield Outlook(graphs, nodes, edges, planned(room).strategy, room)


def outlook_json(outlooks: Sequence[Outlook], facts: Mapping[str, Any] | None) -> dict[str, Any]:
    """The same for programs."""
    values: dict[str, Any] = {"at_run_time": [asdict(outlook) for outlook in outlooks]}
    return values if facts is None else {**values, "facts": facts}


def outlook_text(outlooks: Sequence[Outlook], facts: str | None, width: int | None = None) -> str:
    """The facts, the choices as a table, and where a plan comes from, in lines of at most `width`."""
    rows = [("graphs", "nodes each", "edges each", "packed into", "strategy")]
    for outlook in outlooks:
        cells = f"{count(outlook.room.cells, 'cell')} of {outlook.room.cell}" if outlook.room.cells else "-"
        rows.append((f"{outlook.graphs:,}", f"{outlook.nodes:,}", f"{outlook.edges:,}", cells, outlook.strategy))
    paragraphs = [facts] if facts is not None else []
    what = "plan: the graphs come at run time, and so does the plan. What would be chosen for batches of graphs of one size:"
    where = f"Graphs of more than {MOST_PACKED:,} nodes are not packed. For the plan of a batch, in Python:"
    call = "    print(stmlang.compile(spec).at(stmlang.graph.batch(graphs)).explain())"
    paragraphs += [
        "\n".join(lines) for lines in (wrapped(what, width), table(rows, {3, 4}, width), wrapped(where, width), [call])
    ]
    return "\n\n".join(paragraph.rstrip("\n") for paragraph in paragraphs) + "\n"
