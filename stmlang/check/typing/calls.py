"""Calls: the rule for each built-in function, the expansion of definitions, and functions that there are not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from stmlang.check.modules import Definition
from stmlang.check.problems import listed
from stmlang.check.typing.arguments import arguments, counted
from stmlang.check.typing.complex_arithmetic import applied, cartesian, conjugated, exponential, modulus
from stmlang.check.typing.complex_values import Cartesian, Complex, Form, Polar, Typed, respanned
from stmlang.check.typing.context import Context
from stmlang.check.typing.degrees import degree, neighbour
from stmlang.check.typing.leaves import leaf
from stmlang.check.typing.reductions import normalization, reduction
from stmlang.check.typing.scope import Argument, Scope
from stmlang.check.typing.values import Value, combined
from stmlang.check.vocabulary import BUILT_IN, ELEMENTWISE, LEAVES, NORMALIZATIONS, REDUCTIONS
from stmlang.scan.expression import Apply, Function, Split, Spread
from stmlang.scan.topology import is_regular, ports
from stmlang.source.span import Span
from stmlang.syntax import tree

Rule = Callable[[Context, tree.Call, Scope, int], Typed | None]

_PARAMETERS: dict[Function, tuple[str, ...]] = {
    Function.MINIMUM: ("a", "b"),
    Function.MAXIMUM: ("a", "b"),
    Function.CLIP: ("a", "low", "high"),
}


def rule_of(call: tree.Call, scope: Scope) -> Rule:
    """What types a call: a built-in function, a definition, or else the refusal of a function that there is not."""
    name = call.function.text
    if name in _BUILT_IN_RULES:
        return _BUILT_IN_RULES[name]
    return _expand if isinstance(scope.module.names.get(name), Definition) else _unknown


def _expand(context: Context, call: tree.Call, scope: Scope, depth: int) -> Typed | None:
    """A definition's body with the call's arguments for its parameters."""
    definition = scope.module.names[call.function.text]
    assert isinstance(definition, Definition)
    names = definition.parameters
    bound = arguments(context, call, names, required=len(names))
    if bound is None or not definition.sound:
        return None
    body = Scope(definition.module, {name: Argument(expression, scope) for name, expression in bound.items()}, whole=False)
    value = context.expanding(call.span).type_any(definition.item.value, body, depth + 1)
    # What a definition made is the call's as far as the reader of a message is concerned.
    return None if value is None else respanned(value, call.span)


def _unknown(context: Context, call: tree.Call, scope: Scope, depth: int) -> None:
    """Report, once for each name, that there is no such function."""
    name = call.function.text
    if not scope.module.unknown(name) and f"{name}(" not in context.world.reported:
        context.world.reported.add(f"{name}(")
        help = context.problems.called(name, chain(scope.module.functions(), BUILT_IN), call.function.span)
        if name in context.world.gates or name in scope.parameters:
            help = f"write `{name}`, or `{name}[...]`"
            context.error("STM1011", f"`{name}` is not a function", call.function.span, help=help)
        else:
            context.error("STM1002", f"there is no function `{name}`", call.function.span, help=help)
    for argument in call.arguments:  # what is wrong inside is wrong whatever the function
        if argument.name is None and not isinstance(argument.value, tree.Reference):
            context.type_any(argument.value, scope, depth + 1)


def _elementwise(context: Context, call: tree.Call, scope: Scope, depth: int) -> Typed | None:
    function = ELEMENTWISE[call.function.text]
    names = _PARAMETERS.get(function, ("a",))
    bound = arguments(context, call, names, required=len(names))
    if bound is None:
        return None
    if function in OF_COMPLEX:
        value = context.type_any(bound["a"], scope, depth + 1)
        if not isinstance(value, Value):
            return None if value is None else OF_COMPLEX[function](context, call.span, value)
        return applied(context, call.span, function, value)
    values = context.type_all([bound[name] for name in names], scope, depth)
    if values is None:
        return None
    return context.made(combined(Apply(function, tuple(value.expr for value in values), call.span), values))


# --- complex numbers


OF_COMPLEX: dict[Function, Callable[[Context, Span, Complex], Typed | None]] = {
    Function.EXP: exponential,
    Function.ABS: modulus,
}
"""Elementwise functions that take complex numbers too."""


def _made_complex(context: Context, call: tree.Call, scope: Scope, depth: int) -> Complex | None:
    """`polar(radius, angle)` and `complex(real, imaginary)`."""
    polar = call.function.text == "polar"
    names = (Form.POLAR if polar else Form.CARTESIAN).halves
    bound = arguments(context, call, names, required=2)
    values = None if bound is None else context.type_all([bound[name] for name in names], scope, depth)
    if context.site is None:
        what = context.world.constant or "a constant"
        context.error("STM1011", f"`{call.function.text}` makes a complex number", call.span, f"{what} is a real number")
        return None
    if values is None:
        return None
    first, second = values
    return Polar(first, second) if polar else Cartesian(first, second)


def _conjugate(context: Context, call: tree.Call, scope: Scope, depth: int) -> Typed | None:
    value = _only(context, call, scope, depth)
    return value if value is None or isinstance(value, Value) else conjugated(context, call.span, value)


def _part(context: Context, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    """`real(a)` and `imaginary(a)`."""
    value = _only(context, call, scope, depth)
    number = None if value is None else cartesian(context, call.span, value)
    return None if number is None else number.real if call.function.text == "real" else number.imaginary


def _only(context: Context, call: tree.Call, scope: Scope, depth: int) -> Typed | None:
    """The argument of a function of one complex number."""
    bound = arguments(context, call, ("a",), required=1)
    return None if bound is None else context.type_any(bound["a"], scope, depth + 1)


# --- split


def _split(context: Context, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    named = [argument for argument in call.arguments if argument.name is not None]
    if named:
        context.error("STM1031", "`split` has no named arguments", named[0].span, help="write `split(a, b, ...)`")
        return None
    values = context.type_all([argument.value for argument in call.arguments], scope, depth)
    if not _splittable(context, call) or values is None:
        return None
    for value, argument in zip(values, call.arguments, strict=True):
        if "out" in value.free:
            note = "`split` makes the index `out`; its arguments say where to cut and may not depend on it"
            context.error("STM2019", "an argument of `split` depends on `out`", argument.span, note)
            return None
    shares = Split(tuple(value.expr for value in values), call.span)
    return context.made(combined(shares, values, extra=frozenset({"out"})))


def _splittable(context: Context, call: tree.Call) -> bool:
    topology = context.world.topology
    if context.world.constant is not None:
        context.error("STM1011", "`split` has an index", call.span, f"{context.world.constant} is a number")
        return False
    if topology is None:
        return False
    names = [port.name for port in ports(topology)]
    if not is_regular(topology):
        note = "`split` gives each port its part; here a node has any number of edges of one port"
        help = "write `softmax(linear(x, e[out]), over = out)`"
        context.error("STM2019", "`split` needs a chain or a grid", call.span, note, help=help)
        return False
    if len(call.arguments) != len(names) - 1:
        note = f"one argument fewer than there are ports, which are {listed(names)}: the last port gets what is left"
        wrong = f"`split` takes {counted(len(names) - 1)} here, not {len(call.arguments)}"
        context.error("STM2020", wrong, call.span, note)
        return False
    return True


def _spread(context: Context, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    """A fixed number for each head."""
    if context.site is None:
        what = context.world.constant or "a constant"
        context.error("STM1011", "`spread` has a value for each head", call.span, f"{what} is one number")
        return None
    bound = arguments(context, call, ("low", "high"), required=2)
    if bound is None:
        return None
    low, high = (context.constant(bound[end], scope, depth, "an end of `spread`") for end in ("low", "high"))
    return None if low is None or high is None else Value(Spread(low, high, call.span))


_BUILT_IN_RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(REDUCTIONS, reduction),
    **dict.fromkeys(NORMALIZATIONS, normalization),
    **dict.fromkeys(LEAVES, leaf),
    "polar": _made_complex,
    "complex": _made_complex,
    "conjugate": _conjugate,
    "real": _part,
    "imaginary": _part,
    "split": _split,
    "spread": _spread,
    "degree": degree,
    "neighbour": neighbour,
}
