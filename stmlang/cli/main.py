"""The command line: which command, and what becomes of what goes wrong.

Exit status: 0 fine, 1 the spec or the data is wrong, or the system does not let us go on (a full disk, no permission), 2 the
command line is wrong, 70 the compiler itself failed; `stmlang.ending` has those of a process that was told to stop.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, NoReturn

from stmlang import log
from stmlang.cli.output import print_failure, print_usage, room, say
from stmlang.ending import missing, refused
from stmlang.source.diagnostic import SpecError
from stmlang.source.suggest import nearest

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in ("check", "compile", "explain", "draw", "tune", "bench", "fuzz", "fmt")},
        "list": "listing",
        **{name: name for name in ("show", "new", "inspect", "doctor", "lsp", "completion")},
    }
)
"""The modules of this folder by the command that each is, with NAME, SUMMARY, `add_arguments(parser)` and `run(arguments) ->
exit status`, which imports what is slow. A command imports its own module alone."""

USAGE, REFUSED, INTERNAL, INTERRUPTED, BROKEN_PIPE = 2, 1, 70, 130, 141
_CHOICE = re.compile(r"invalid choice: '(?P<word>.*)' \(choose from (?P<known>.*)\)\Z", re.DOTALL)
_OPTION = re.compile(r"unrecognized arguments: (?P<word>--[\w-]+)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    try:
        arguments = _parser(words).parse_args(words)
    except SystemExit as stop:  # argparse has printed what it had to say
        return stop.code if isinstance(stop.code, int) else USAGE
    except _Wrong as wrong:
        return _usage(wrong, words)
    if (message := log.complaint()) is not None:
        print_usage(f"stmlang {arguments.command}", message, "--json" in words)
        return USAGE
    log.start()
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # only where this is no process of ours: there, signals raise nothing
        say("stmlang: interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has left: nobody is to hear of it
        return BROKEN_PIPE
    except ModuleNotFoundError as error:
        return _missing(arguments, error)
    except OSError as error:
        return _refused(arguments, error)
    except Exception as error:
        return _internal(arguments, error)


def _usage(wrong: _Wrong, words: Sequence[str]) -> int:
    """What is wrong with a command line, with the nearest of the words that it could have held."""
    message, near = str(wrong), None
    if (choice := _CHOICE.search(message)) is not None:
        near = nearest(choice["word"], re.findall(r"[\w.-]+", choice["known"]))
    elif (option := _OPTION.search(message)) is not None:
        near = nearest(option["word"], _options(words))
    message += f"; did you mean {near}?" if near else ""
    as_json = "--json" in words
    if not as_json:
        wrong.parser.print_usage(sys.stderr)
    print_usage(wrong.parser.prog, message, as_json)
    return USAGE


def _options(words: Sequence[str]) -> list[str]:
    """The options that a command line could have, by the command in it."""
    parser = _Parser(prog="stmlang")
    for name in COMMANDS:
        if name in words:
            _module(name).add_arguments(parser)
            break
    return re.findall(r"(?<!\S)--[a-z][a-z-]*", parser.format_help())


def _run(arguments: argparse.Namespace) -> int:
    """The command, with what is wrong with a spec printed."""
    try:
        return arguments.run(arguments)
    except SpecError as error:
        print_failure(error.diagnostics, getattr(arguments, "json", False))
        return 1


def _missing(arguments: argparse.Namespace, error: ModuleNotFoundError) -> int:
    """What has to be installed for the command."""
    words = missing(error)
    if words is None:
        return _internal(arguments, error)
    say(f"stmlang: {words}")
    return REFUSED


def _refused(arguments: argparse.Namespace, error: OSError) -> int:
    """What the system did not let the command do: a full disk, a place without permission."""
    if arguments.debug:
        traceback.print_exception(error)
    return refused(error)


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


class _Wrong(Exception):
    """A wrong command line, and the parser that found out."""

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.parser = parser


class _Help(argparse.HelpFormatter):
    """As wide as the terminal is, or COLUMNS says. Left to itself it asks `shutil`, with all that packs and unpacks files, and
    once for each option."""

    def __init__(self, prog: str) -> None:
        said = os.environ.get("COLUMNS", "")
        super().__init__(prog, width=(int(said) if said.isdecimal() and int(said) else room() or 80) - 2)


class _Parser(argparse.ArgumentParser):
    """A parser that leaves it to us how a wrong command line is told."""

    def error(self, message: str) -> NoReturn:
        raise _Wrong(self, message)


class _Version(argparse.Action):
    """`--version`."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from stmlang import __version__

        print(f"stmlang {__version__}")
        parser.exit()


def _module(name: str) -> Any:
    """The module of a command."""
    return import_module(f"stmlang.cli.{COMMANDS[name]}")


def complete_parser() -> argparse.ArgumentParser:
    """What reads a command line, with all commands."""
    return _parser([])


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """What reads a command line; it knows all commands unless these words begin with one."""
    asked = [word for word in words[:2] if word != "--debug"][:1]
    parser = _Parser(
        prog="stmlang",
        description="Compile linear recurrences over directed acyclic graphs.",
        epilog="Exit status: 0 fine, 1 the spec or the data is wrong, or something cannot be read or written, 2 the command "
        "line is wrong, 70 the compiler failed; interrupted: 130 by Ctrl-C, 143 by SIGTERM, 129 by a closed terminal.",
        allow_abbrev=False,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.add_argument("--debug", action="store_true", help="show the full trace of an internal error")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in map(_module, asked if asked and asked[0] in COMMANDS else COMMANDS):
        sub = commands.add_parser(
            module.NAME, help=module.SUMMARY, description=module.__doc__, allow_abbrev=False, formatter_class=_Help
        )
        # Also behind the command; not set by default there, so that `stmlang --debug check` is kept.
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser
