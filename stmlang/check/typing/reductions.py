"""Functions along one index: sums, means and maxima over it, and what normalizes along it."""

from __future__ import annotations

from collections.abc import Sequence

from stmlang.check.clauses import with_index
from stmlang.check.problems import MOST_LISTED, listed
from stmlang.check.typing.arguments import arguments, resolved
from stmlang.check.typing.complex_arithmetic import cartesian
from stmlang.check.typing.complex_values import Cartesian, Typed, free_of
from stmlang.check.typing.context import Context
from stmlang.check.typing.indices import index_word
from stmlang.check.typing.scope import Scope
from stmlang.check.typing.values import Value, combined
from stmlang.check.vocabulary import ALLOWED, NORMALIZATIONS, REDUCTIONS
from stmlang.scan.expression import STATE_INDICES, STEP, WRITTEN_INDICES, Index, Normalize, Number, Reduce, ordered
from stmlang.source.advice import Advice, Edit, Rewrite, written
from stmlang.source.span import Span
from stmlang.syntax import tree


def reduction(context: Context, call: tree.Call, scope: Scope, depth: int) -> Typed | None:
    """`sum`, `mean` and `largest`: the index is gone from the result."""
    linear = call.function.text != "largest"
    operand = _along(context, call, scope, depth, required=2, any_number=linear)
    if operand is None:
        return None
    value, over = operand
    if isinstance(value, Value):
        return _reduced(context, call, value, over)
    number = cartesian(context, call.span, value)
    if number is None:
        return None
    real, imaginary = (_reduced(context, call, half, over) for half in (number.real, number.imaginary))
    return None if real is None or imaginary is None else Cartesian(real, imaginary)


def _reduced(context: Context, call: tree.Call, value: Value, over: Index) -> Value | None:
    """A reduction of a real value. One half of a complex number may lack an index that the other one has."""
    if over not in value.free:
        if call.function.text == "mean":
            return value
        if isinstance(value.expr, Number) and value.expr.value == 0:
            return value
        note = f"one of the two parts of this complex number does not depend on `{over}`"
        help = f"sum them by themselves: `complex(sum(..., over = {over}), ...)`"
        context.error("STM2016", f"a part of the argument does not depend on `{over}`", call.span, note, help=help)
        return None
    reduced = Reduce(REDUCTIONS[call.function.text], over, value.expr, call.span)  # pyright: ignore[reportArgumentType]
    return context.made(combined(reduced, [value], without=frozenset({over})))


def normalization(context: Context, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    """`softmax`, `l1norm` and `l2norm`: the index stays."""
    operand = _along(context, call, scope, depth, required=1 if call.function.text == "l2norm" else 2, any_number=False)
    if operand is None:
        return None
    value, over = operand
    assert isinstance(value, Value)
    kind = NORMALIZATIONS[call.function.text]
    return context.made(combined(Normalize(kind, over, value.expr, call.span), [value]))  # pyright: ignore[reportArgumentType]


def _along(
    context: Context, call: tree.Call, scope: Scope, depth: int, required: int, any_number: bool
) -> tuple[Typed, Index] | None:
    """The argument of a function along an index, complex if it may be any number, and that index, which must be free in it."""
    bound = arguments(context, call, ("a", "over"), required=1)
    if bound is None:
        return None
    if required == 2 and "over" not in bound:
        _over_missing(context, call, context.type_any(bound["a"], scope, depth + 1))
        return None
    value = (context.type_any if any_number else context.type)(bound["a"], scope, depth + 1)
    over = _over(context, bound["over"], scope) if "over" in bound else None
    if value is None or ("over" in bound and over is None):
        return None
    name, free = call.function.text, free_of([value])
    if over is None:
        state = ordered({index for index in free if index in STATE_INDICES})
        if len(state) != 1:
            note = f"`{name}` runs over the only state index of its argument, which has {listed(state)}"
            help = _which(call, ordered(set(free)))
            context.error("STM2017", f"`{name}` does not know what to run over", call.span, note, help=help)
            return None
        return value, state[0]
    if over not in free:
        has = f"it has {listed(ordered(set(free)))}" if free else "it has no index at all"
        note = f"`{name}` over an index that its argument lacks says nothing; {has}"
        message = f"the argument of `{name}` does not depend on `{over}`"
        context.error("STM2016", message, bound["a"].span, note, help=_other(context, name, over, bound["over"].span, value))
        return None
    if over == STEP:
        note = "the steps of a node are nodes in a row, and gates are those of one"
        context.error("STM2053", f"`{name}` cannot run over steps", bound["over"].span, note)
        return None
    return value, over


def _which(call: tree.Call, indices: Sequence[Index]) -> Advice:
    """The indices over which a function can run, each as the edit that says so."""
    name = call.function.text
    if not indices:
        return Advice(f"its argument has no index yet: give the equation one, and say `{name}(..., over = ...)`")
    words = "say over which: " + " or ".join(f"`{name}(..., over = {index})`" for index in indices)
    return Advice(words, tuple(Rewrite((_said(call, index),)) for index in indices))


def _other(context: Context, name: str, over: Index, place: Span, value: Typed) -> Advice | None:
    """What to write for an index that the argument does not have: one that it has, or the gate with that index."""
    if free := free_of([value]):
        indices = ordered(set(free))
        fixes = tuple(Rewrite((Edit(place, index),)) for index in indices)
        return Advice("write " + " or ".join(f"`{name}(..., over = {index})`" for index in indices), fixes)
    site, number = context.site, isinstance(value, Value) and isinstance(value.expr, Number)
    if site is None or number or over not in ALLOWED.get(site.gate, WRITTEN_INDICES):
        return None
    if name in REDUCTIONS:
        return Advice(
            f"a leaf has the indices of its equation: `g[{over}] = ...` is a gate that `{name}(g, over = {over})` takes"
        )
    head = with_index(site.span, over)
    return written(head.span, head.text)


def _over_missing(context: Context, call: tree.Call, value: Typed | None) -> None:
    """Report that a function is not told its index, with those that its argument has, or that its gate could bring."""
    name, site = call.function.text, context.site
    free = ordered(set(free_of([value]))) if value is not None else () if site is None else site.indices
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
    context.error("STM1030", f"`{name}` lacks `over`", call.span, help=help)


def _said(call: tree.Call, index: Index) -> Edit:
    """`over = index` behind the arguments of a call."""
    end = call.arguments[-1].span.end
    return Edit(Span(call.span.file, end, end), f", over = {index}")


def _over(context: Context, expression: tree.Expression, scope: Scope) -> Index | None:
    expression, _ = resolved(expression, scope)
    if isinstance(expression, tree.Reference):
        return index_word(context, expression.name)
    context.error("STM2001", "this is not an index", expression.span, "what stands behind `over =` is the name of an index")
    return None
