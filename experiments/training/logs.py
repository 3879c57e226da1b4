"""The log of a run: OUT/log.jsonl, and OUT/tensorboard/ where it was asked for.

A line of log.jsonl holds a step and what was measured up to it; no clock has a part in it, so that equal runs have equal logs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from stmlang.ending import require

Record = Mapping[str, Any]
"""A line of the log: `step`, and either the means of measures since the line before, or those of a validation, under
`validation`."""


class Log:
    """What a run says of itself. `length` is how much of an earlier log counts, in bytes, `step` where it ends. Without
    `written` it only counts: of several processes the first one writes."""

    def __init__(self, out: Path, length: int, step: int, *, tensorboard: bool, written: bool = True) -> None:
        self.path = out / "log.jsonl" if written else Path(os.devnull)
        self.stream = open(self.path, "ab")  # noqa: SIM115 - open for as long as the run is
        if written:
            self.stream.truncate(length)
        self.length, tensorboard = length, tensorboard and written
        self.boards = [_board(out / "tensorboard", step)] if tensorboard else []

    def line(self, record: Record) -> None:
        """Append a line; it is in the file when this returns."""
        text = (json.dumps(record) + "\n").encode()
        self.stream.write(text)
        self.stream.flush()
        self.length += len(text)
        self.chart(record, record["step"])

    def chart(self, values: Mapping[str, Any], step: int, under: str = "") -> None:
        """Show numbers in TensorBoard."""
        for name, value in values.items():
            if isinstance(value, Mapping):
                self.chart(cast(Mapping[str, Any], value), step, f"{name}/")
            elif name != "step":
                for board in self.boards:
                    board.add_scalar(under + name, value, step)

    def close(self) -> None:
        self.stream.close()
        for board in self.boards:
            board.close()


def _board(folder: Path, step: int) -> Any:
    """What TensorBoard is told by. What it was told of later steps does not count."""
    require("tensorboardX")
    from tensorboardX import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)


def records(out: Path) -> list[dict[str, Any]]:
    """The lines of a run's log."""
    return [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
