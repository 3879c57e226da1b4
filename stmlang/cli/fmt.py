"""Lay specs out in the one standard way, in place. Comments stay, meaning does not change."""

from __future__ import annotations

import argparse
from pathlib import Path

from stmlang.cli.files import replace_text
from stmlang.cli.folders import expanded
from stmlang.cli.output import print_diagnostics, say, write_text
from stmlang.source.advice import Command
from stmlang.source.diagnostic import Diagnostic, SpecError

NAME = "fmt"
SUMMARY = "format specs"
STDIN = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="a spec, a folder of specs, or `-` to format standard input to standard output"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file would change")
    parser.add_argument("--diff", action="store_true", help="write nothing; print what would change")


def run(arguments: argparse.Namespace) -> int:
    """0 if all went well, 1 if a file could not be read or, with `--check`, would change."""
    failed, changed = 0, 0
    for name in arguments.files:
        try:
            specs = expanded(name)
        except SpecError as error:
            failed += 1
            print_diagnostics(error.diagnostics)
            continue
        for spec in specs:
            try:
                changed += _format(spec, arguments.check, arguments.diff)
            except SpecError as error:
                failed += 1
                print_diagnostics(error.diagnostics)
    return 1 if failed or (arguments.check and changed) else 0


def _format(name: str, check: bool, diff: bool) -> bool:
    """Format one file; whether it was not as it should be."""
    from stmlang.cli.specs import read_source
    from stmlang.syntax.formatter import format_source

    if name.startswith("std:"):
        raise _of_the_library(name)
    source = read_source(name)
    text = format_source(source)
    changed = text != source.text
    if changed and diff:
        write_text(_difference(source.name, source.text, text))
    if check:
        if changed:
            say(f"would format {source.name}")
    elif not diff:
        if name == STDIN:
            write_text(text)
        elif changed:
            replace_text(Path(name), text)
            say(f"formatted {source.name}")
    return changed


def _of_the_library(name: str) -> SpecError:
    """The error for a name of the installed library, whose files are not the user's to rewrite."""
    message = f"`{name}` is a spec of the installed library, and `fmt` rewrites files"
    help = f"`stmlang show {name}` prints it; save that to a file of yours to change it"
    return SpecError([Diagnostic("STM5101", message, None, help=help, fixes=(Command(("stmlang", "show", name)),))])


def _difference(name: str, old: str, new: str) -> str:
    """A unified diff that `patch` reads."""
    from difflib import unified_diff

    lines = unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (formatted)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
