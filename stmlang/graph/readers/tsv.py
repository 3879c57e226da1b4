"""Edge lists as tables with tabulators."""

from __future__ import annotations

from stmlang.graph.readers.edgelist import edges
from stmlang.graph.readers.rows import TSV
from stmlang.graph.readers.text import Graph, GraphFile


def read(file: GraphFile) -> Graph:
    return edges(file, TSV)
