"""From a path to what a reader reads: a text, or the bytes of a binary file that begins as its format says, unpacked."""

from __future__ import annotations

import errno
import os
import stat
import zlib
from gzip import BadGzipFile, GzipFile
from typing import BinaryIO

from stmlang.graph.readers.text import GraphFile
from stmlang.graph.refusal import shown
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import SourceFile, Span

MAGIC: dict[str, tuple[bytes, ...]] = {
    "aiger": (b"aig ",),
    **dict.fromkeys(("d8", "d8_grass", "d8_taudem"), (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
}
"""How the binary files of a format begin. Whatever begins differently is taken for a text, and so may hold no zero byte."""

GZIP = b"\x1f\x8b"
"""How a file begins that gzip has packed; no text does."""

MOST_BYTES = 1 << 28
"""The largest file that is read, and the most that a packed one may hold."""
PART_BYTES = 1 << 20


def open_file(path: str, format: str, span: Span | None = None) -> GraphFile:
    """A file of a format: as bytes if it begins with one of `MAGIC`, else as a text. A file that gzip has packed, which its
    first bytes tell whatever its name is, is unpacked before.

    `span` is where a spec names the file. Raises SpecError: STM3401 for what can't be read, STM3412 for a binary file that the
    format does not have, STM3413 for one that is too large.
    """
    path = path_text(path, span)
    content, binary = _content(path, MAGIC.get(format, ()), span)
    if binary:
        return GraphFile(SourceFile(path, ""), span, content)
    return GraphFile(SourceFile(path, _text_of(content)), span)


def path_text(path: object, span: Span | None = None) -> str:
    """The name of a file. Raises SpecError (STM3401) for what is none."""
    try:
        return os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError:
        message = f"a graph file cannot be named by {shown(path)}"
        raise refusal("STM3401", message, span, "give its path, as a text or a `pathlib.Path`") from None


def refusal(code: str, message: str, span: Span | None, help: str | None = None) -> SpecError:
    """A complaint about a file as a whole, at the place that names it."""
    return SpecError([Diagnostic(code, message, span, help=help)])


def _text_of(content: bytes) -> str:
    """The text of a file. What is not UTF-8 is taken as Latin-1, in which older files write their labels."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _content(path: str, magic: tuple[bytes, ...], span: Span | None) -> tuple[bytes, bool]:
    """The bytes of a file, read as far as they look like a text unless they begin as `magic` says, and whether they do."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Is a directory" if stat.S_ISDIR(status.st_mode) else "Not a regular file")
        if status.st_size > MOST_BYTES:
            raise _too_large(path, f"{status.st_size:,} bytes, more than the {MOST_BYTES:,} that are read", span)
        with open(path, "rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            return _unpacked(path, file, magic, span) if packed else _blocks(path, file, magic, span)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        help = "name a file that is there and can be read"
        raise refusal("STM3401", f"the graph file `{path}` cannot be read: {reason}", span, help) from None


def _unpacked(path: str, file: BinaryIO, magic: tuple[bytes, ...], span: Span | None) -> tuple[bytes, bool]:
    """The same of a file that gzip has packed."""
    try:
        with GzipFile(fileobj=file) as inside:
            return _blocks(path, inside, magic, span)
    except EOFError:
        reason = "its packed data end too early"
    except (BadGzipFile, zlib.error):
        reason = "its packed data are damaged, or something else stands behind them"
    help = "fetch it or pack it again; `gzip -t FILE` tests it"
    raise refusal("STM3401", f"the graph file `{path}` cannot be read: {reason}", span, help)


def _blocks(path: str, file: BinaryIO | GzipFile, magic: tuple[bytes, ...], span: Span | None) -> tuple[bytes, bool]:
    """The same of what is open: in parts, so that neither a binary file nor one that unpacks to any size is read to its end."""
    blocks, size = list[bytes](), 0
    while block := file.read(PART_BYTES):
        blocks.append(block)
        size += len(block)
        if b"\0" in block and not blocks[0].startswith(magic):
            help = "save it as UTF-8, or choose the file that holds the graph"
            raise refusal("STM3412", f"`{path}` is no text: it is binary, or saved as UTF-16", span, help)
        if size > MOST_BYTES:
            raise _too_large(path, f"more than the {MOST_BYTES:,} bytes that are read, once it is unpacked", span)
    return b"".join(blocks), bool(blocks) and blocks[0].startswith(magic)


def _too_large(path: str, what: str, span: Span | None) -> SpecError:
    help = "leave out what is neither node nor edge, or cut the graph"
    return refusal("STM3413", f"`{path}` has {what}", span, help)
