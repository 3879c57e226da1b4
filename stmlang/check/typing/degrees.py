"""`degree(out)` and `degree(in)`: how many edges leave a node, and enter it."""

from __future__ import annotations

from stmlang.check.definitions import subexpressions
from stmlang.check.modules import Definition
from stmlang.check.typing.arguments import arguments, resolved
from stmlang.check.typing.context import Context
from stmlang.check.typing.indices import index_word
from stmlang.check.typing.scope import Scope
from stmlang.check.typing.values import Value
from stmlang.scan.expression import Degree, Number
from stmlang.scan.topology import is_regular, ports
from stmlang.syntax import tree


def degree(context: Context, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    """`degree(out)`: on chains and grids the number of ports."""
    del depth
    bound = arguments(context, call, ("over",), required=1)
    if context.site is None:
        what = context.world.constant or "a constant"
        context.error("STM1011", "`degree` differs from node to node", call.span, f"{what} is a number")
        return None
    if bound is None:
        return None
    expression, _ = resolved(bound["over"], scope)
    if not isinstance(expression, tree.Reference):
        context.error("STM2001", "this is not an index", expression.span, help="write `degree(out)` or `degree(in)`")
        return None
    over = index_word(context, expression.name)
    topology = context.world.topology
    if over is None or topology is None:
        return None
    if over not in ("out", "in"):
        note = "`degree(out)` counts the edges that leave a node, `degree(in)` those that enter it"
        context.error("STM2040", f"`{over}` has no edges to count", bound["over"].span, note)
        return None
    if is_regular(topology):
        return Value(Number(float(len(ports(topology))), call.span), degrees=True)
    return Value(Degree(over, call.span), degrees=True)


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
