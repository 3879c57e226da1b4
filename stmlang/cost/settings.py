"""Settings of strategies: frozen dataclasses, printed and read by one function each way.

A field is a whole number or a tuple of them; one that is None is left out of everything that is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast, get_args, get_origin, get_type_hints

ConfigValue = int | tuple[int, ...]
Config = tuple[tuple[str, ConfigValue], ...]
"""Settings by name as sorted pairs, so that they can be compared and hashed: `(("tile", (7, 7)),)`."""


def freeze(values: Mapping[str, ConfigValue]) -> Config:
    """Settings by name as sorted pairs."""
    return tuple(sorted(values.items()))


class Settings(Protocol):
    """What a strategy's dataclass of settings has beside its fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def transposed(self, rank: int) -> Self:
        """The same work on a grid of `rank` axes whose last two axes have changed places."""
        ...

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        """The settings nearest to these that a grid with axes of these sizes takes; None stands for another topology."""
        ...


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, slots=True)
class NoSettings:
    """Of a strategy that does its work in one way only."""

    def transposed(self, rank: int) -> Self:
        del rank
        return self

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self


def is_settings(value: object) -> bool:
    """Whether a value is a strategy's settings, and no mapping."""
    return is_dataclass(value) and not isinstance(value, type) and hasattr(value, "transposed")


def settings_dict(settings: Settings) -> dict[str, ConfigValue]:
    """Settings by name, in alphabetical order: `{"tile": (7, 7)}`. So they are stored, as JSON too, which has lists for
    tuples."""
    values = ((field.name, getattr(settings, field.name)) for field in fields(settings))
    return {name: value for name, value in sorted(values) if value is not None}


def parse_settings(kind: type[S], values: Mapping[str, object]) -> S | None:
    """The inverse of `settings_dict`: lists are taken for tuples. None where a name is missing or unknown, or a value is of
    another type than its field."""
    required, optional = _names(kind)
    if not required <= set(values) <= required | optional:
        return None
    read = {
        name: tuple(cast(list[Any], value)) if isinstance(value, list) else cast(Any, value) for name, value in values.items()
    }
    if any(not _fits(value, _of_tuples(kind)[name]) for name, value in read.items()):
        return None
    return kind(**read)


def _fits(value: Any, of_tuples: bool) -> bool:
    """Whether a value is a tuple of whole numbers, or a whole number."""
    if isinstance(value, tuple) is not of_tuples:
        return False
    return all(type(number) is int for number in (cast(tuple[Any, ...], value) if of_tuples else (value,)))


@cache
def _names(kind: type[Settings]) -> tuple[frozenset[str], frozenset[str]]:
    """The fields that must be given, and those that need not be."""
    listed = fields(kind)
    required = frozenset(field.name for field in listed if field.default is MISSING)
    return required, frozenset(field.name for field in listed) - required


@cache
def _of_tuples(kind: type[Settings]) -> dict[str, bool]:
    """Of each field whether it is a tuple of numbers, and not a number."""
    return {
        name: any(get_origin(entry) is tuple for entry in (hint, *get_args(hint)))
        for name, hint in get_type_hints(kind).items()
    }


def label(strategy: str, values: Mapping[str, ConfigValue]) -> str:
    """A strategy with its settings by name in words: `chunkwise tile=7x7`."""
    words = (
        f"{name}={'x'.join(map(str, value)) if isinstance(value, tuple) else value}" for name, value in sorted(values.items())
    )
    return " ".join([strategy, *words])
