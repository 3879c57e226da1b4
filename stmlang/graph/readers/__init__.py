"""Graph files of eight formats as graphs."""

from stmlang.graph.readers.read import read_graph

__all__ = ["read_graph"]
