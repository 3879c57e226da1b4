"""Which text a spec is: a name of the library, a path, or the text itself. What asks for no more than that need not check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stmlang.check.problems import listed
from stmlang.check.search_path import STANDARD, Place, library, library_specs, place_of
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.reading import from_text, read
from stmlang.source.span import SourceFile
from stmlang.source.suggest import nearest


@dataclass(frozen=True)
class Spec:
    """A text, the scan of it that is meant (None: the last), and where it may read files from."""

    source: SourceFile
    scan: str | None
    place: Place
    path: Path | None = None


def open_spec(spec: str | Path, scan: str | None = None) -> Spec:
    """The text that a spec names. A string with a line end or a `{` is a text; one that starts with `std:` is a file of the
    library; anything else is a path, with `:NAME` behind it if one scan of the file is meant.

    Raises SpecError if there is no such text.
    """
    if isinstance(spec, str) and any(mark in spec for mark in "\n\r{"):
        return Spec(from_text(spec), scan, place_of(Path()))
    name = str(spec)
    standard = isinstance(spec, str) and name.startswith(f"{STANDARD}:")
    base, colon, tail = name.removeprefix(f"{STANDARD}:").rpartition(":") if standard else name.rpartition(":")
    if colon and tail.isidentifier() and (standard or base.endswith(".stm")):
        name, scan = (f"{STANDARD}:{base}" if standard else base), scan or tail
    if standard:
        return _library_spec(name, scan)
    path = Path(name)
    return Spec(read(path), scan, place_of(path.parent), path)


def _library_spec(name: str, scan: str | None) -> Spec:
    relative = name.removeprefix(f"{STANDARD}:").removesuffix(".stm")
    known = library_specs()
    if relative not in known:
        near = nearest(relative, known)
        note = f"the library holds {listed(f'{STANDARD}:{other}' for other in known)}"
        help = None if near is None else f"did you mean `{STANDARD}:{near}`?"
        raise SpecError([Diagnostic("STM1036", f"the library has no `{name}`", None, (note,), help)])
    path = library() / f"{relative}.stm"
    return Spec(read(path, f"{STANDARD}:{relative}"), scan, Place(path.parent, library()), path)
