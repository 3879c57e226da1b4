"""Images as they lie in folders and tar archives, any of them by its number.

FOLDER/CLASS/*.jpeg            class folders, as ImageNet is usually kept
FOLDER/*.tar, FILE.tar[.xz]    archives; the class of a member is what `KEY.cls` beside `KEY.jpg` says (WebDataset), else the
                               folder it lies in, else the name of the archive (one for each class, as ImageNet is handed out)
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Protocol, cast

import numpy as np
from jaxtyping import Int, Int32, Int64

from stmlang.experiments.training.errors import TrainingError
from stmlang.source.writing import written_whole

IMAGES = frozenset({".jpg", ".jpeg", ".png"})
COMPRESSED = frozenset({".xz", ".gz", ".bz2"})
LAYOUTS = "a folder of class folders, a folder of tar archives, or one archive"


class Images(Protocol):
    """Encoded images and their classes, by number."""

    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def labels(self) -> Int32[np.ndarray, " image"]: ...
    def encoded(self, number: int) -> bytes: ...


@dataclass(frozen=True, eq=False)
class Files:
    """A file for each image."""

    paths: tuple[str, ...]
    labels: Int32[np.ndarray, " image"]
    classes: tuple[str, ...]

    def encoded(self, number: int) -> bytes:
        return Path(self.paths[number]).read_bytes()


@dataclass(frozen=True, eq=False)
class Members:
    """Members of tar archives that are not compressed: in which one each lies, from which byte on, and how many."""

    archives: tuple[str, ...]
    archive: Int32[np.ndarray, " image"]
    offset: Int64[np.ndarray, " image"]
    size: Int64[np.ndarray, " image"]
    labels: Int32[np.ndarray, " image"]
    classes: tuple[str, ...]

    def encoded(self, number: int) -> bytes:
        archive = self.archives[int(self.archive[number])]
        return os.pread(_descriptor(archive), int(self.size[number]), int(self.offset[number]))


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some images of others."""

    images: Images
    numbers: Int[np.ndarray, " image"]

    @property
    def classes(self) -> tuple[str, ...]:
        return self.images.classes

    @property
    def labels(self) -> Int32[np.ndarray, " image"]:
        return self.images.labels[self.numbers]

    def encoded(self, number: int) -> bytes:
        return self.images.encoded(int(self.numbers[number]))


@lru_cache(maxsize=4096)
def _descriptor(path: str) -> int:
    """An archive, opened once by each process."""
    return os.open(path, os.O_RDONLY)


def opened(path: Path, unpacked: Path, within: str = "") -> Images:
    """The images of a split. `within` is the folder of an archive that they lie in, for archives of several splits. What is
    compressed is first written to the folder `unpacked` without compression.

    Raises TrainingError where there are none, or where something is no layout that is known.
    """
    if path.is_dir():
        archives = sorted(path.glob("*.tar"))
        images = _members(archives, within) if archives else _files(path)
    elif path.suffix in COMPRESSED and path.exists():
        images = _members([_decompressed(path, unpacked)], within)
    elif path.suffix == ".tar" and path.exists():
        images = _members([path], within)
    else:
        raise TrainingError(f"there are no images at {path}", f"name {LAYOUTS}: `--data`")
    if not len(images.labels):
        raise TrainingError(f"{path} holds no images", f"name {LAYOUTS}: `--data`")
    return images


def held_out(images: Images, count: int) -> tuple[Images, Images]:
    """All images but `count`, and those, drawn once and for all by the number of images: validation without the test images."""
    order = np.random.default_rng([len(images.labels), count]).permutation(len(images.labels))
    return Chosen(images, np.sort(order[count:])), Chosen(images, np.sort(order[:count]))


def _files(folder: Path) -> Files:
    entries = sorted(_of_folders(folder))
    classes = _ordered(label for label, _ in entries)
    return Files(tuple(path for _, path in entries), _numbered([label for label, _ in entries], classes), classes)


def _of_folders(folder: Path) -> Iterator[tuple[str, str]]:
    for place in os.scandir(folder):
        if place.is_dir():
            for path, _, names in os.walk(place.path):
                yield from ((place.name, os.path.join(path, name)) for name in names if _is_image(name))


@dataclass(frozen=True)
class _Member:
    label: str
    archive: int
    name: str
    offset: int
    size: int


def _members(archives: Sequence[Path], within: str) -> Members:
    members = [member for number, path in enumerate(archives) for member in _of_archive(path, number, within)]
    classes = _ordered(member.label for member in members)
    return Members(
        tuple(str(path) for path in archives),
        np.asarray([member.archive for member in members], np.int32),
        np.asarray([member.offset for member in members], np.int64),
        np.asarray([member.size for member in members], np.int64),
        _numbered([member.label for member in members], classes),
        classes,
    )


def _of_archive(path: Path, number: int, within: str) -> Iterator[_Member]:
    """The images of an archive, by name."""
    labels: dict[str, str] = {}
    images: list[tarfile.TarInfo] = []
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if member.isfile() and name.suffix == ".cls":
                    labels[_key(member.name)] = (
                        cast("tarfile.ExFileObject", archive.extractfile(member)).read().decode().strip()
                    )
                elif member.isfile() and _is_image(name.name) and (not within or within in name.parts[:-1]):
                    images.append(member)
    except tarfile.TarError as error:
        raise TrainingError(f"{path} is no tar archive: {error}", "fetch it again") from None
    for member in sorted(images, key=lambda member: member.name):
        parent = PurePosixPath(member.name).parent.name
        label = labels.get(_key(member.name), parent or path.stem)
        yield _Member(label, number, member.name, member.offset_data, member.size)


def _key(name: str) -> str:
    """What the members of one example have in common: the name up to the first dot behind the last slash."""
    folder, _, file = name.rpartition("/")
    return f"{folder}/{file.partition('.')[0]}"


def _is_image(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in IMAGES


def _ordered(labels: Iterator[str]) -> tuple[str, ...]:
    """Classes in the order of their numbers where all are numbers, else of their names."""
    names = set(labels)
    return tuple(sorted(names, key=int)) if all(name.isdigit() for name in names) else tuple(sorted(names))


def _numbered(labels: Sequence[str], classes: Sequence[str]) -> Int32[np.ndarray, " image"]:
    numbers = {name: number for number, name in enumerate(classes)}
    return np.asarray([numbers[label] for label in labels], np.int32)


def _decompressed(path: Path, unpacked: Path) -> Path:
    """The archive without compression, written where it is not there yet."""
    import bz2
    import gzip
    import lzma

    plain = unpacked / path.stem
    if not plain.exists():
        unpacked.mkdir(parents=True, exist_ok=True)
        opening = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}[path.suffix]
        with opening(path, "rb") as source, written_whole(plain) as stream:
            shutil.copyfileobj(source, stream, 2**20)
    return plain
