"""Writing files whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from stmlang.source.diagnostic import Diagnostic, SpecError


def replace_text(path: Path, text: str) -> None:
    """Put a text in place of a file's, with its permissions: readers see the old text or the new one. A link stays a link.

    Raises SpecError (STM5101) where the file cannot be written.
    """
    place = path.resolve()
    try:
        mode = stat.S_IMODE(place.stat().st_mode)
        if not os.access(place, os.W_OK):
            raise PermissionError(13, "Permission denied")
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            os.chmod(temporary, mode)
            os.replace(temporary, place)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise cannot_write(path, error) from None


def create_text(path: Path, text: str) -> None:
    """Write a new file. Raises SpecError: STM5102 where there is one already, STM5101 where it cannot be written."""
    try:
        with open(path, "x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        help = "choose another name, or move the file away first"
        raise SpecError([Diagnostic("STM5102", f"`{path}` exists and is not overwritten", None, help=help)]) from None
    except OSError as error:
        raise cannot_write(path, error) from None


def require_place(path: Path) -> None:
    """Raises SpecError (STM5101) where a file certainly cannot be written, before much work is put into its content."""
    if path.is_dir():
        raise cannot_write(path, IsADirectoryError(21, "Is a directory"))
    if not path.absolute().parent.is_dir():
        raise cannot_write(path, FileNotFoundError(2, "No such directory"))


def cannot_write(path: Path, error: OSError) -> SpecError:
    """The error for a file that cannot be written."""
    reason = (error.strerror or "unknown error").lower()
    return SpecError([Diagnostic("STM5101", f"cannot write `{path}`: {reason}", None)])
