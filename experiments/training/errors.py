"""What training says to somebody who can put it right."""

from __future__ import annotations


class TrainingError(Exception):
    """What is wrong, in one line, and what to do about it; `command` prints both."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help
