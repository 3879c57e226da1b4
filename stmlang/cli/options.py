"""Arguments that several commands take, and how their values are read."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import Literal, cast

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WHOLE = re.compile(r"[+-]?[0-9]+\Z")
_DIGITS = 18
"""A whole number with more digits is no size and no sensible parameter."""
_BYTES = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([kKMGT]?)(i?)B?\Z")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) *(ms|s|min|h|)\Z")
_UNITS = {"ms": 1e-3, "": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
_SCALES = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}

TARGETS = ("auto", "cpu", "gpu", "h100", "h200", "a100")
DTYPES = ("float32", "float64", "bfloat16")
MODES = ("training", "inference")


def add_spec(
    parser: argparse.ArgumentParser, what: str = "a path, `std:NAME` for one of the library, or `-` for standard input"
) -> None:
    """SPEC, `--set` and `--path`."""
    parser.add_argument("spec", metavar="SPEC", help=what)
    add_settings(parser)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """`--set` and `--path`: what a spec means besides its text."""
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="NAME=VALUE",
        type=setting,
        action=CollectSettings,
        default={},
        help="a size or parameter of the spec; may be given several times",
    )
    add_path(parser)


def add_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--path",
        dest="search_path",
        metavar="DIR",
        type=folder,
        action="append",
        default=[],
        help="look here too for imports and graph files, before STMLANG_PATH; may be given several times",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON value on standard output")


def add_planning(parser: argparse.ArgumentParser, *, target: bool = True) -> None:
    """What the plan is made for; without `target` the command says that itself."""
    if target:
        add_target(parser)
    parser.add_argument("--mode", choices=MODES, default="training", help="what memory must suffice for (default: training)")
    add_call(parser)
    add_choice(parser)


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", choices=TARGETS, default="auto", help="the machine to plan for (default: auto)")


def add_call(parser: argparse.ArgumentParser) -> None:
    """What a call computes with."""
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="the data type (default: float32)")
    parser.add_argument("--memory-limit", metavar="SIZE", type=byte_size, help="at most so many bytes: 500MB, 2GiB")


def add_choice(parser: argparse.ArgumentParser) -> None:
    """What overrules the planner."""
    parser.add_argument("--strategy", metavar="NAME", help="use this strategy, whatever the planner would choose")
    parser.add_argument(
        "--no-tuned", dest="tuned", action="store_false", help="choose by prediction, whatever `stmlang tune` measured"
    )


def add_batch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batch", metavar="N", type=positive, default=1, help="how many scans a call evaluates (default: 1)")


def folder(text: str) -> Path:
    """A folder that is there."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text!r}")
    return Path(text)


def setting(text: str) -> tuple[str, int | float]:
    """`name=value`, the value an int or a finite float."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"write NAME=VALUE, such as rows=14, instead of {text!r}")
    name, value = name.strip(), value.strip()
    if not _NAME.match(name):
        raise argparse.ArgumentTypeError(f"{name!r} is not a name")
    return name, number(value)


def number(text: str) -> int | float:
    """An int where it looks like one, else a finite float."""
    if _WHOLE.match(text):
        if len(text) > _DIGITS:
            raise argparse.ArgumentTypeError(f"{text[:_DIGITS]}... has too many digits")
        return int(text)
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def byte_size(text: str) -> int:
    """`1048576`, `500MB`, `2GiB`, `1.5 G`."""
    match = _BYTES.match(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write 500MB, 2GiB or a number of bytes")
    amount, prefix, binary = match.groups()
    if binary and not prefix:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; `iB` needs a prefix, as in 2GiB")
    size = float(amount) * (1024 if binary else 1000) ** _SCALES[prefix]
    if not 1 <= size < math.inf:
        raise argparse.ArgumentTypeError("the memory limit must be positive, and a number that a machine can have")
    return int(size)


def duration(text: str) -> float:
    """`60`, `60s`, `1.5min`, `2h`: seconds, more than none."""
    match = _DURATION.match(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write 30s, 5min or a number of seconds")
    seconds = float(match.group(1)) * _UNITS[match.group(2)]
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError("the time must be positive")
    return seconds


def batch_size(text: str) -> int | Literal["symbolic"] | None:
    """A positive number, `symbolic`, or `none` (None) for no batch axis at all."""
    if text == "symbolic":
        return "symbolic"
    return None if text == "none" else positive(text)


def bucket_sizes(text: str) -> dict[str, int]:
    """`graphs=64,nodes=2048,edges=4096`."""
    sizes: dict[str, int] = {}
    for entry in text.split(","):
        name, size = setting(entry)
        if name in sizes:
            raise argparse.ArgumentTypeError(f"`{name}` is set twice")
        if not isinstance(size, int) or not 0 <= size < 2**31:
            raise argparse.ArgumentTypeError(f"`{name}` must be a whole number from 0 on and below 2^31")
        sizes[name] = size
    return sizes


def positive(text: str) -> int:
    """A positive number below 2^31."""
    if not re.fullmatch(r"[0-9]{1,10}", text) or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number below 2^31")
    return int(text)


def natural(text: str) -> int:
    """A number from 0 to 2^31 - 1."""
    return 0 if re.fullmatch(r"0{1,10}", text) else positive(text)


class CollectSettings(argparse.Action):
    """Settings as one dictionary; a name that is set twice is a mistake."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        name, value = cast(tuple[str, int | float], values)
        settings: dict[str, int | float] = dict(getattr(namespace, self.dest))
        if name in settings:
            parser.error(f"argument {option_string}: `{name}` is set twice")
        setattr(namespace, self.dest, {**settings, name: value})
