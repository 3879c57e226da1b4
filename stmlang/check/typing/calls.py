"""Calls of built-in functions: their arguments, their indices, their typed form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from stmlang.check.clauses import with_index
from stmlang.check.problems import MOST_LISTED, listed
from stmlang.check.typing import degrees, leaves
from stmlang.check.typing.references import index_word
from stmlang.check.typing.scope import Scope
from stmlang.check.typing.values import Value, combined
from stmlang.check.vocabulary import ALLOWED, ELEMENTWISE, LEAVES, NORMALIZATIONS, REDUCTIONS
from stmlang.scan.expression import INDICES, PORT_INDICES, Apply, Function, Index, Normalize, Number, Reduce, Split, ordered
from stmlang.scan.topology import is_regular, ports
from stmlang.source.advice import Advice, Edit, Rewrite, replaced, written
from stmlang.source.span import Span
from stmlang.syntax import tree

if TYPE_CHECKING:
    from stmlang.check.typing.expressions import Typer

Handler = Callable[["Typer", tree.Call, Scope, int], Value | None]

_USAGE = {
    "linear": "x, bias = 0, weight = 0.5",
    **dict.fromkeys((*REDUCTIONS, *NORMALIZATIONS), "a, over = ..."),
    "degree": "out",
}
"""What stands in the brackets of a call where that is not just the names of its parameters."""

_PARAMETERS: dict[Function, tuple[str, ...]] = {
    Function.MINIMUM: ("a", "b"),
    Function.MAXIMUM: ("a", "b"),
    Function.CLIP: ("a", "low", "high"),
}


def arguments(typer: Typer, call: tree.Call, names: Sequence[str], required: int) -> dict[str, tree.Expression] | None:
    """The arguments of a call by the names of its function's parameters, given by place or by name; None after an error."""
    name = call.function.text
    bound: dict[str, tree.Expression] = {}
    usage = _usage(name, names)
    for place, argument in enumerate(call.arguments):
        if argument.name is None and place >= len(names):
            wrong = f"`{name}` takes {_count(len(names))}, not {len(call.arguments)}"
            typer.error("STM1030", wrong, argument.span, help=f"write {usage}")
            return None
        parameter = names[place] if argument.name is None else argument.name.text
        if parameter not in names:
            note = f"its arguments are {listed(names)}"
            assert argument.name is not None
            at = argument.name.span
            help = _argument_help(name, parameter, at) or typer.problems.near(parameter, names, "{} = ...", at=at)
            typer.error("STM1031", f"`{name}` has no argument `{parameter}`", argument.span, note, help=help)
            return None
        if parameter in bound:
            typer.error("STM1031", f"`{name}` is given `{parameter}` twice", argument.span, f"it is used as {usage}")
            return None
        bound[parameter] = argument.value
    missing = (parameter for parameter in names[:required] if parameter not in bound)
    if (first := next(missing, None)) is not None:
        typer.error(
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


def _count(number: int) -> str:
    return ("no arguments", "one argument")[number] if number < 2 else f"{number} arguments"


def _elementwise(typer: Typer, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    function = ELEMENTWISE[call.function.text]
    names = _PARAMETERS.get(function, ("a",))
    bound = arguments(typer, call, names, required=len(names))
    if bound is None:
        return None
    values = [typer.type(bound[name], scope, depth + 1) for name in names]
    sound = [value for value in values if value is not None]
    if len(sound) < len(values):
        return None
    return typer.made(combined(Apply(function, tuple(value.expr for value in sound), call.span), sound))


# --- along one index


def _reduction(typer: Typer, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    found = _along(typer, call, scope, depth, required=2)
    if found is None:
        return None
    value, over = found
    kind = REDUCTIONS[call.function.text]
    reduced = Reduce(kind, over, value.expr, call.span)  # pyright: ignore[reportArgumentType]
    return typer.made(combined(reduced, [value], without=frozenset({over})))


def _normalization(typer: Typer, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    found = _along(typer, call, scope, depth, required=1 if call.function.text == "l2norm" else 2)
    if found is None:
        return None
    value, over = found
    kind = NORMALIZATIONS[call.function.text]
    return typer.made(combined(Normalize(kind, over, value.expr, call.span), [value]))  # pyright: ignore[reportArgumentType]


def _along(typer: Typer, call: tree.Call, scope: Scope, depth: int, required: int) -> tuple[Value, Index] | None:
    """The argument of a function along an index, and that index, which must be free in it."""
    bound = arguments(typer, call, ("a", "over"), required=1)
    if bound is None:
        return None
    if required == 2 and "over" not in bound:
        _over_missing(typer, call, typer.type(bound["a"], scope, depth + 1))
        return None
    value = typer.type(bound["a"], scope, depth + 1)
    over = _over(typer, bound["over"], scope) if "over" in bound else None
    if value is None or ("over" in bound and over is None):
        return None
    name = call.function.text
    if over is None:
        state = ordered({index for index in value.free if index not in PORT_INDICES})
        if len(state) != 1:
            note = f"`{name}` runs over the only state index of its argument, which has {listed(state)}"
            help = _which(call, ordered(set(value.free)))
            typer.error("STM2017", f"`{name}` does not know what to run over", call.span, note, help=help)
            return None
        return value, state[0]
    if over not in value.free:
        has = f"it has {listed(ordered(set(value.free)))}" if value.free else "it has no index at all"
        note = f"`{name}` over an index that its argument lacks says nothing; {has}"
        message = f"the argument of `{name}` does not depend on `{over}`"
        typer.error("STM2016", message, bound["a"].span, note, help=_other(typer, name, over, bound["over"].span, value))
        return None
    return value, over


def _which(call: tree.Call, indices: Sequence[Index]) -> Advice:
    """The indices over which a function can run, each as the edit that says so."""
    name = call.function.text
    if not indices:
        return Advice(f"its argument has no index yet: give the equation one, and say `{name}(..., over = ...)`")
    words = "say over which: " + " or ".join(f"`{name}(..., over = {index})`" for index in indices)
    return Advice(words, tuple(Rewrite((_said(call, index),)) for index in indices))


def _other(typer: Typer, name: str, over: Index, place: Span, value: Value) -> Advice | None:
    """What to write for an index that the argument does not have: one that it has, or the gate with that index."""
    if value.free:
        indices = ordered(set(value.free))
        fixes = tuple(Rewrite((Edit(place, index),)) for index in indices)
        return Advice("write " + " or ".join(f"`{name}(..., over = {index})`" for index in indices), fixes)
    site = typer.site
    if site is None or over not in ALLOWED.get(site.gate, INDICES) or isinstance(value.expr, Number):
        return None
    if name in REDUCTIONS:
        return Advice(
            f"a leaf has the indices of its equation: `g[{over}] = ...` is a gate that `{name}(g, over = {over})` takes"
        )
    head = with_index(site.span, over)
    return written(head.span, head.text)


def _over_missing(typer: Typer, call: tree.Call, value: Value | None) -> None:
    """Report that a function is not told its index, with those that its argument has, or that its gate could bring."""
    name, site = call.function.text, typer.site
    free = ordered(set(value.free)) if value is not None else () if site is None else site.indices
    fixes = tuple(Rewrite((_said(call, index),)) for index in free)
    if free:
        help = Advice("write " + " or ".join(f"`{name}(..., over = {index})`" for index in free[:MOST_LISTED]), fixes)
    elif site is not None and site.gate in ALLOWED:
        missing: list[Index] = [index for index in ALLOWED[site.gate] if index not in site.indices]
        index = missing[0] if missing else "key"
        head = with_index(site.span, index)
        words = f"its argument has no index yet: write `{head.text} = ... {name}(..., over = {index})`"
        help = Advice(words, (Rewrite((head, _said(call, index))),))
    else:
        help = Advice(f"its argument has no index yet: give the equation one, and say `{name}(..., over = ...)`")
    typer.error("STM1030", f"`{name}` lacks `over`", call.span, help=help)


def _said(call: tree.Call, index: Index) -> Edit:
    """`over = index` behind the arguments of a call."""
    end = call.arguments[-1].span.end
    return Edit(Span(call.span.file, end, end), f", over = {index}")


def _over(typer: Typer, expression: tree.Expression, scope: Scope) -> Index | None:
    expression, _ = leaves.resolved(expression, scope)
    if isinstance(expression, tree.Reference):
        return index_word(typer, typer.world, expression.name)
    typer.error("STM2001", "this is not an index", expression.span, "what stands behind `over =` is the name of an index")
    return None


# --- split


def _split(typer: Typer, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    named = [argument for argument in call.arguments if argument.name is not None]
    if named:
        typer.error("STM1031", "`split` has no named arguments", named[0].span, help="write `split(a, b, ...)`")
        return None
    values = [typer.type(argument.value, scope, depth + 1) for argument in call.arguments]
    sound = [value for value in values if value is not None]
    if not _splittable(typer, call) or len(sound) < len(values):
        return None
    for value, argument in zip(sound, call.arguments, strict=True):
        if "out" in value.free:
            note = "`split` makes the index `out`; its arguments say where to cut and may not depend on it"
            typer.error("STM2019", "an argument of `split` depends on `out`", argument.span, note)
            return None
    parts = Split(tuple(value.expr for value in sound), call.span)
    return typer.made(combined(parts, sound, extra=frozenset({"out"})))


def _splittable(typer: Typer, call: tree.Call) -> bool:
    topology = typer.world.topology
    if typer.world.constant is not None:
        typer.error("STM1011", "`split` has an index", call.span, f"{typer.world.constant} is a number")
        return False
    if topology is None:
        return False
    names = [port.name for port in ports(topology)]
    if not is_regular(topology):
        note = "`split` gives each port its part; here a node has any number of edges of one port"
        help = "write `softmax(linear(x, e[out]), over = out)`"
        typer.error("STM2019", "`split` needs a chain or a grid", call.span, note, help=help)
        return False
    if len(call.arguments) != len(names) - 1:
        note = f"one argument fewer than there are ports, which are {listed(names)}: the last port gets what is left"
        wrong = f"`split` takes {_count(len(names) - 1)} here, not {len(call.arguments)}"
        typer.error("STM2020", wrong, call.span, note)
        return False
    return True


def _spread(typer: Typer, call: tree.Call, scope: Scope, depth: int) -> None:
    del scope, depth
    note = "`spread(low, high)` says where learned numbers start, one value for each head"
    help = "it stands in `linear(..., bias = spread(-2, 2))` and in `param(spread(-2, 2))`"
    typer.error("STM1011", "`spread` is not a value", call.span, note, help=help)


def _leaf(typer: Typer, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    return leaves.leaf(typer, call, scope, depth)


def _degree(typer: Typer, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    del depth
    return degrees.degree(typer, call, scope)


BUILT_IN_CALLS: dict[str, Handler] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(NORMALIZATIONS, _normalization),
    **dict.fromkeys(LEAVES, _leaf),
    "split": _split,
    "spread": _spread,
    "degree": _degree,
}
