"""Compiled scans: making, calling, saving and loading them."""

from __future__ import annotations

from stmlang.runtime.compile import compile
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.graphs import GraphScan
from stmlang.runtime.loaded import LoadedScan, load
from stmlang.runtime.open import OpenScan

__all__ = ["CompiledScan", "GraphScan", "LoadedScan", "OpenScan", "compile", "load"]
