"""Say whether specs are right, and everything that is wrong with those that are not."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stmlang.cli.folders import expanded
from stmlang.cli.options import add_json, add_settings
from stmlang.cli.output import print_diagnostics, print_json, tell
from stmlang.source.diagnostic import Diagnostic, Severity, SpecError
from stmlang.source.wording import count

if TYPE_CHECKING:
    from stmlang.scan.scan import Scan

NAME = "check"
SUMMARY = "check specs"
USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a path, a folder, `std:NAME`, or `-` for standard input")
    parser.add_argument("--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C")
    add_settings(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 if every file is right, else 1. Warnings are printed and change nothing."""
    if arguments.watch:
        return _watch(arguments)
    return _once(arguments)


def _once(arguments: argparse.Namespace) -> int:
    results = [result for name in arguments.files for result in _checked(name, arguments.settings, arguments.search_path)]
    wrong = [name for name, _, diagnostics in results if _errors(diagnostics)]
    if arguments.json:
        print_json({"files": [_entry(*result) for result in results]}, ok=not wrong)
    else:
        _report(results)
    return 1 if wrong else 0


def _watch(arguments: argparse.Namespace) -> int:
    """Check once, and again whenever a spec changes. Ends when it is told to stop."""
    from stmlang.cli.output import print_usage, say
    from stmlang.cli.watching import changes

    if arguments.json or "-" in arguments.files:
        print_usage("stmlang check", "--watch is for people and files: it goes with neither --json nor `-`", arguments.json)
        return USAGE
    for changed in changes(arguments.files, arguments.search_path):
        if changed:
            say(f"\n{', '.join(changed)} changed")
        _once(arguments)
    return 0


def _checked(
    name: str, settings: dict[str, int | float], search_path: list[Path]
) -> list[tuple[str, Scan | None, tuple[Diagnostic, ...]]]:
    """What is said about a file, or about every spec in a folder."""
    try:
        return [(spec, *_check(spec, settings, search_path)) for spec in expanded(name)]
    except SpecError as error:
        return [(name, None, error.diagnostics)]


def _check(name: str, settings: dict[str, int | float], search_path: list[Path]) -> tuple[Scan | None, tuple[Diagnostic, ...]]:
    """The scan that a file is about, if it is right and has one, and what was found."""
    from stmlang.cli.specs import examine_spec

    try:
        examined = examine_spec(name, settings, search_path)
    except SpecError as error:
        return None, error.diagnostics
    if examined.failed or examined.scan is None:
        return examined.scan, examined.diagnostics
    return examined.scan, (*examined.diagnostics, *_stability(examined.scan))


def _stability(scan: Scan) -> tuple[Diagnostic, ...]:
    """What has to be inserted for the scan to be stable. Nothing where its graph cannot be built: a file may come
    later."""
    from stmlang.scan.scan import Mode

    if scan.stabilize is Mode.NONE:
        return ()
    from stmlang.facts import analyse

    try:
        return analyse(scan).changes
    except SpecError:
        return ()


def _words(scan: Scan) -> str:
    """`plstm_p on a grid`."""
    from stmlang.scan.topology import kind_of

    return f"{scan.name} on a {kind_of(scan.topology)}"


def _errors(diagnostics: tuple[Diagnostic, ...]) -> int:
    return sum(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)


def _entry(name: str, scan: Scan | None, diagnostics: tuple[Diagnostic, ...]) -> dict[str, Any]:
    from stmlang.source.diagnostic import to_json

    return {
        "file": name,
        "ok": not _errors(diagnostics),
        "scan": None if scan is None else scan.name,
        "diagnostics": [to_json(diagnostic) for diagnostic in diagnostics],
    }


def _report(results: list[tuple[str, Scan | None, tuple[Diagnostic, ...]]]) -> None:
    """Diagnostics to standard error; a line for each file that is right, and a count of the rest, to standard output."""
    print_diagnostics(diagnostic for _, _, diagnostics in results for diagnostic in diagnostics)
    for name, scan, diagnostics in results:
        if errors := _errors(diagnostics):
            tell(f"{name}: {count(errors, 'error')}")
        else:
            tell(f"{name}: ok" + ("" if scan is None else f" ({_words(scan)})"))
