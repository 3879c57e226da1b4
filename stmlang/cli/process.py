"""The command `stmlang`, as a process of its own. Signals are answered before anything else is imported."""

from __future__ import annotations

import gc
from typing import NoReturn

from stmlang.ending import start

NEW_OBJECTS = 100_000
"""Objects between two searches for garbage: most of what a command makes are the modules that it imports, which stay. With
Python's 700 a tenth of the time of `check` goes into looking through them."""


def main() -> NoReturn:
    """Run the command line that this process was given."""
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    start(_command)


def _command() -> int:
    from stmlang.cli.main import main

    return main()
