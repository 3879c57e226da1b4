"""Flow directions as r.watershed of GRASS numbers them; otherwise as `d8` reads them."""

from __future__ import annotations

from stmlang.graph.readers import d8
from stmlang.graph.readers.flow import GRASS
from stmlang.graph.readers.text import GraphFile, ParsedGraph


def read(file: GraphFile) -> ParsedGraph:
    return d8.read(file, GRASS)
