"""Equinox models made of compiled scans, one model to a file: of images in `vision`, of graphs in `graph`, of sequences in
`sequence`; and the blocks of other papers, in `blocks`."""

from stmlang.models import blocks, graph, sequence, vision

__all__ = ["blocks", "graph", "sequence", "vision"]
