"""Running the command line in a test."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import dataclass

import pytest

from stmlang.cli.main import main


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


class Command:
    """Call it with arguments; `stdin` is what `-` reads."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments: object, stdin: bytes = b"") -> Outcome:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Outcome(status, captured.out, captured.err)


def run_process(*arguments: object, code: str | None = None, **options: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own; `code` replaces the usual start."""
    start = ["-c", code] if code else ["-m", "stmlang"]
    words = [sys.executable, *start, *(str(argument) for argument in arguments)]
    return subprocess.run(words, capture_output=True, timeout=120, check=False, **{"text": True, **options})
