"""How values look at a prompt: on one screen, however large they are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

WIDTH = 118


def fields(self: Any) -> str:
    """A dataclass with its fields, arrays by shape and type only: to be used as `__repr__`."""
    return import_module("wadler_lindig").pformat(self, width=WIDTH)


def text(self: Any, **options: Any) -> Any:
    """What `equinox.tree_pformat` shows of a value that has a `__repr__` of its own: to be used as `__pdoc__`."""
    del options
    return import_module("wadler_lindig").TextDoc(repr(self))
