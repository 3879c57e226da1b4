"""From a written expression to a typed one: names are looked up, definitions expanded, indices worked out.

`type` returns None where an error was found in the expression or in what it refers to; whoever gets None says nothing more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from stmlang.check.modules import Definition
from stmlang.check.problems import Problems
from stmlang.check.typing import calls, references
from stmlang.check.typing.scope import NAMED_SIZE, Argument, Budget, NoNumber, Scope, Site, World
from stmlang.check.typing.values import DEEPEST, Value, combined, folded
from stmlang.check.vocabulary import ALLOWED, BUILT_IN, FEATURES, INDEX_WORDS, INPUTS, SIZES
from stmlang.scan.expression import PORT_INDICES, Number, Power, Product, Sum
from stmlang.scan.topology import is_regular
from stmlang.source.advice import Advice, written
from stmlang.source.diagnostic import Label
from stmlang.source.span import Span
from stmlang.syntax import tree

_EDGE = re.compile(r"\s*\[\s*(in|out)\s*\]")


class Typer:
    """Types expressions in one world, for one equation at a time (`site`; None for sizes and parameters)."""

    def __init__(self, problems: Problems, budget: Budget, world: World, site: Site | None = None) -> None:
        self.problems = problems
        self.budget = budget
        self.world = world
        self.site = site
        self._calls: list[Span] = []

    def type(self, expression: tree.Expression, scope: Scope, depth: int = 0) -> Value | None:
        """The typed value of an expression, None if there is an error, which has been reported."""
        if depth > DEEPEST:
            return self._too_deep(expression.span)
        if self._calls and not self._step():
            return None
        match expression:
            case tree.Number(value=value, span=span):
                return Value(Number(value, span))
            case tree.Reference():
                return self._reference(expression, scope, depth)
            case tree.Indexed():
                return references.indexed(self, expression, scope, depth)
            case tree.Call():
                return self._call(expression, scope, depth)
            case tree.Negate(operand=operand, span=span):
                value = self.type(operand, scope, depth + 1)
                return None if value is None else self.made(combined(Sum(((True, value.expr),), span), [value]))
            case tree.Sum(terms=terms, span=span):
                values = self._all([term for _, term in terms], scope, depth)
                if values is None:
                    return None
                signed = tuple((negative, value.expr) for (negative, _), value in zip(terms, values, strict=True))
                return self.made(combined(Sum(signed, span), values))
            case tree.Product(factors=factors, span=span):
                values = self._all([factor for _, factor in factors], scope, depth)
                if values is None:
                    return None
                ratio = tuple((inverted, value.expr) for (inverted, _), value in zip(factors, values, strict=True))
                return self.made(combined(Product(ratio, span), values))
            case tree.Power(base=base, exponent=exponent, span=span):
                values = self._all([base, exponent], scope, depth)
                return None if values is None else self.made(combined(Power(values[0].expr, values[1].expr, span), values))

    def _all(self, expressions: Iterable[tree.Expression], scope: Scope, depth: int) -> list[Value] | None:
        """The values of several expressions, all of which are looked at; None if any has an error."""
        values = [self.type(expression, scope, depth + 1) for expression in expressions]
        sound = [value for value in values if value is not None]
        return sound if len(sound) == len(values) else None

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

    # --- names

    def _reference(self, expression: tree.Reference, scope: Scope, depth: int) -> Value | None:
        name, span = expression.name.text, expression.span
        argument = scope.parameters.get(name)
        if argument is not None:
            return self.force(argument, depth)
        inside_own = self.site is not None and self.site.gate == name
        if name in self.world.gates and (scope.whole or name in INPUTS) and not (name in INPUTS and inside_own):
            header = self.world.gates[name]
            return None if header is None else references.gate(self, header, span)
        if name in INPUTS and self.world.constant is None:
            return references.given_input(name, span)
        if name == "pi":
            return Value(Number(math.pi, span))
        if name in self.world.numbers and (scope.whole or name in SIZES):
            return self._number(name, span)
        return self._unknown(name, span, scope)

    def force(self, argument: Argument, depth: int) -> Value | None:
        """The value of a definition's argument, typed when it is first needed."""
        if not argument.typed:
            argument.typed = True
            argument.value = self.type(argument.expression, argument.scope, depth + 1)
        return argument.value

    def _number(self, name: str, span: Span) -> Value | None:
        number = self.world.numbers[name]
        self.world.used.add(name)
        if number is NoNumber.UNBOUND:
            note = "an axis may stay without a size only where no equation uses that size"
            self.error("STM2031", f"the size of `{name}` is not known", span, note, help=f"set it from outside: {name} = 16")
        return None if isinstance(number, NoNumber) else Value(Number(float(number), span))

    def _unknown(self, name: str, span: Span, scope: Scope) -> None:
        misplaced = self._misplaced(name, span, scope)
        if misplaced is not None:
            message, note, help = misplaced
            self.error("STM1011", message, span, *([note] if note else []), help=help)
        elif name not in scope.module.missing and name not in self.world.reported:
            self.world.reported.add(name)
            notes: tuple[str, ...] = ()
            if not scope.whole:
                notes = ("a definition sees its parameters, `q`, `k`, `v` and the sizes, nothing else of a scan",)
            elif self.world.constant == NAMED_SIZE:
                notes = ("a topology with a name sees its own axes only; one in place, behind `on`, sees the scan's numbers",)
            help = self.problems.meant(name, self._visible(scope), span)
            self.error("STM1001", f"there is no `{name}` here", span, *notes, help=help)

    def _misplaced(self, name: str, span: Span, scope: Scope) -> tuple[str, str | None, str | Advice | None] | None:
        """What to say, why, and what to write where a name exists that does not stand for a value here."""
        if self.world.constant is not None and (name in INPUTS or name in FEATURES):
            return f"`{name}` differs from node to node", f"{self.world.constant} is a number", None
        if name in FEATURES:
            note = "features have no size that a spec knows; learned weights map them to a gate's indices"
            return (
                f"`{name}` stands outside of `linear`",
                note,
                written(span, "linear(x)") if name == "x" else self._edge_features(span),
            )
        if name in INDEX_WORDS:
            return f"`{name}` is an index, not a value", "an index stands in square brackets, or behind `over =`", None
        if name == "eye":
            return "`eye` needs its two indices", None, written(span, "eye[key, key']")
        if name in BUILT_IN or isinstance(scope.module.names.get(name), Definition):
            arguments = "out" if name == "degree" else "..."
            return f"`{name}` is a function", None, f"call it: `{name}({arguments})`"
        return None

    def _edge_features(self, span: Span) -> str:
        """How the features of edges are read: along the index that was written, or else that the equation has or can have."""
        if self.world.topology is not None and is_regular(self.world.topology):
            return "write `linear(x)`: the edges of chains and grids have no features"
        index = _EDGE.match(span.file.text, span.end)
        allowed = () if self.site is None else (*self.site.indices, *ALLOWED.get(self.site.gate, ()))
        word = index[1] if index else next((index for index in allowed if index in PORT_INDICES), "out")
        return f"write `linear(x, e[{word}])`"

    def _visible(self, scope: Scope) -> Iterator[str]:
        """The names that a reference can have in a scope."""
        inputs = () if self.world.constant else (*INPUTS, "pi")
        whole = (self.world.gates, self.world.numbers) if scope.whole else (SIZES,)
        return chain(scope.parameters, *whole, inputs)

    # --- calls

    def _call(self, call: tree.Call, scope: Scope, depth: int) -> Value | None:
        name = call.function.text
        if name in calls.BUILT_IN_CALLS:
            return calls.BUILT_IN_CALLS[name](self, call, scope, depth)
        definition = scope.module.names.get(name)
        if isinstance(definition, Definition):
            return self._expand(definition, call, scope, depth)
        if not scope.module.unknown(name) and f"{name}(" not in self.world.reported:
            self.world.reported.add(f"{name}(")
            help = self.problems.called(name, chain(scope.module.functions(), BUILT_IN), call.function.span)
            if name in self.world.gates or name in scope.parameters:
                self.error(
                    "STM1011", f"`{name}` is not a function", call.function.span, help=f"write `{name}`, or `{name}[...]`"
                )
            else:
                self.error("STM1002", f"there is no function `{name}`", call.function.span, help=help)
        for argument in call.arguments:  # what is wrong inside is wrong whatever the function
            if argument.name is None and not isinstance(argument.value, tree.Reference):
                self.type(argument.value, scope, depth + 1)
        return None

    def _expand(self, definition: Definition, call: tree.Call, scope: Scope, depth: int) -> Value | None:
        names = definition.parameters
        bound = calls.arguments(self, call, names, required=len(names))
        if bound is None or not definition.sound:
            return None
        parameters = {name: Argument(expression, scope) for name, expression in bound.items()}
        self._calls.append(call.span)
        value = self.type(definition.item.value, Scope(definition.module, parameters, whole=False), depth + 1)
        self._calls.pop()
        # What a definition made is the call's as far as the reader of a message is concerned.
        return None if value is None else replace(value, expr=replace(value.expr, span=call.span))

    # --- limits and errors

    def _step(self) -> bool:
        self.budget.steps -= 1
        if self.budget.steps < 0:
            self.too_large(self._calls[0])
        return not self.budget.spent

    def too_large(self, span: Span) -> None:
        """Report, once, that definitions expand to too much."""
        if not self.budget.spent:
            self.budget.spent = True
            note = "definitions are expanded where they are called, up to 100,000 operations in a file"
            self.problems.error("STM2027", "definitions expand to too much here", self._calls[0] if self._calls else span, note)

    def _too_deep(self, span: Span) -> None:
        self.error("STM2026", "operations nest too deeply here", span, f"at most {DEEPEST} deep, definitions expanded")

    def error(
        self, code: str, message: str, span: Span, *notes: str, help: str | Advice | None = None, labels: Iterable[Label] = ()
    ) -> None:
        """Report an error; one inside a definition's body also shows the call that led there."""
        labels = list(labels)
        if self._calls and not _inside(span, self._calls[0]):
            labels.append(Label(self._calls[0], "expanded for this call"))
        self.problems.error(code, message, span, *notes, help=help, labels=labels)


def _inside(span: Span, outer: Span) -> bool:
    return span.file is outer.file and outer.start <= span.start and span.end <= outer.end
