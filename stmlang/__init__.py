"""stmlang: linear recurrences over directed acyclic graphs, compiled to JAX.

    op = stmlang.compile("std:plstm/image_p", rows=14, cols=14)
    h = op(q, k, v, gates)

What the names below stand for is imported when it is first used: JAX by all but `graph` and `SpecError`, Equinox by `nn` and
`models`. `import stmlang` imports neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stmlang.xla_flags import guard

if TYPE_CHECKING:
    from stmlang import graph as graph
    from stmlang import models as models
    from stmlang import nn as nn
    from stmlang.runtime import CompiledScan as CompiledScan
    from stmlang.runtime import GraphScan as GraphScan
    from stmlang.runtime import LoadedScan as LoadedScan
    from stmlang.runtime import OpenScan as OpenScan
    from stmlang.runtime import compile as compile
    from stmlang.runtime import load as load
    from stmlang.source.diagnostic import SpecError as SpecError

guard()

__version__ = "0.1.0"
__all__ = [
    "CompiledScan",
    "GraphScan",
    "LoadedScan",
    "OpenScan",
    "SpecError",
    "__version__",
    "compile",
    "graph",
    "load",
    "models",
    "nn",
]

ROOMS = ("graph", "models", "nn")
"""Packages of ours that are names for users."""


def __getattr__(name: str) -> Any:
    if name in ROOMS:
        from importlib import import_module

        return import_module(f"stmlang.{name}")
    if name == "SpecError":
        from stmlang.source.diagnostic import SpecError

        return SpecError
    if name in __all__:
        from stmlang import runtime

        return getattr(runtime, name)
    raise AttributeError(f"module 'stmlang' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
