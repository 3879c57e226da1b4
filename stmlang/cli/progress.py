"""What a command shows on standard error while it works, which is gone when it ends, also by an interruption."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from stmlang.ending import rescuing

Show = Callable[[float, str], None]
"""How much is done, and what is done now."""


@contextmanager
def progress_bar(words: str, total: float) -> Generator[Show]:
    """A bar that is full at `total`, where there is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _, __: None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    with bar, rescuing(bar.stop):
        task = bar.add_task(words, total=total)
        yield lambda done, words: bar.update(task, completed=done, description=words)


@contextmanager
def working(words: str) -> Generator[Callable[[str], None]]:
    """A line that says what is done now, where there is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    status = Console(stderr=True).status(words)
    with status, rescuing(status.stop):
        yield status.update
