"""Specs in folders: every `*.stm` file in one, at any depth."""

from __future__ import annotations

import os

from stmlang.source.diagnostic import Diagnostic, SpecError


def expanded(name: str) -> list[str]:
    """The specs in a folder, in the order of their paths; of anything else, its name alone. Raises SpecError (STM5103) for a
    folder without a spec."""
    return _specs(name) if os.path.isdir(name) else [name]


def _specs(folder: str) -> list[str]:
    from stmlang.check.search_path import specs_below

    specs = specs_below(folder)
    if not specs:
        help = "name a folder with specs, files that end in `.stm`; folders whose names begin with a dot are not looked into"
        raise SpecError([Diagnostic("STM5103", f"there is no spec in `{folder}`", None, help=help)])
    return specs
