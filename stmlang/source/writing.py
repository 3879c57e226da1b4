"""Files that are kept, each written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from stmlang.ending import unfinished

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
    with temporary_file(place.parent) as (stream, temporary):
        yield stream
        stream.close()
        os.chmod(temporary, mode)
        os.replace(temporary, place)


@contextmanager
def new_whole(path: Path) -> Generator[IO[bytes]]:
    """A stream whose content is a new file once the block has ended. Raises FileExistsError where there is one by then, else
    OSError as `written_whole` does."""
    with temporary_file(path.parent) as (stream, temporary):
        yield stream
        stream.close()
        os.chmod(temporary, NEW_FILE)
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            _copy_new(temporary, path)


def _copy_new(temporary: str, path: Path) -> None:
    """For file systems without links. Nothing half-written stays."""
    content = Path(temporary).read_bytes()
    made = False
    try:
        with open(path, "xb") as stream, unfinished(str(path)):
            made = True
            stream.write(content)
            stream.flush()
    except BaseException:
        if made:
            path.unlink(missing_ok=True)
        raise


@contextmanager
def temporary_file(folder: Path | str) -> Generator[tuple[IO[bytes], str]]:
    """A new file, open and by its path, that is gone when the block has ended, however that comes about. Its name begins with a
    dot, as a folder's listing is not to show it."""
    path = os.path.join(folder, f".stmlang-{secrets.token_hex(8)}.tmp")
    with unfinished(path):  # before it is there: an interruption may come at any time
        stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "w+b")
        try:
            with stream:
                yield stream, path
        finally:
            Path(path).unlink(missing_ok=True)


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
