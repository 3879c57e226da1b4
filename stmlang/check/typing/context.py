"""What every rule of the type checker is given: where it stands, where it reports, and how it types what is inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import repeat

from stmlang.check.problems import Problems
from stmlang.check.typing.complex_values import Typed
from stmlang.check.typing.scope import Budget, Scope, Site, World
from stmlang.check.typing.values import DEEPEST, Value, folded
from stmlang.scan.expression import Number
from stmlang.source.advice import Advice
from stmlang.source.diagnostic import Label
from stmlang.source.span import Span
from stmlang.syntax import tree

Infer = Callable[["Context", tree.Expression, Scope, int], Typed | None]


@dataclass(frozen=True, slots=True)
class Context:
    """One world, one equation of it (`site`; None for sizes and parameters), and the call that is being expanded, if one is.

    The rules for calls, references and leaves type the expressions inside theirs, and the rule for expressions leads to all of
    them. That circle is closed here and not by imports: `infer`, the rule for expressions, is a field.
    """

    problems: Problems
    budget: Budget
    world: World
    infer: Infer
    site: Site | None = None
    call: Span | None = None
    """The outermost call of a definition around what is being typed."""

    def type(self, expression: tree.Expression, scope: Scope, depth: int = 0) -> Value | None:
        """The real value of an expression, None if there is an error, which has been reported."""
        value = self.infer(self, expression, scope, depth) if self._ready(expression, depth) else None
        return value if value is None or isinstance(value, Value) else self._not_real(expression)

    def type_any(self, expression: tree.Expression, scope: Scope, depth: int = 0) -> Typed | None:
        """The same of an expression that may be complex."""
        return self.infer(self, expression, scope, depth) if self._ready(expression, depth) else None

    def type_all(self, expressions: Iterable[tree.Expression], scope: Scope, depth: int) -> list[Value] | None:
        """The real values of operands, all of which are looked at; None if any has an error."""
        values = list(map(self.type, expressions, repeat(scope), repeat(depth + 1)))  # a comprehension is one more frame
        sound = [value for value in values if value is not None]
        return sound if len(sound) == len(values) else None

    def type_all_any(self, expressions: Iterable[tree.Expression], scope: Scope, depth: int) -> list[Typed] | None:
        """The same of operands that may be complex."""
        values = list(map(self.type_any, expressions, repeat(scope), repeat(depth + 1)))
        sound = [value for value in values if value is not None]
        return sound if len(sound) == len(values) else None

    def _ready(self, expression: tree.Expression, depth: int) -> bool:
        """Whether an expression is neither too deep nor one too many."""
        if depth > DEEPEST:
            self._too_deep(expression.span)
            return False
        return self.call is None or self._step(self.call)

    def _not_real(self, expression: tree.Expression) -> None:
        """Report a complex number where a real one has to stand."""
        note = "complex are gates, and what `+`, `-`, `*`, `/`, `exp`, `conjugate`, `sum` and `mean` make of complex numbers"
        help = "`real(...)`, `imaginary(...)` or `abs(...)` of it is a real number"
        self.error("STM2054", "this is a complex number", expression.span, note, help=help)

    def constant(self, expression: tree.Expression, scope: Scope, depth: int, what: str) -> float | None:
        """The number that an expression is; None after an error. `what` is what the number is for: `a size`."""
        value = self.type(expression, scope, depth + 1)
        if value is None:
            return None
        if isinstance(value.expr, Number):
            return value.expr.value
        note = f"{what} is known when a spec is checked: made of numbers, parameters and sizes"
        self.error("STM2024", "this is not a constant", expression.span, note)
        return None

    def made(self, value: Value) -> Value | None:
        """A value just put together: folded if it is constant, refused if it is undefined, too deep or too large."""
        span = value.expr.span
        if value.depth > DEEPEST:
            return self._too_deep(span)
        if value.weight > self.budget.weight:
            return self.too_large(span)
        result = folded(value)
        if result is None:
            rule = "division by zero, a root or logarithm of a negative number, and numbers above 1e308 have no value"
            self.error("STM2028", "this constant has no value", span, rule)
        return result

    def expanding(self, call: Span) -> Context:
        """The context for the body of a definition that is called."""
        return self if self.call is not None else replace(self, call=call)

    def _step(self, call: Span) -> bool:
        """Count one expression of a definition's body; whether the budget allows for it."""
        self.budget.steps -= 1
        if self.budget.steps < 0:
            self.too_large(call)
        return not self.budget.spent

    def too_large(self, span: Span) -> None:
        """Report, once, that definitions expand to too much."""
        if not self.budget.spent:
            self.budget.spent = True
            note = "definitions are expanded where they are called, up to 100,000 operations in a file"
            self.problems.error("STM2027", "definitions expand to too much here", self.call or span, note)

    def _too_deep(self, span: Span) -> None:
        self.error("STM2026", "operations nest too deeply here", span, f"at most {DEEPEST} deep, definitions expanded")

    def error(
        self, code: str, message: str, span: Span, *notes: str, help: str | Advice | None = None, labels: Iterable[Label] = ()
    ) -> None:
        """Report an error; one inside a definition's body also shows the call that led there."""
        labels = list(labels)
        if self.call is not None and not _inside(span, self.call):
            labels.append(Label(self.call, "expanded for this call"))
        self.problems.error(code, message, span, *notes, help=help, labels=labels)


def _inside(span: Span, outer: Span) -> bool:
    return span.file is outer.file and outer.start <= span.start and span.end <= outer.end
