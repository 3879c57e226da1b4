"""The command `stmlang`, as a process of its own. Signals are answered before anything else is imported."""

from __future__ import annotations

from typing import NoReturn

from stmlang.ending import start


def main() -> NoReturn:
    """Run the command line that this process was given."""
    start(_command)


def _command() -> int:
    from stmlang.cli.main import main

    return main()
