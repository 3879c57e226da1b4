"""Write a commented spec to start from, or a project: the spec, a model around it, its training, and a test."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from stmlang.cli.output import tell

NAME = "new"
SUMMARY = "write a spec or a project to start from"
KINDS = ("chain", "image", "volume", "video", "tree", "dag", "graphs")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", type=spec_path, help="the scan's name, or a path to the file NAME.stm")
    origin = parser.add_mutually_exclusive_group()
    origin.add_argument("--kind", choices=KINDS, default="chain", help="what the scan runs on (default: chain)")
    origin.add_argument("--from", dest="origin", metavar="SPEC", help="copy a spec of the library: mamba, or std:chain/mamba")
    parser.add_argument("--project", action="store_true", help="write a folder NAME, with a model around the spec that trains")


def spec_path(text: str) -> Path:
    """The file to write: its stem becomes the scan's name, so it must be one."""
    from stmlang.syntax.lexer import ITEM_WORDS

    path = Path(text)
    if path.suffix != ".stm":
        path = path.with_name(path.name + ".stm") if path.name else path
    if not _NAME.match(path.stem):
        raise argparse.ArgumentTypeError(f"{path.stem!r} is not a name: letters, digits and _, not beginning with a digit")
    if path.stem in ITEM_WORDS:
        raise argparse.ArgumentTypeError(f"{path.stem!r} begins an item of a spec and names no scan: choose another name")
    return path


def run(arguments: argparse.Namespace) -> int:
    """Write the files and say what to do with them."""
    from stmlang.cli.files import create_text
    from stmlang.cli.starters import SIZES, copied, library_name, starter
    from stmlang.source.reading import from_text
    from stmlang.syntax.formatter import format_source

    path: Path = arguments.name
    origin = None if arguments.origin is None else library_name(arguments.origin)
    if origin is None:
        text, open_sizes = starter(arguments.kind, path.stem), SIZES[arguments.kind]
    else:
        text, open_sizes = copied(origin, path.stem)
    text = format_source(from_text(text))  # a long name breaks other lines than those of the template
    if arguments.project:
        return _project(path.with_suffix(""), text, origin)
    create_text(path, text)
    sizes = "".join(f" --set {name}={size}" for name, size in open_sizes.items())
    with _undone(path):
        _say(f"wrote {path}", f"stmlang check {path}", f"stmlang explain {path}{sizes}")
    return 0


def _project(folder: Path, text: str, origin: str | None) -> int:
    """Write a folder, whole or not at all."""
    from stmlang.check import examine, open_spec
    from stmlang.cli.files import create_folder
    from stmlang.cli.project import project

    scan = examine(open_spec(text), {}).scan
    assert scan is not None, "starters and the library are right"
    files = project(folder.name, text, scan, origin)
    create_folder(folder, files)
    with _undone(folder):
        _say(f"wrote {folder}: {', '.join(files)}", f"python -m pytest {folder}", f"python {folder / 'train.py'}")
    return 0


def _say(wrote: str, *commands: str) -> None:
    tell(wrote)
    for command in commands:
        tell(f"  {command}")
    sys.stdout.flush()


@contextmanager
def _undone(path: Path) -> Generator[None]:
    """Where nobody can be told of what was written, nothing was done; where the reader has left, it is kept."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        raise
