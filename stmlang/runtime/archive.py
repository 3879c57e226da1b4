"""Reading the members of an artifact, a file that nobody vouches for."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from stmlang.runtime.signature import call_error
from stmlang.source.diagnostic import SpecError

LARGEST_MANIFEST = 1 << 24
LARGEST = 2**31 - 1
"""Bytes of all members together, unpacked."""
UNSUSPICIOUS = 1 << 28
DENSEST = 200
"""What unpacks to more than `UNSUSPICIOUS` bytes, and to so many times its size, is made to fill memory."""
ANEW = "write it anew: `stmlang compile SPEC -o FILE.stmx`, or `stmlang.export(...)` for a model"


@contextmanager
def opened(path: Path) -> Generator[zipfile.ZipFile]:
    """The archive in a file. Whatever goes wrong is a SpecError: STM5303 where it is none or cannot be read, STM5304 where it
    is damaged."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            what = "a folder" if path.is_dir() else "no regular file"
            raise call_error(
                "STM5303", f"`{path}` is {what}", help="name the file that `stmlang compile` wrote, or `stmlang.export`"
            )
        with zipfile.ZipFile(path) as archive:
            yield archive
    except SpecError:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise call_error("STM5303", f"cannot read `{path}`: {reason}", help="check its name and its permissions") from None
    except zipfile.BadZipFile as error:
        if "CRC" in str(error):
            raise damaged(path, str(error)) from None
        raise call_error("STM5303", f"`{path}` is no stmlang artifact, or was cut short", help=ANEW) from None
    except Exception as error:  # what the archive's own fields can make zipfile and its decompressors raise has no common base
        raise damaged(path, str(error) or type(error).__name__) from None


def damaged(path: Path, why: str) -> SpecError:
    """The error for an artifact that is not as it was written."""
    return call_error("STM5304", f"artifact `{path}` is damaged: {why}", help=ANEW)


def manifest_text(path: Path, archive: zipfile.ZipFile) -> bytes:
    """The member that says what the others are."""
    entry = next((entry for entry in archive.infolist() if entry.filename == "manifest.json"), None)
    if entry is None:
        raise call_error("STM5303", f"`{path}` is no stmlang artifact: it has no `manifest.json`", help=ANEW)
    if entry.file_size > LARGEST_MANIFEST:
        raise damaged(path, f"its manifest claims to have {entry.file_size:,} bytes")
    return archive.read(entry)


def members_of(path: Path, archive: zipfile.ZipFile, names: Sequence[str]) -> Mapping[str, bytes]:
    """Exactly these members beside the manifest, none of them larger than memory can be asked for."""
    entries, allowed = archive.infolist(), {"manifest.json", *names}
    listed = [entry.filename for entry in entries]
    for name in names:
        if name not in listed:
            raise call_error("STM5303", f"`{path}` is no stmlang artifact: it has no `{name}`", help=ANEW)
    other = next((name for at, name in enumerate(listed) if name not in allowed or name in listed[:at]), None)
    if other is not None:
        raise damaged(path, f"it has a member `{other[:80]}` too many")
    for entry in entries:
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise damaged(path, f"`{entry.filename}` is packed in a way that artifacts are not")
    size = sum(entry.file_size for entry in entries)
    if size > LARGEST or (size > UNSUSPICIOUS and size > DENSEST * path.stat().st_size):
        raise damaged(path, f"it claims to unpack to {size:,} bytes")
    return {name: archive.read(name) for name in names}
