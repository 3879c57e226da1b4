"""Files that are kept, each written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

NEW_FILE = 0o644
"""The permissions of a file that was not there before."""


@contextmanager
def written_whole(path: Path) -> Generator[IO[bytes]]:
    """A stream whose content takes the place of a file once the block has ended: readers see the old file or the new one. If
    the block fails nothing has changed. Permissions stay, and a link stays a link to the file that is replaced.

    Raises OSError where the file cannot be written; also for a folder, a device or a pipe, which a renamed file would replace.
    """
    place = _place(path)
    mode = _permissions(place)
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=".stmlang-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        os.chmod(temporary, mode)
        os.replace(temporary, place)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def require_place(path: Path) -> None:
    """Raises OSError where a file certainly cannot be written, before much work is put into its content."""
    place = _place(path)
    _permissions(place)
    if not place.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such directory")
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "Permission denied")


def _place(path: Path) -> Path:
    """Where the content goes, links followed."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "A file name cannot hold a zero byte")
    return Path(os.path.realpath(path))


def _permissions(place: Path) -> int:
    """The permissions of the file at a place, if there is one."""
    try:
        status = os.stat(place)
    except FileNotFoundError:
        return NEW_FILE
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file")
    return stat.S_IMODE(status.st_mode)
