"""`degree(out)` and `degree(in)`, how many edges leave a node, and enter it, and whether one comes from a node."""

from __future__ import annotations

from typing import Literal

from stmlang.check.definitions import subexpressions
from stmlang.check.modules import Definition
from stmlang.check.typing.arguments import arguments, resolved
from stmlang.check.typing.context import Context
from stmlang.check.typing.indices import index_word
from stmlang.check.typing.scope import Scope
from stmlang.check.typing.values import Value
from stmlang.scan.expression import Degree, Neighbour, Number
from stmlang.scan.topology import is_regular, ports
from stmlang.syntax import tree


def degree(context: Context, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    """`degree(out)`: on chains and grids the number of ports."""
    del depth
    over, topology = _edges(context, call, scope), context.world.topology
    if over is None or topology is None:
        return None
    if is_regular(topology):
        return Value(Number(float(len(ports(topology))), call.span), degrees=True)
    return Value(Degree(over, call.span), degrees=True)


def neighbour(context: Context, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    """`neighbour(in)`: whether an edge comes from a node."""
    del depth
    over = _edges(context, call, scope)
    return None if over is None else Value(Neighbour(over, call.span), frozenset({over}))


def _edges(context: Context, call: tree.Call, scope: Scope) -> Literal["out", "in"] | None:
    """The edges that a function of an index is about."""
    name = call.function.text
    bound = arguments(context, call, ("over",), required=1)
    if context.site is None:
        what = context.world.constant or "a constant"
        context.error("STM1011", f"`{name}` differs from node to node", call.span, f"{what} is a number")
        return None
    if bound is None:
        return None
    expression, _ = resolved(bound["over"], scope)
    if not isinstance(expression, tree.Reference):
        context.error("STM2001", "this is not an index", expression.span, help=f"write `{name}(out)` or `{name}(in)`")
        return None
    over = index_word(context, expression.name)
    if over is None:
        return None
    if over not in ("out", "in"):
        note, lacks = "`degree(out)` counts the edges that leave a node, `degree(in)` those that enter it", "edges to count"
        if name == "neighbour":
            note, lacks = (
                "`neighbour(out)` is about edges that leave a node, `neighbour(in)` about those that enter it",
                "edges",
            )
        context.error("STM2040", f"`{over}` has no {lacks}", bound["over"].span, note)
        return None
    return over


def written_in(expression: tree.Expression, scope: Scope) -> bool:
    """Whether an expression calls `degree`, itself or through definitions."""
    stack, followed = [(expression, scope)], set[int]()
    while stack:
        top, where = stack.pop()
        for inner in subexpressions(top):
            match inner:
                case tree.Call(function=tree.Name(text="degree")):
                    return True
                case tree.Call(function=function):
                    definition = where.module.names.get(function.text)
                    if isinstance(definition, Definition) and id(definition) not in followed:
                        followed.add(id(definition))
                        stack.append((definition.item.value, Scope(definition.module)))
                case tree.Reference(name=name) if (argument := where.parameters.get(name.text)) is not None:
                    stack.append((argument.expression, argument.scope))
                case _:
                    pass
    return False
