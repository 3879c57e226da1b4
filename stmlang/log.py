"""What the compiler does, said where it is asked for: `STMLANG_LOG=plan,cache,compile`, or `all`, on standard error.

The topics are loggers of Python's `logging`: `stmlang.plan`, `stmlang.cache` and `stmlang.compile`, which a program may also
set up for itself. Off, which they are unless told otherwise, they cost a comparison for each step of a compilation.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress

from stmlang.source.suggest import did_you_mean

ENVIRONMENT = "STMLANG_LOG"
EVERYTHING = "all"
TOPICS = ("plan", "cache", "compile")
"""What can be asked for: candidates and the choice; what was looked for in caches, and where; each step with its seconds."""

PLAN, CACHE, COMPILE = (logging.getLogger(f"stmlang.{topic}") for topic in TOPICS)


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
        logger = logging.getLogger(f"stmlang.{topic}")
        if not any(isinstance(handler, _OnStandardError) for handler in logger.handlers):
            handler = _OnStandardError()
            handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
            logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False


class _OnStandardError(logging.Handler):
    """Writes lines to whatever standard error is at the time, and nothing where it is closed."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):
            print(self.format(record), file=sys.stderr, flush=True)


def on(logger: logging.Logger) -> bool:
    """Whether anybody listens."""
    return logger.isEnabledFor(logging.INFO)


@contextmanager
def timed(logger: logging.Logger, step: str) -> Generator[list[str]]:
    """Say that a step was done and how long it took, with the remarks that were put into the list meanwhile. A step that
    raises says nothing: its error does."""
    remarks: list[str] = []
    if not on(logger):
        yield remarks
        return
    begun = time.perf_counter()
    yield remarks
    seconds = time.perf_counter() - begun
    logger.info("%s: %s%.1f ms", step, "".join(f"{remark}, " for remark in remarks), 1e3 * seconds)
