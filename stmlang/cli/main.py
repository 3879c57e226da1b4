"""The command line: which command, and what becomes of what goes wrong.

Exit status: 0 fine, 1 the spec or the data is wrong, 2 the command line is, 70 the compiler itself failed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

from stmlang.cli import bench, check, compile, doctor, explain, fmt, fuzz, new, tune
from stmlang.cli.output import print_failure, say
from stmlang.source.diagnostic import SpecError

COMMANDS = (check, compile, explain, tune, bench, fuzz, fmt, new, doctor)
"""Modules with NAME, SUMMARY, `add_arguments(parser)` and `run(arguments) -> exit status`, which imports what is slow."""

USAGE, INTERNAL, INTERRUPTED, BROKEN_PIPE = 2, 70, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets an escape for it, not an error from us.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed what it had to say
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _closed_pipe()
    except Exception as error:
        return _internal(arguments, error)


def _open_streams() -> None:
    """A stream that was closed before we started is None: it reads as empty, and what is written to it is nobody's."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            flags = os.O_RDONLY if mode == "r" else os.O_WRONLY
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8"))


def _run(arguments: argparse.Namespace) -> int:
    """The command, with what is wrong with a spec printed."""
    try:
        return arguments.run(arguments)
    except SpecError as error:
        print_failure(error.diagnostics, getattr(arguments, "json", False))
        return 1


def _closed_pipe() -> int:
    """The reader has left: nobody is to hear of it, the interpreter's last flush included."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, suppress(OSError, ValueError):
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return BROKEN_PIPE


def _internal(arguments: argparse.Namespace, error: Exception) -> int:
    """A failure that is the compiler's, not the user's: the last place in it, and how to see the rest."""
    if arguments.debug:
        traceback.print_exception(error)
        return INTERNAL
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
    say(f"internal error in `stmlang {arguments.command}`: {type(error).__name__}: {error}{where}")
    say("This is a fault of stmlang, not of your spec. Please report it, with the spec and what the command says with --debug.")
    return INTERNAL


class _Version(argparse.Action):
    """`--version`."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from stmlang import __version__

        print(f"stmlang {__version__}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stmlang",
        description="Compile linear recurrences over directed acyclic graphs.",
        epilog="Exit status: 0 fine, 1 the spec is wrong, 2 the command line is, 70 the compiler failed.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.add_argument("--debug", action="store_true", help="show the full trace of an internal error")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        sub = commands.add_parser(module.NAME, help=module.SUMMARY, description=module.__doc__, allow_abbrev=False)
        # Also behind the command; not set by default there, so that `stmlang --debug check` is kept.
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
