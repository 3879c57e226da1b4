"""What a strategy does, loaded when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from stmlang.lower.strategy import Lowering
from stmlang.strategies.base import AnyStrategy


def lowering_of(strategy: AnyStrategy) -> Lowering:
    """The lowering that a strategy was given, or `LOWERING` of the file `lower.py` in its folder."""
    if strategy.lowering is not None:
        return cast(Lowering, strategy.lowering)
    return cast(Lowering, import_module(f"stmlang.strategies.{strategy.name}.lower").LOWERING)
