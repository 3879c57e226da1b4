"""Data sets from the public archive, one zip file each, kept in the user's cache.

What comes over the network is bounded, unpacked only if every name in it is that of a file of the data set, and used only if
the files are, byte for byte, those that this study is about. A library such as pooch would check the archive, which differs
from mirror to mirror, and bound nothing.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import secrets
import shutil
import stat
import urllib.error
import urllib.request
import zipfile
from contextlib import ExitStack
from pathlib import Path

from stmlang.ending import unfinished
from stmlang.experiments.training.errors import TrainingError

DIGESTS = {
    "MUTAG": "6cb457cfe1ddd66524af009356d158ce1e7282604518abeffccf62fb4bb6f4da",
    "NCI1": "5c2f5ae5a8ae57791baa8a2df90998c7fcc59068b6f7d8ca7e77b2f2d7d56ec5",
    "PROTEINS": "f9b56c5f7a5666f4190d22a1bb891a28c737f4f6817950fe5137a692687b3409",
    "PTC_FM": "f7b1178210a602e8d81e9090e60da04319e9ddd4db05da3ac439f13a2b46e72f",
}
"""What `digest` says of each data set."""

MOST_BYTES = 64 << 20
"""The largest archive."""
MOST_UNPACKED = 256 << 20
"""The most bytes that the files of one archive may come to."""
MOST_FILES = 16
PART = 1 << 16
SECONDS = 60
"""The longest that the network may be silent."""


def fetched(name: str, archive: str, cache: Path) -> Path:
    """The folder of a data set in the cache, which is filled first where it has to be.

    Raises TrainingError for a set whose digest is not known, for what cannot be fetched, and for what is not the data set.
    """
    if name not in DIGESTS:
        raise TrainingError(
            f"{name} cannot be checked after a download", f"fetch it by hand, and say where: `--data`, {_known()}"
        )
    folder = cache / name
    if folder.is_dir() and digest(folder, name) == DIGESTS[name]:
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        temporary = str(cache / f".{name}.{secrets.token_hex(8)}")
        with unfinished(temporary), ExitStack() as stack:
            os.mkdir(temporary)
            stack.callback(shutil.rmtree, temporary, ignore_errors=True)
            packed, unpacked = Path(temporary) / "archive.zip", Path(temporary) / name
            download(f"{archive.rstrip('/')}/{name}.zip", packed)
            unpack(packed, unpacked, name)
            if digest(unpacked, name) != DIGESTS[name]:
                raise TrainingError(f"what {archive} has as {name} is not the data set of this study", _by_hand())
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(unpacked, folder)
    except OSError as error:
        raise TrainingError(
            f"{name} cannot be kept in {cache}: {_reason(error)}", "set STMLANG_CACHE to another folder"
        ) from None
    return folder


def digest(folder: Path, name: str) -> str:
    """SHA-256 of the names and contents of a data set's files."""
    state = hashlib.sha256()
    for path in sorted(folder.glob(f"{name}_*.txt")):
        state.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return state.hexdigest()


def download(url: str, place: Path) -> None:
    """Write what a server sends to a file. Raises TrainingError where it sends nothing, or too much."""
    if not re.match(r"https?://", url):
        raise TrainingError(f"`{url}` is no address of an archive", "give one that begins with https://")
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "stmlang"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer, open(place, "wb") as file:
            length = 0
            while block := answer.read(PART):
                length += len(block)
                if length > MOST_BYTES:
                    raise TrainingError(f"{url} is larger than {MOST_BYTES:,} bytes", _by_hand())
                file.write(block)
            if answer.length:
                raise TrainingError(f"{url} broke off after {length:,} bytes", "try once more")
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        raise TrainingError(f"{url} cannot be fetched: {_reason(error)}", _by_hand()) from None


def unpack(packed: Path, folder: Path, name: str) -> None:
    """Unpack `NAME/NAME_*.txt` and `NAME/README.txt`. Raises TrainingError where an archive holds anything else or too much."""
    member = re.compile(rf"{re.escape(name)}/({re.escape(name)}_\w+|README)\.txt")
    try:
        with zipfile.ZipFile(packed) as archive:
            files = [entry for entry in archive.infolist() if entry.filename != f"{name}/"]
            for entry in files:
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if not member.fullmatch(entry.filename) or kind not in (0, stat.S_IFREG):
                    raise TrainingError(f"the archive of {name} holds `{entry.filename!r:.80}`, no file of its own", _by_hand())
            if len(files) > MOST_FILES or sum(entry.file_size for entry in files) > MOST_UNPACKED:
                raise TrainingError(f"the archive of {name} unpacks to more than a data set has", _by_hand())
            folder.mkdir()
            for entry in files:
                # No more than its header says is read of any file, and sums of headers are bounded above.
                with archive.open(entry) as source, open(folder / Path(entry.filename).name, "wb") as file:
                    shutil.copyfileobj(source, file, PART)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise TrainingError(f"the archive of {name} cannot be unpacked: {_reason(error)}", _by_hand()) from None


def _known() -> str:
    return f"or take one of {', '.join(DIGESTS)}"


def _by_hand() -> str:
    return "fetch the data set by hand, and say where it is: `--data`"


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or getattr(error, "reason", None) or error or type(error).__name__)
