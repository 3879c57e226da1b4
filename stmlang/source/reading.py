"""Texts from files, bytes and strings, each checked once, where it comes in."""

from __future__ import annotations

import os
import re
import stat
from itertools import islice
from pathlib import Path

from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import SourceFile, Span
from stmlang.source.suggest import nearest
from stmlang.source.wording import quoted

MAX_BYTES = 1 << 20
"""The largest text, in bytes of UTF-8."""

GRAPHS = (
    *(".graphml", ".gml", ".dot", ".gv", ".bif", ".bench", ".net", ".paj", ".nwk", ".newick", ".tre", ".treefile", ".nex"),
    *(".csv", ".tsv", ".nexus", ".nxs", ".aag", ".aig", ".ptb", ".mrg", ".edgelist", ".edges", ".tif", ".tiff"),
)
"""Suffixes that only graph files have."""
ZIP_HEAD = 100
"""Within so many bytes a zip archive names its first member."""

PAD = "check the path; a spec of the library is named `std:plstm/image_p`"
UNREADABLE = "check its permissions, and where its links lead"

_BYTE_ORDER_MARK = "\ufeff"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def read(path: str | os.PathLike[str], name: str | None = None) -> SourceFile:
    """The text of a file, under `name` if given and else under its path. Raises `SpecError` (STM0001 to STM0006)."""
    shown = name if name is not None else os.fspath(path)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise _error("STM0002", f"{quoted(shown)} is {what}", help="name one text file")
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise _error("STM0001", f"there is no file {quoted(shown)}", help=_neighbour(path)) from None
    except OSError as error:
        raise _error(
            "STM0003", f"cannot read {quoted(shown)}: {(error.strerror or 'unknown error').lower()}", help=UNREADABLE
        ) from None
    if (kind := _another_kind(content, Path(path))) is not None:
        what, help = kind
        raise _error("STM0007", f"{quoted(shown)} is {what}, not a spec", help=help)
    return decode(content, shown)


def _another_kind(content: bytes, path: Path) -> tuple[str, str] | None:
    """What a file is that is no text in this language, as far as its first bytes or its suffix tell, and what it is for."""
    if content.startswith(b"PK\x03\x04"):
        if b"manifest.json" in content[:ZIP_HEAD]:
            return "an artifact", f"`stmlang inspect {path}` says what is in it"
        if path.suffix == ".npz":
            return "an archive of arrays", f"`stmlang fuzz --replay {path}` replays it if `stmlang fuzz` saved it"
        return "a zip archive", "name one text file"
    if content.startswith(b"\x1f\x8b"):
        return "a gzip archive", "unpack it first"
    if path.suffix.lower() in GRAPHS:
        return "a graph file", f'a spec takes its topology from it: `topology graph = dag from "{path.name}"`'
    if path.suffix in (".py", ".ipynb"):
        return "Python", "`stmlang.compile` takes the spec's text or path; a spec's own file ends in `.stm`"
    return None


def decode(content: bytes, name: str) -> SourceFile:
    """A text from bytes in UTF-8, with or without a byte order mark. Raises `SpecError` (STM0004 to STM0006)."""
    if len(content) > MAX_BYTES:
        raise _too_large(name)
    try:
        return from_text(content.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        # The span points into the text as an editor would show it, with a mark in place of each bad byte.
        readable = SourceFile(name, content.decode("utf-8", "replace").removeprefix(_BYTE_ORDER_MARK))
        at = len(content[: error.start].decode("utf-8").removeprefix(_BYTE_ORDER_MARK))
        help = "save the file as UTF-8"
        if content.startswith(_UTF16_MARKS):
            help = "the file looks like UTF-16: " + help
        message = f"byte 0x{content[error.start]:02X} at offset {error.start} is not UTF-8"
        raise _error("STM0005", message, Span(readable, at, at + 1), help) from None


def from_text(text: str, name: str = "<text>") -> SourceFile:
    """A text that is in memory already. Raises `SpecError` (STM0004 to STM0006)."""
    text = text.removeprefix(_BYTE_ORDER_MARK)
    if (match := _SURROGATE.search(text)) is not None:
        readable = SourceFile(name, _SURROGATE.sub("\ufffd", text))
        message = f"U+{ord(match.group()):04X} is half of a character and not UTF-8"
        raise _error("STM0005", message, Span(readable, match.start(), match.end()))
    if len(text) > MAX_BYTES or len(text.encode("utf-8")) > MAX_BYTES:
        raise _too_large(name)
    source = SourceFile(name, text)
    if (match := _CONTROL.search(text)) is not None:
        span = Span(source, match.start(), match.end())
        help = "the file looks like UTF-16 or is not a text: save it as UTF-8" if match.group() == "\0" else "remove it"
        raise _error("STM0006", f"control character U+{ord(match.group()):04X}", span, help)
    return source


def _too_large(name: str) -> SpecError:
    help = 'a large graph belongs into a graph file: `dag from "file"`'
    return _error("STM0004", f"{quoted(name)} is larger than {MAX_BYTES >> 20} MiB", help=help)


def _error(code: str, message: str, span: Span | None = None, help: str | None = None) -> SpecError:
    return SpecError([Diagnostic(code, message, span, help=help)])


def _neighbour(path: str | os.PathLike[str]) -> str:
    """What to do about a file that does not exist: the spec in the same folder whose name is nearest, if one is near."""
    try:
        missing = Path(path)
        beside = [entry for entry in islice(missing.parent.iterdir(), 1000) if entry.suffix == ".stm" and entry.is_file()]
    except (OSError, ValueError):
        return PAD
    names = sorted(entry.name for entry in beside)
    if missing.suffix.lower() == ".stm":  # what is the same of all makes none alike
        near = next((name for name in names if name.lower() == missing.name.lower()), None)
        stem = None if near else nearest(missing.stem, [name.removesuffix(".stm") for name in names])
        near = near or (f"{stem}.stm" if stem else None)
    else:
        near = nearest(missing.name, names)
    return f"did you mean `{missing.with_name(near)}`?" if near else PAD
