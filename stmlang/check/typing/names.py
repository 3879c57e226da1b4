"""A name that stands for a value: an argument of a definition, a gate, an input, a number; or what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import chain

from stmlang.check.modules import Definition
from stmlang.check.typing.complex_values import Typed
from stmlang.check.typing.context import Context
from stmlang.check.typing.references import gate_reference, input_reference
from stmlang.check.typing.scope import NAMED_SIZE, Argument, NoNumber, Scope
from stmlang.check.typing.values import Value
from stmlang.check.vocabulary import ALLOWED, BUILT_IN, FEATURES, INDEX_WORDS, INPUTS, SIZES, TERM_SIZES
from stmlang.scan.expression import PORT_INDICES, Number
from stmlang.scan.topology import is_regular
from stmlang.source.advice import Advice, written
from stmlang.source.span import Span
from stmlang.syntax import tree

_EDGE = re.compile(r"\s*\[\s*(in|out)\s*\]")


def reference(context: Context, expression: tree.Reference, scope: Scope, depth: int) -> Typed | None:
    """What a name stands for where it is written; None after an error."""
    name, span = expression.name.text, expression.span
    argument = scope.parameters.get(name)
    if argument is not None:
        return _force(context, argument, depth)
    inside_own = context.site is not None and context.site.gate == name
    if name in context.world.gates and (scope.whole or name in INPUTS) and not (name in INPUTS and inside_own):
        header = context.world.gates[name]
        return None if header is None else gate_reference(context, header, span)
    if name in INPUTS and context.world.constant is None:
        return input_reference(context, name, span)
    if name == "pi":
        return Value(Number(math.pi, span))
    if name in context.world.numbers and (scope.whole or name in SIZES):
        return _number(context, name, span)
    return _unknown(context, name, span, scope)


def _force(context: Context, argument: Argument, depth: int) -> Typed | None:
    """The value of a definition's argument, typed when it is first needed."""
    if not argument.typed:
        argument.typed = True
        argument.value = context.type_any(argument.expression, argument.scope, depth + 1)
    return argument.value


def _number(context: Context, name: str, span: Span) -> Value | None:
    number = context.world.numbers[name]
    context.world.used.add(name)
    if number is NoNumber.UNBOUND:
        note = "an axis may stay without a size only where no equation uses that size"
        context.error("STM2031", f"the size of `{name}` is not known", span, note, help=f"set it from outside: {name} = 16")
    return None if isinstance(number, NoNumber) else Value(Number(float(number), span))


def _unknown(context: Context, name: str, span: Span, scope: Scope) -> None:
    misplaced = _misplaced(context, name, span, scope)
    if misplaced is not None:
        message, note, help = misplaced
        context.error("STM1011", message, span, *([note] if note else []), help=help)
    elif name not in scope.module.missing and name not in context.world.reported:
        context.world.reported.add(name)
        notes: tuple[str, ...] = ()
        if not scope.whole:
            notes = ("a definition sees its parameters, `q`, `k`, `v` and the sizes, nothing else of a scan",)
        elif context.world.constant == NAMED_SIZE:
            notes = ("a topology with a name sees its own axes only; one in place, behind `on`, sees the scan's numbers",)
        help = context.problems.meant(name, _visible(context, scope), span)
        context.error("STM1001", f"there is no `{name}` here", span, *notes, help=help)


def _misplaced(context: Context, name: str, span: Span, scope: Scope) -> tuple[str, str | None, str | Advice | None] | None:
    """What to say, why, and what to write where a name exists that does not stand for a value here."""
    if context.world.constant is not None and (name in INPUTS or name in FEATURES):
        return f"`{name}` differs from node to node", f"{context.world.constant} is a number", None
    if name in FEATURES:
        note = "features have no size that a spec knows; learned weights map them to a gate's indices"
        return (
            f"`{name}` stands outside of `linear`",
            note,
            written(span, "linear(x)") if name == "x" else _edge_features(context, span),
        )
    if name in INDEX_WORDS:
        return f"`{name}` is an index, not a value", "an index stands in square brackets, or behind `over =`", None
    if name == "eye":
        return "`eye` needs its two indices", None, written(span, "eye[key, key']")
    if name in BUILT_IN or isinstance(scope.module.names.get(name), Definition):
        arguments = "out" if name in ("degree", "neighbour") else "..."
        return f"`{name}` is a function", None, f"call it: `{name}({arguments})`"
    return None


def _edge_features(context: Context, span: Span) -> str:
    """How the features of edges are read: along the index that was written, or else that the equation has or can have."""
    if context.world.topology is not None and is_regular(context.world.topology):
        return "write `linear(x)`: the edges of chains and grids have no features"
    index = _EDGE.match(span.file.text, span.end)
    allowed = () if context.site is None else (*context.site.indices, *ALLOWED.get(context.site.gate, ()))
    word = index[1] if index else next((index for index in allowed if index in PORT_INDICES), "out")
    return f"write `linear(x, e[{word}])`"


def _visible(context: Context, scope: Scope) -> Iterator[str]:
    """The names that a reference can have in a scope."""
    inputs = () if context.world.constant else (*INPUTS, "pi")
    sizes = [name for name in SIZES if name not in TERM_SIZES.values() or name in context.world.numbers]
    whole = (context.world.gates, context.world.numbers) if scope.whole else (sizes,)
    return chain(scope.parameters, *whole, inputs)
