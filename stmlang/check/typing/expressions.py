"""From a written expression to a typed one: the rule for each kind of expression.

`infer` returns None where an error was found in the expression or in what it refers to; whoever gets None says nothing more.
"""

from __future__ import annotations

from stmlang.check.problems import Problems
from stmlang.check.typing.calls import rule_of
from stmlang.check.typing.complex_arithmetic import ratio, total
from stmlang.check.typing.complex_values import Typed
from stmlang.check.typing.context import Context
from stmlang.check.typing.lists import bare_list
from stmlang.check.typing.names import reference
from stmlang.check.typing.references import indexed
from stmlang.check.typing.scope import Budget, Scope, Site, World
from stmlang.check.typing.values import Value, combined
from stmlang.scan.expression import Number, Power
from stmlang.syntax import tree


def context_for(problems: Problems, budget: Budget, world: World, site: Site | None = None) -> Context:
    """A context in which every kind of expression can be typed."""
    return Context(problems, budget, world, infer, site)


def infer(context: Context, expression: tree.Expression, scope: Scope, depth: int) -> Typed | None:
    """The typed value of an expression that stands `depth` operations deep. To be called through `Context.type`."""
    match expression:
        case tree.Number(value=value, span=span):
            return Value(Number(value, span))
        case tree.Reference():
            return reference(context, expression, scope, depth)
        case tree.Indexed():
            return indexed(context, expression, scope, depth)
        case tree.List():
            return bare_list(context, expression)
        case tree.Call():
            return rule_of(expression, scope)(context, expression, scope, depth)
        case tree.Negate(operand=operand, span=span):
            value = context.type_any(operand, scope, depth + 1)
            return None if value is None else total(context, span, [(True, value)])
        case tree.Sum(terms=terms, span=span):
            values = context.type_all_any([term for _, term in terms], scope, depth)
            if values is None:
                return None
            return total(context, span, [(negative, value) for (negative, _), value in zip(terms, values, strict=True)])
        case tree.Product(factors=factors, span=span):
            values = context.type_all_any([factor for _, factor in factors], scope, depth)
            if values is None:
                return None
            return ratio(context, span, [(inverted, value) for (inverted, _), value in zip(factors, values, strict=True)])
        case tree.Power(base=base, exponent=exponent, span=span):
            values = context.type_all([base, exponent], scope, depth)
            if values is None:
                return None
            return context.made(combined(Power(values[0].expr, values[1].expr, span), values))
