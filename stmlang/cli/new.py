"""Write a commented spec to start from."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from stmlang.cli.output import tell

NAME = "new"
SUMMARY = "write a starter spec"
KINDS = ("chain", "image", "volume", "video", "tree", "dag", "graphs")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", type=spec_path, help="the scan's name, or a path to the file NAME.stm")
    origin = parser.add_mutually_exclusive_group()
    origin.add_argument("--kind", choices=KINDS, default="chain", help="what the scan runs on (default: chain)")
    origin.add_argument("--from", dest="origin", metavar="SPEC", help="copy a spec of the library: mamba, or std:chain/mamba")


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
    """Write the file and say what to do with it."""
    from stmlang.cli.files import create_text
    from stmlang.cli.starters import SIZES, copied, starter

    path: Path = arguments.name
    if arguments.origin is None:
        text, open_sizes = starter(arguments.kind, path.stem), SIZES[arguments.kind]
    else:
        text, open_sizes = copied(arguments.origin, path.stem)
    create_text(path, text)
    sizes = "".join(f" --set {name}={size}" for name, size in open_sizes.items())
    try:
        tell(f"wrote {path}")
        tell(f"  stmlang check {path}")
        tell(f"  stmlang explain {path}{sizes}")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:  # where nobody can be told, nothing was done
        path.unlink(missing_ok=True)
        raise
    return 0
