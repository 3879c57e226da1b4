"""From a syntax tree to a typed scan: names, imports, indices, sizes and graphs, with every error of a text at once."""

from stmlang.check.api import Examined, Spec, check, examine, load, open_spec
from stmlang.check.search_path import library, library_specs

__all__ = ["Examined", "Spec", "check", "examine", "library", "library_specs", "load", "open_spec"]
