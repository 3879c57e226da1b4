"""Specs in folders: every `*.stm` file in one, at any depth."""

from __future__ import annotations

import os
from pathlib import Path

from stmlang.source.diagnostic import Diagnostic, SpecError

SKIPPED = ("node_modules", "__pycache__", "venv", "build", "dist")
"""Folders that hold what others made; those whose names begin with a dot are skipped too, and so is a link to a folder."""


def expanded(name: str) -> list[str]:
    """The specs in a folder, in the order of their paths; of anything else, its name alone. Raises SpecError (STM5103) for a
    folder without a spec."""
    return _specs(name) if os.path.isdir(name) else [name]


def _specs(folder: str) -> list[str]:
    specs: list[str] = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED)
        specs += [str(Path(place) / name) for name in files if name.endswith(".stm") and not name.startswith(".")]
    if not specs:
        help = "name a folder with specs, files that end in `.stm`; folders whose names begin with a dot are not looked into"
        raise SpecError([Diagnostic("STM5103", f"there is no spec in `{folder}`", None, help=help)])
    return sorted(specs)
