"""Print what a shell needs to complete commands, options, their values and files: `source <(stmlang completion bash)`."""

from __future__ import annotations

import argparse

from stmlang.cli.output import write_text

NAME = "completion"
SUMMARY = "print completion for a shell"
SHELLS = ("bash", "zsh", "fish")
FILES = ("FILE", "SPEC", "OP.stmx", "NAME.stm")
"""Arguments that are files, by how they are called in the help."""
FOLDERS = ("DIR",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def run(arguments: argparse.Namespace) -> int:
    """0."""
    import shtab

    from stmlang.cli.main import complete_parser

    parser = complete_parser()
    for command in subcommands(parser).values():
        for action in command._actions:  # pyright: ignore[reportPrivateUsage]: argparse has no other way to list them
            kind = shtab.FILE if action.metavar in FILES else shtab.DIRECTORY if action.metavar in FOLDERS else None
            if kind is not None:
                action.complete = kind  # pyright: ignore[reportAttributeAccessIssue]: where shtab looks for it
    write_text(shtab.complete(parser, shell=arguments.shell))
    return 0


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    (action,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
    return dict(action.choices)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
