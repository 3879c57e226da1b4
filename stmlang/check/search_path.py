"""Where a spec may read files from: the folder it lies in, the search path and the installed library, and nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

STANDARD = "std"
"""The first word of an import, and the scheme of a spec's name, that stand for the installed library."""

ENVIRONMENT = "STMLANG_PATH"
"""The environment variable that names folders of the search path, separated as in PATH."""
_DEFINITION = re.compile(r"^def[ \t]+(\w+)", re.MULTILINE)
MOST_FOLDERS = 8
"""Folders in a message."""


@dataclass(frozen=True)
class Place:
    """A folder from which files are taken, and the root that no path out of it may leave."""

    directory: Path
    root: Path


class EscapeError(Exception):
    """A path that leads out of its root: absolute, through `..`, or through a symbolic link."""


def search_folders(folders: Sequence[Path]) -> tuple[Path, ...]:
    """The search path: the folders given, then those that the environment names, each in its order."""
    named = os.environ.get(ENVIRONMENT, "").split(os.pathsep)
    return (*folders, *(Path(folder) for folder in named if folder))


def looked_in(places: Sequence[Place]) -> str:
    """Where a file was looked for, and how to have it looked for elsewhere."""
    folders = [f"`{place.directory}`" for place in dict.fromkeys(places)]
    more = f" and {len(folders) - MOST_FOLDERS} more" if len(folders) > MOST_FOLDERS else ""
    return f"looked for in {', then '.join(folders[:MOST_FOLDERS])}{more}; `--path`, `path=` or {ENVIRONMENT} add folders"


def place_of(directory: Path) -> Place:
    """A folder that is its own root."""
    return Place(directory, directory)


@cache
def library() -> Path:
    """The folder of the language's own library: installed as `stmlang.stdlib`, beside the package in a source checkout."""
    from importlib.util import find_spec

    package = find_spec("stmlang.stdlib")
    folders = [] if package is None else [Path(folder) for folder in package.submodule_search_locations or ()]
    beside = Path(__file__).resolve().parents[2] / "stdlib"
    return next((folder for folder in (*folders, beside) if (folder / "gates.stm").is_file()), beside)


def library_specs() -> list[str]:
    """The names of the library's files, `plstm/image_p`, in order."""
    root = library()
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.stm"))


SKIPPED = ("node_modules", "__pycache__", "venv", "build", "dist")
"""Folders that hold what others made; those whose names begin with a dot are skipped too, and so is a link to a folder."""


def specs_below(folder: str | Path) -> list[str]:
    """The paths of all `*.stm` files in a folder, at any depth, in order."""
    specs: list[str] = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED)
        specs += [str(Path(place) / name) for name in files if name.endswith(".stm") and not name.startswith(".")]
    return sorted(specs)


@cache
def library_functions() -> dict[str, str]:
    """The definitions that the library's files declare, each with the path that `use` names its file by."""
    paths: dict[str, str] = {}
    for name in library_specs():
        try:
            text = (library() / f"{name}.stm").read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        for match in _DEFINITION.finditer(text):
            paths.setdefault(match[1], f"{STANDARD}.{name.replace('/', '.')}")
    return paths


@dataclass(frozen=True)
class LocatedFile:
    """A file: as it was reached, with symbolic links followed, and the root it may not leave."""

    path: Path
    resolved: Path
    root: Path

    @property
    def shown(self) -> str:
        """Its name in messages: `std:...` for the library's own."""
        library_root = library()
        if self.root == library_root:
            return f"{STANDARD}:{self.path.relative_to(library_root).with_suffix('').as_posix()}"
        return str(self.path)


def locate(relative: str, places: Sequence[Place]) -> LocatedFile | None:
    """The first file of a relative path.

    Raises EscapeError for a path that may not be followed, whether or not something lies at its end.
    """
    pure = PurePosixPath(relative)
    if pure.is_absolute() or Path(relative).is_absolute() or ".." in pure.parts or "\\" in relative:
        raise EscapeError(relative)
    for place in places:
        try:
            path = place.directory / pure
            if not path.is_file():
                continue
            resolved = path.resolve()
            inside = resolved.is_relative_to(place.root.resolve())
        except (OSError, ValueError, RuntimeError):  # a name too long, a loop of links, a zero byte: there is no such file
            continue
        if not inside:
            raise EscapeError(relative)
        return LocatedFile(path, resolved, place.root)
    return None
