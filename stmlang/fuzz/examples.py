"""Examples by number, and small ones that fail in the same way.

An example is drawn by hypothesis from bytes that a seed and a number decide alone: neither what was drawn before nor what
happens to be imported has a say, so that two runs agree, however many processes share the work. From the same bytes hypothesis
shrinks what fails: they go into a database in memory, which it replays before it shrinks.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.database import ExampleDatabase, InMemoryExampleDatabase
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

ENTROPY = 1 << 14
"""Bytes for one example; one that needs more is none."""

Example = TypeVar("Example")


class _Fails(Exception):
    """Tells hypothesis that an example is one of those that it is to shrink."""


class _Raised(BaseException):
    """Takes what was raised while asking past hypothesis, which takes most exceptions for failures of an example."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def example(strategy: SearchStrategy[Example], start: int, number: int) -> Example | None:
    """The example of a number under a seed, or None where the bytes for it make none."""
    examples: list[Example] = []
    _explorer(strategy, examples.append, None).hypothesis.fuzz_one_input(_bytes(start, number))
    return examples[0] if examples else None


def shrink(strategy: SearchStrategy[Example], start: int, number: int, fails: Callable[[Example], bool], most: int) -> None:
    """Look for smaller examples that fail, beginning with that of a number, which does.

    `fails` is asked once for each, at most `most` times, and told of ever smaller ones as hypothesis finds them. What it raises
    ends the search, and is raised.
    """
    known: dict[Any, bool] = {}

    def asked(candidate: Example) -> bool:
        try:
            return fails(candidate)
        except BaseException as error:
            raise _Raised(error) from None

    def attempt(candidate: Example) -> None:
        key = repr(candidate)
        if key not in known:
            known[key] = not known or (len(known) < most and asked(candidate))
        if known[key]:
            raise _Fails

    explorer = _explorer(strategy, attempt, InMemoryExampleDatabase())
    try:
        for explore in (lambda: explorer.hypothesis.fuzz_one_input(_bytes(start, number)), explorer):
            with suppress(_Fails, Flaky):
                explore()
    except _Raised as raised:
        raise raised.error from None


def _explorer(strategy: SearchStrategy[Any], body: Callable[[Any], None], database: ExampleDatabase | None) -> Any:
    """A test as hypothesis has them."""

    @settings(
        phases=(Phase.reuse, Phase.shrink),
        database=database,
        deadline=None,
        suppress_health_check=cast(Any, tuple(HealthCheck)),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        print_blob=False,
    )
    @seed(0)
    @given(strategy)
    def explorer(drawn: Any) -> None:
        body(drawn)

    return explorer


def _bytes(start: int, number: int) -> bytes:
    return random.Random(f"{start}/{number}").randbytes(ENTROPY)
