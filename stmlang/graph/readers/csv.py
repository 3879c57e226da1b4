"""Edge lists as tables with commas, semicolons or tabulators, as spreadsheets and databases write them (RFC 4180)."""

from __future__ import annotations

from stmlang.graph.readers.edgelist import edges
from stmlang.graph.readers.rows import CSV
from stmlang.graph.readers.text import Graph, GraphFile


def read(file: GraphFile) -> Graph:
    return edges(file, CSV)
