"""Equinox models made of compiled scans, one model to a file: of images in `vision`, of graphs in `graph`."""

from stmlang.models import graph, vision

__all__ = ["graph", "vision"]
