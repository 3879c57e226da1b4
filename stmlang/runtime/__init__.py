"""Compiled scans: making, calling, saving and loading them."""

from __future__ import annotations

from stmlang.runtime.artifact import LoadedScan, load
from stmlang.runtime.compile import compile
from stmlang.runtime.compiled import CompiledScan

__all__ = ["CompiledScan", "LoadedScan", "compile", "load"]
