"""The arguments of a call: which is which, and what a definition was given for one of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from stmlang.check.problems import MOST_LISTED, listed
from stmlang.check.typing.context import Context
from stmlang.check.typing.scope import Scope
from stmlang.check.vocabulary import NORMALIZATIONS, REDUCTIONS
from stmlang.source.advice import Advice, replaced, written
from stmlang.source.span import Span
from stmlang.syntax import tree

_USAGE = {
    "linear": "x, bias = 0, weight = 0.5",
    **dict.fromkeys((*REDUCTIONS, *NORMALIZATIONS), "a, over = ..."),
    "degree": "out",
    "neighbour": "in",
}
"""What stands in the brackets of a call where that is not just the names of its parameters."""


def arguments(context: Context, call: tree.Call, names: Sequence[str], required: int) -> dict[str, tree.Expression] | None:
    """The arguments of a call by the names of its function's parameters, given by place or by name; None after an error."""
    name = call.function.text
    bound: dict[str, tree.Expression] = {}
    usage = _usage(name, names)
    for place, argument in enumerate(call.arguments):
        if argument.name is None and place >= len(names):
            wrong = f"`{name}` takes {counted(len(names))}, not {len(call.arguments)}"
            context.error("STM1030", wrong, argument.span, help=f"write {usage}")
            return None
        parameter = names[place] if argument.name is None else argument.name.text
        if parameter not in names:
            note = f"its arguments are {listed(names)}"
            assert argument.name is not None
            at = argument.name.span
            help = _argument_help(name, parameter, at) or context.problems.near(parameter, names, "{} = ...", at=at)
            context.error("STM1031", f"`{name}` has no argument `{parameter}`", argument.span, note, help=help)
            return None
        if parameter in bound:
            context.error("STM1031", f"`{name}` is given `{parameter}` twice", argument.span, f"it is used as {usage}")
            return None
        bound[parameter] = argument.value
    missing = (parameter for parameter in names[:required] if parameter not in bound)
    if (first := next(missing, None)) is not None:
        context.error(
            "STM1030", f"`{name}` lacks {listed([first, *islice(missing, MOST_LISTED)])}", call.span, help=f"write {usage}"
        )
        return None
    return bound


def _usage(name: str, names: Sequence[str]) -> str:
    """How a function is called."""
    shown = names if len(names) <= MOST_LISTED else [*names[:MOST_LISTED], "..."]
    return f"`{name}({_USAGE.get(name, ', '.join(shown))})`"


def _argument_help(function: str, argument: str, at: Span) -> str | Advice | None:
    match function, argument:
        case "param", "initial" | "init" | "value":
            return written(at, "start")
        case "linear", "initial" | "init" | "start" | "offset":
            return replaced("the learned bias starts at `bias = ...`", at, "bias")
        case "linear", "scale" | "std" | "gain":
            return replaced("the spread of the weights is `weight = ...`", at, "weight")
        case _, "axis" | "dim" | "along" if function in (*REDUCTIONS, *NORMALIZATIONS):
            return replaced("write `over = ...`, with the name of an index", at, "over")
        case "given", "min" | "lower":
            return written(at, "low")
        case "given", "max" | "upper":
            return written(at, "high")
        case "max", "over":
            return "the largest value over an index is `largest(..., over = ...)`; `max(a, b)` takes the larger of two"
        case "min", "over":
            return "the smallest value over an index is `-largest(-..., over = ...)`; `min(a, b)` takes the smaller of two"
        case "degree", "out" | "in":
            return f"edges of all ports are counted together: write `degree({argument})`"
        case _:
            return None


def counted(number: int) -> str:
    """How many arguments, in words."""
    return ("no arguments", "one argument")[number] if number < 2 else f"{number} arguments"


def resolved(expression: tree.Expression, scope: Scope) -> tuple[tree.Expression, Scope]:
    """What a definition's parameter was called with, through any number of calls; anything else is itself."""
    while isinstance(expression, tree.Reference) and expression.name.text in scope.parameters:
        argument = scope.parameters[expression.name.text]
        expression, scope = argument.expression, argument.scope
    return expression, scope
