from __future__ import annotations

import pytest

from tests.cli.command import Command


@pytest.fixture
def stmlang(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)
