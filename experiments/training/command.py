"""A study's command line, made of its dataclass of settings.

Exit status: 0 done, 1 what lies in the folder of the run or the data is wrong, or training failed, 2 the command line is wrong;
`stmlang.ending` has those of a run that was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import fields, is_dataclass
from io import StringIO
from typing import Any, NoReturn, TypeVar, cast

from rich.console import Console

from stmlang.ending import refused, require, rescuing
from stmlang.experiments.training.errors import TrainingError
from stmlang.source.diagnostic import SpecError

S = TypeVar("S")
WRONG, USAGE = 1, 2
RULES = "─╭╮╰╯-+"
"""What boxes are drawn with, on terminals of all kinds."""


def parsed(
    settings: type[S], module: str, description: str, arguments: Sequence[str] | None = None, default: S | None = None
) -> S:
    """Settings from the command line: each field is an option, those of dataclasses within it too, `--weight-decay` for
    `weight_decay`. What is not said is as in `default`, or as the dataclass has it. A wrong one ends with a line and exit
    status 2. Raises ModuleNotFoundError where tyro is not installed."""
    require("tyro")
    import tyro

    prog, said = f"python -m {module}", StringIO()
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    try:
        with redirect_stderr(said):
            start: dict[str, Any] = {} if default is None else {"default": default}
            result: S = cast(Any, tyro.cli)(
                settings, prog=prog, description=description, args=arguments, config=config, **start
            )
    except SystemExit as stop:
        if stop.code:
            usage_error(prog, _message(said.getvalue()))
        raise
    for fault in faults(result):
        usage_error(prog, fault)
    _join(result)
    return result


def _join(settings: Any) -> None:
    """Become one of the processes of a job, if settings of training say that there are several. Exits with status 1 where the
    others do not come."""
    from stmlang.experiments.training.settings import Training

    for value in (settings, *(getattr(settings, field.name) for field in fields(settings))):
        if isinstance(value, Training) and value.processes > 1:
            from stmlang.experiments.training.processes import join

            try:
                join(value)
            except TrainingError as error:
                print(f"{error}\n  help: {error.help}", file=sys.stderr)
                raise SystemExit(WRONG) from None


def faults(settings: Any) -> list[str]:
    """What is wrong with settings, in words: what their `faults` say, and those of the dataclasses within them."""
    inner = [getattr(settings, field.name) for field in fields(settings)]
    own: list[str] = list(getattr(settings, "faults", ()))
    return own + [fault for value in inner if is_dataclass(value) for fault in faults(value)]


def usage_error(prog: str, message: str) -> NoReturn:
    """Say what is wrong with a command line as argparse does, and exit with status 2."""
    print(f"usage: {prog} [-h] [OPTIONS]\n{prog}: error: {message}", file=sys.stderr)
    raise SystemExit(USAGE)


def _message(said: str) -> str:
    """What tyro says within its box, before it explains: the lines from the title to the first rule."""
    _, *lines = [line.strip(" │|") for line in said.splitlines() if line.strip()] or [""]
    ruled = [place for place, line in enumerate(lines) if not line.strip(RULES)]
    first = 1 if ruled[:1] == [0] else 0  # on terminals that have no boxes a rule stands under the title
    last = next((place for place in ruled if place > first), len(lines))
    return " ".join(lines[first:last]).strip() or "wrong options"


def command(run: Callable[[], int | None], console: Console) -> int:
    """Run a study; what somebody can put right is said in a line or two. Returns the exit status."""
    try:
        with rescuing(lambda: console.print("stopped: the same command with --resume goes on from the last checkpoint")):
            return run() or 0
    except TrainingError as error:
        console.print(f"{error}\n  help: {error.help}", markup=False, highlight=False, soft_wrap=True)
        return WRONG
    except SpecError as error:
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return WRONG
    except OSError as error:
        return refused(error)
