"""What commands print: diagnostics for people on standard error, results and JSON on standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from stmlang.source.columns import wrapped
from stmlang.source.diagnostic import Diagnostic, render, to_json
from stmlang.source.drawing import printable


def use_colour(stream: TextIO) -> bool:
    """Colour for terminals that have it, unless NO_COLOR is set to anything."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def room(stream: TextIO | None = None) -> int | None:
    """How many columns there are on standard output, or another stream; None where it is no terminal, and lines may have any
    length."""
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or None
    except (OSError, ValueError):
        return None


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Each one rendered, with an empty line between two."""
    blocks = [render(diagnostic, use_colour(sys.stderr), room(sys.stderr)) for diagnostic in diagnostics]
    if blocks:
        print("\n\n".join(blocks), file=sys.stderr)


def print_json(value: Mapping[str, Any], ok: bool = True) -> None:
    """One JSON value, which begins with `ok`: whether the command did what it is for, and found nothing wrong."""
    print(json.dumps({"ok": ok, **value}, indent=2))


def print_failure(diagnostics: Iterable[Diagnostic], as_json: bool) -> None:
    """Diagnostics that end a command."""
    if as_json:
        print_json({"diagnostics": [to_json(diagnostic) for diagnostic in diagnostics]}, ok=False)
    else:
        print_diagnostics(diagnostics)


def print_usage(command: str, message: str, as_json: bool) -> None:
    """What is wrong with a command line, as the last words of a command: `command` is as it was written, without arguments."""
    if as_json:
        print_json({"usage": message}, ok=False)
    else:
        say(f"{command}: error: {message}")


def write_text(text: str) -> None:
    """A text for other programs: in UTF-8 with its own line ends, whatever the terminal speaks."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()


def write_result(text: str) -> None:
    """Lines of a result for people, each ending in a newline."""
    sys.stdout.write(printable(text, keep="\n"))


def tell(text: str) -> None:
    """A line of a result for people. Names of files are printed as they are, except for what a terminal would obey."""
    print(printable(text))


def say(text: str) -> None:
    """A remark that is no part of the result."""
    print("\n".join(wrapped(printable(text, keep="\n"), room(sys.stderr))), file=sys.stderr)
