"""When diagnostics are coloured."""

from __future__ import annotations

import io

import pytest

from stmlang.cli.output import use_colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "stream", "coloured"),
    [
        ({}, Terminal(), True),
        ({}, io.StringIO(), False),
        ({"NO_COLOR": "1"}, Terminal(), False),
        ({"NO_COLOR": ""}, Terminal(), True),
        ({"TERM": "dumb"}, Terminal(), False),
    ],
)
def test_colour(monkeypatch, variables, stream, coloured):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert use_colour(stream) is coloured
