"""Sizes and parameters: settings from outside, defaults, and what they evaluate to."""

from __future__ import annotations

import math
from collections.abc import Mapping

from stmlang.check.modules import Module
from stmlang.check.problems import Problems, listed
from stmlang.check.typing.expressions import context_for
from stmlang.check.typing.scope import SIZE, Budget, NoNumber, Numbers, Scope, World
from stmlang.scan.sizes import SIZE_LIMIT
from stmlang.source.span import Span
from stmlang.syntax import tree


class Settings:
    """Numbers from outside by name. A name that nothing asks for is an error: it is most likely misspelt."""

    def __init__(self, problems: Problems, values: Mapping[str, int | float]) -> None:
        self._problems = problems
        self._values = values
        self._known: dict[str, None] = {}

    def take(self, name: str) -> float | NoNumber | None:
        """The number set for a name, if one is."""
        self._known[name] = None
        if name not in self._values:
            return None
        value = _finite(self._values[name])
        if value is None:
            self._problems.error("STM2032", f"`{name}` cannot be {self._values[name]!r}", None, "a setting is a finite number")
            return NoNumber.BROKEN
        return value

    def refuse_unknown(self) -> None:
        """Report the settings that nothing asked for."""
        for name in self._values:
            if name not in self._known:
                note = f"it has {listed(self._known)}"
                help = self._problems.near(name, self._known)
                self._problems.error("STM1014", f"this scan has nothing named `{name}` to set", None, note, help=help)


def _finite(value: object) -> float | None:
    """A number that fits into double precision; None for anything else, truth values included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


class Sizer:
    """Evaluates what a scan's head and its topology say about numbers."""

    def __init__(self, problems: Problems, budget: Budget, settings: Settings, used: set[str]) -> None:
        self.asked: set[str] = set()
        self._used = used
        self.problems = problems
        self.settings = settings
        self._budget = budget

    def number(self, expression: tree.Expression, module: Module, numbers: Numbers, what: str) -> float | NoNumber:
        """The value of a constant expression over numbers that are known so far."""
        context = context_for(self.problems, self._budget, World(numbers, used=self._used, constant=what))
        value = context.constant(expression, Scope(module), 0, what)
        return NoNumber.BROKEN if value is None else value

    def whole(self, name: str, value: float | NoNumber, span: Span | None, least: int) -> int | None:
        """A number as a size; None where it is none, which is reported here unless it was before."""
        if isinstance(value, NoNumber):
            return None
        if float(value).is_integer() and least <= value < SIZE_LIMIT:
            return int(value)
        shown = f"{value:.15g}"
        note = f"a size is a whole number from {least} to 2^31 - 1"
        self.problems.error("STM2029", f"`{name}` cannot be {shown}", span, note)
        return None

    def size(
        self,
        parameter: tree.SizeParameter,
        module: Module,
        numbers: Numbers,
        default: float | NoNumber | None,
        least: int,
        what: str = SIZE,
    ) -> int | NoNumber:
        """The size of an axis, or of something like one: set from outside, else by the scan's head, else where it is
        declared, else unbound."""
        name, span = parameter.name.text, parameter.span
        self.asked.add(name)
        value = self.settings.take(name)
        if value is not None:
            span = None
        elif default is not None:
            value = default
        elif parameter.default is not None:
            value, span = self.number(parameter.default, module, numbers, what), parameter.default.span
        else:
            return NoNumber.UNBOUND
        size = self.whole(name, value, span, least)
        return NoNumber.BROKEN if size is None else size
