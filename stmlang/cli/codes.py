"""What an error code means, with an example, as `stmlang explain CODE` prints it."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from stmlang.cli.output import print_json, print_usage, room, tell, write_result
from stmlang.ending import unfinished
from stmlang.source.codes import CODES
from stmlang.source.codes.examples import SPEC, Case, Example, examples
from stmlang.source.columns import wrapped
from stmlang.source.diagnostic import Diagnostic, SpecError, render, to_json
from stmlang.source.span import SourceFile, Span
from stmlang.source.suggest import nearest

USAGE = 2
WIDEST = 100
"""Characters of the longest line of prose, however much room there is."""


def explain_code(word: str, as_json: bool) -> int:
    """0; 2 where there is no such code, which is said."""
    code = word.upper()
    if code not in CODES:
        near = nearest(code, sorted(CODES))
        print_usage("stmlang explain", f"there is no code {code}" + (f"; did you mean {near}?" if near else ""), as_json)
        return USAGE
    title, text = CODES[code]
    example = examples()[code]
    diagnostics = () if example.wrong is None else diagnosed(example.wrong)
    if as_json:
        shown = [to_json(diagnostic) for diagnostic in diagnostics]
        print_json({"code": code, "title": title, "explanation": text, **asdict(example), "diagnostics": shown})
        return 0
    _prose(f"{code}: {title}\n\n{text}")
    _example(example, [diagnostic for diagnostic in diagnostics if diagnostic.code == code] or list(diagnostics))
    return 0


def _example(example: Example, diagnostics: list[Diagnostic]) -> None:
    if example.wrong is None or example.right is None:
        _prose(f"\nHow it comes about: {example.how}\n\nWhat to do: {example.instead}")
        return
    _prose("\nFor example:\n")
    _case(example.wrong)
    for diagnostic in diagnostics:
        tell("")
        write_result(render(diagnostic, width=room()) + "\n")
    _prose("\nWrite instead:\n")
    _case(example.right)


def _case(case: Case) -> None:
    """The files of a case, set in; of one that consists of the spec alone no name is said."""
    for name, value in case.settings.items():
        tell(f"    --set {name}={value}")
    for name, text in case.files.items():
        if len(case.files) > 1:
            tell(f"  {name}")
        for line in text.rstrip("\n").split("\n"):
            tell(f"    {line}".rstrip())


def _prose(text: str) -> None:
    for line in wrapped(text, min(room() or WIDEST, WIDEST)):
        tell(line.strip())


# --- what the compiler says ------------------------------------------------------------------------------------------


def diagnosed(case: Case) -> tuple[Diagnostic, ...]:
    """Everything that is said about a case until it could be planned."""
    from stmlang.check import Spec, examine
    from stmlang.check.search_path import place_of
    from stmlang.source.reading import from_text

    with _folder(case) as folder:
        try:
            spec = Spec(from_text(case.files[SPEC], SPEC), None, place_of(folder))
            examined = examine(spec, case.settings, library_file=False)
            if examined.failed or examined.scan is None:
                return tuple(_without(diagnostic, folder) for diagnostic in examined.diagnostics)
            from stmlang.facts import analyse

            return (*examined.diagnostics, *analyse(examined.scan).notes)
        except SpecError as error:
            return tuple(_without(diagnostic, folder) for diagnostic in error.diagnostics)


@contextmanager
def _folder(case: Case) -> Generator[Path]:
    """A folder with the other files of a case; without any, one that is not there."""
    others = {name: text for name, text in case.files.items() if name != SPEC}
    name = f"stmlang-{os.urandom(8).hex()}"
    if not others:
        yield Path(os.sep, name)
        return
    import shutil
    import tempfile

    folder = Path(tempfile.gettempdir()).resolve() / name
    with unfinished(str(folder)):
        try:
            folder.mkdir(mode=0o700)
            for name, text in others.items():
                (folder / name).write_text(text, encoding="utf-8")
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _without(diagnostic: Diagnostic, folder: Path) -> Diagnostic:
    """A diagnostic in which files are named as if one stood in their folder."""

    def near(text: str) -> str:
        return text.replace(f"{folder}{os.sep}", "").replace(str(folder), ".")

    known: dict[str, SourceFile] = {}  # one object for each file, as it was before

    def at(span: Span) -> Span:
        name = near(span.file.name)
        return replace(span, file=known.setdefault(name, SourceFile(name, span.file.text)))

    return replace(
        diagnostic,
        message=near(diagnostic.message),
        span=None if diagnostic.span is None else at(diagnostic.span),
        notes=tuple(map(near, diagnostic.notes)),
        help=None if diagnostic.help is None else near(diagnostic.help),
        labels=tuple(replace(label, span=at(label.span), message=near(label.message)) for label in diagnostic.labels),
    )
