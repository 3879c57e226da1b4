"""From a syntax tree to a typed scan: names, imports, indices, sizes and graphs, with every error of a text at once.

What the names below stand for is imported when it is first used: what prints or lists specs checks none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stmlang.check.api import Examined, Kept, Surveyed, check, examine, load, survey
    from stmlang.check.opening import Spec, open_spec
    from stmlang.check.search_path import library, library_specs

__all__ = [
    "Examined",
    "Kept",
    "Spec",
    "Surveyed",
    "check",
    "examine",
    "library",
    "library_specs",
    "load",
    "open_spec",
    "survey",
]

HOMES = {"Spec": "opening", "open_spec": "opening", "library": "search_path", "library_specs": "search_path"}
"""The files of the names that are not in `api.py`."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"stmlang.check.{HOMES.get(name, 'api')}"), name)
    raise AttributeError(f"module 'stmlang.check' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
