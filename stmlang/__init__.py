"""stmlang: linear recurrences over directed acyclic graphs, compiled to JAX.

    op = stmlang.compile("std:plstm/image_p", rows=14, cols=14)
    h = op(q, k, v, gates)

What the names below stand for is imported when it is first used: JAX by all but `graph` and `SpecError`, Equinox by `nn` and
`models`. `import stmlang` imports neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stmlang.xla_flags import guard

if TYPE_CHECKING:
    from stmlang import graph as graph
    from stmlang import models as models
    from stmlang import nn as nn
    from stmlang.runtime.compile import compile as compile
    from stmlang.runtime.compiled import CompiledScan as CompiledScan
    from stmlang.runtime.graphs import GraphScan as GraphScan
    from stmlang.runtime.lengths import Lengths as Lengths
    from stmlang.runtime.loaded import LoadedScan as LoadedScan
    from stmlang.runtime.loaded_graphs import LoadedGraphScan as LoadedGraphScan
    from stmlang.runtime.loaded_model import LoadedModel as LoadedModel
    from stmlang.runtime.loaded_scans import LoadedScans as LoadedScans
    from stmlang.runtime.loading import load as load
    from stmlang.runtime.model import export as export
    from stmlang.runtime.open import OpenScan as OpenScan
    from stmlang.runtime.sharded import ShardedScan as ShardedScan
    from stmlang.runtime.sharded_graphs import ShardedGraphs as ShardedGraphs
    from stmlang.runtime.sharded_graphs import ShardedGraphScan as ShardedGraphScan
    from stmlang.source.diagnostic import SpecError as SpecError
    from stmlang.source.diagnostic import StabilityWarning as StabilityWarning

guard()

__version__ = "0.1.0"
__all__ = [
    "CompiledScan",
    "GraphScan",
    "Lengths",
    "LoadedGraphScan",
    "LoadedModel",
    "LoadedScan",
    "LoadedScans",
    "OpenScan",
    "ShardedGraphScan",
    "ShardedGraphs",
    "ShardedScan",
    "SpecError",
    "StabilityWarning",
    "__version__",
    "compile",
    "export",
    "graph",
    "load",
    "models",
    "nn",
]

ROOMS = ("graph", "models", "nn")
"""Packages of ours that are names for users."""

HOMES = {
    "CompiledScan": "stmlang.runtime.compiled",
    "GraphScan": "stmlang.runtime.graphs",
    "Lengths": "stmlang.runtime.lengths",
    "LoadedGraphScan": "stmlang.runtime.loaded_graphs",
    "LoadedModel": "stmlang.runtime.loaded_model",
    "LoadedScan": "stmlang.runtime.loaded",
    "LoadedScans": "stmlang.runtime.loaded_scans",
    "OpenScan": "stmlang.runtime.open",
    "ShardedGraphScan": "stmlang.runtime.sharded_graphs",
    "ShardedGraphs": "stmlang.runtime.sharded_graphs",
    "ShardedScan": "stmlang.runtime.sharded",
    "SpecError": "stmlang.source.diagnostic",
    "StabilityWarning": "stmlang.source.diagnostic",
    "compile": "stmlang.runtime.compile",
    "export": "stmlang.runtime.model",
    "load": "stmlang.runtime.loading",
}
"""Where each name is made. Modules are imported one by one: what loads an artifact needs no Equinox."""


def __getattr__(name: str) -> Any:
    if name in ROOMS:
        return import_module(f"stmlang.{name}")
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    raise AttributeError(f"module 'stmlang' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
