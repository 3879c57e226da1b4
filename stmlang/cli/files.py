"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.writing import new_whole, require_place, written_whole


def replace_text(path: Path, text: str) -> None:
    """Put a text in place of a file's, with its permissions: readers see the old text or the new one. A link stays a link.

    Raises SpecError (STM5101) where the file cannot be written.
    """
    try:
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "Permission denied")
        with written_whole(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise cannot_write(path, error) from None


def create_text(path: Path, text: str) -> None:
    """Write a new file. Raises SpecError: STM5102 where there is one already, STM5101 where it cannot be written."""
    try:
        with new_whole(path) as file:
            file.write(text.encode())
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise cannot_write(path, error) from None


def create_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Write a new folder of files. Raises SpecError: STM5102 where there is something of that name already, STM5101 where it
    cannot be written; then none of it stays."""
    try:
        folder.mkdir()
    except FileExistsError:
        raise _exists(folder) from None
    except OSError as error:
        raise cannot_write(folder, error) from None
    try:
        for name, text in texts.items():
            create_text(folder / name, text)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def require_output(path: Path, source: str) -> None:
    """Raises SpecError (STM5101) where a file certainly cannot be written, before much work is put into its content, and where
    it would take the place of the spec that it is made from."""
    try:
        require_place(path)
        specs = (Path(source), Path(source.rpartition(":")[0]))  # SPEC.stm:NAME names one scan of a file
        if path.exists() and any(spec.is_file() and path.samefile(spec) for spec in specs):
            raise OSError(errno.EINVAL, "It is the spec")
    except OSError as error:
        raise cannot_write(path, error) from None


def _exists(path: Path) -> SpecError:
    help = "choose another name, or move the file away first"
    return SpecError([Diagnostic("STM5102", f"`{path}` exists and is not overwritten", None, help=help)])


def cannot_write(path: Path, error: OSError) -> SpecError:
    """The error for a file that cannot be written."""
    reason = (error.strerror or "unknown error").lower()
    help = "name a file in a folder that is there and can be written to"
    return SpecError([Diagnostic("STM5101", f"cannot write `{path}`: {reason}", None, help=help)])
