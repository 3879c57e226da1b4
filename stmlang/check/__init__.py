"""From a syntax tree to a typed scan: names, imports, indices, sizes and graphs, with every error of a text at once."""

from stmlang.check.api import Examined, Kept, Spec, Surveyed, check, examine, load, open_spec, survey
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
