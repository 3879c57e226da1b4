"""What the compiler does, said where it is asked for: `STMLANG_LOG=plan,cache,compile`, or `all`, on standard error.

The topics are loggers of Python's `logging`: `stmlang.plan`, `stmlang.cache` and `stmlang.compile`, which a program may also
set up for itself. Off, which they are unless told otherwise, they cost a comparison for each step of a compilation. As long as
nobody has imported `logging`, nobody can listen, and a command that is not asked to say anything need not wait for it.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stmlang.source.suggest import did_you_mean

if TYPE_CHECKING:
    import logging

ENVIRONMENT = "STMLANG_LOG"
EVERYTHING = "all"
TOPICS = ("plan", "cache", "compile")
"""What can be asked for: candidates and the choice; what was looked for in caches, and where; each step with its seconds."""

HANDLER = "stmlang on standard error"


@dataclass(frozen=True, eq=False)
class Topic:
    """One of `TOPICS`."""

    name: str

    @property
    def logger(self) -> logging.Logger:
        import logging

        return logging.getLogger(f"stmlang.{self.name}")

    def info(self, message: str, *values: object) -> None:
        """Say something to whoever listens."""
        if on(self):
            self.logger.info(message, *values)

    def debug(self, message: str, *values: object) -> None:
        """Say a detail to whoever wants details."""
        if on(self):
            self.logger.debug(message, *values)


PLAN, CACHE, COMPILE = map(Topic, TOPICS)


def topics_of(text: str) -> tuple[str, ...]:
    """The topics that a list, separated by commas, names. Raises ValueError for an unknown one, saying which there are."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    known = (*TOPICS, EVERYTHING)
    for word in words:
        if word not in known:
            help = did_you_mean(word, known) or f"choose among {', '.join(known)}"
            raise ValueError(f"unknown topic {word!r:.80} in {ENVIRONMENT}; {help}")
    return TOPICS if EVERYTHING in words else tuple(topic for topic in TOPICS if topic in words)


def complaint() -> str | None:
    """What is wrong with the environment variable, None if nothing is."""
    try:
        topics_of(os.environ.get(ENVIRONMENT, ""))
    except ValueError as error:
        return str(error)
    return None


def start() -> None:
    """Print the topics that the environment variable asks for. Warns of unknown ones, of which nothing is printed."""
    if (message := complaint()) is not None:
        warnings.warn(message, stacklevel=2)
        return
    for topic in topics_of(os.environ.get(ENVIRONMENT, "")):
        logger = Topic(topic).logger
        if not any(handler.name == HANDLER for handler in logger.handlers):
            logger.addHandler(_on_standard_error())
        logger.setLevel("DEBUG")
        logger.propagate = False


def _on_standard_error() -> logging.Handler:
    """Writes lines to whatever standard error is at the time, and nothing where it is closed."""
    import logging

    class OnStandardError(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            with suppress(OSError, ValueError):
                print(self.format(record), file=sys.stderr, flush=True)

    handler = OnStandardError()
    handler.name = HANDLER
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    return handler


def on(topic: Topic) -> bool:
    """Whether anybody listens."""
    if "logging" not in sys.modules:
        return False
    import logging

    return topic.logger.isEnabledFor(logging.INFO)


@contextmanager
def timed(topic: Topic, step: str) -> Generator[list[str]]:
    """Say that a step was done and how long it took, with the remarks that were put into the list meanwhile. A step that
    raises says nothing: its error does."""
    remarks: list[str] = []
    if not on(topic):
        yield remarks
        return
    begun = time.perf_counter()
    yield remarks
    seconds = time.perf_counter() - begun
    topic.info("%s: %s%.1f ms", step, "".join(f"{remark}, " for remark in remarks), 1e3 * seconds)
