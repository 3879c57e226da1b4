"""From the symbols of a grammar rule to a node of the tree, bottom-up: one function a rule of `stm.lark`.

A function gets the file and the values of the rule's symbols in order, tokens of every sign included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stmlang.source.span import SourceFile, Span
from stmlang.syntax import tree
from stmlang.syntax.lexer import Token

Values = list[Any]
Builder = Callable[[SourceFile, Values], Any]


def _start(value: Any) -> int:
    return value.start if isinstance(value, Token) else value.span.start


def _end(value: Any) -> int:
    return value.end if isinstance(value, Token) else value.span.end


def _span(file: SourceFile, values: Values) -> Span:
    """From the beginning of the first value to the end of the last."""
    return Span(file, _start(values[0]), _end(values[-1]))


def _name(file: SourceFile, token: Token) -> tree.Name:
    return tree.Name(token.text, Span(file, token.start, token.end))


def _lists(values: Values) -> list[tuple[Any, ...]]:
    """The tuples among the values: the lists that `names`, `indices`, ... made."""
    return [value for value in values if type(value) is tuple]


def _first_list(values: Values) -> tuple[Any, ...]:
    lists = _lists(values)
    return lists[0] if lists else ()


def _entries(_: SourceFile, values: Values) -> tuple[Any, ...]:
    """A list with commas, dots or separators between its entries, as a tuple."""
    return tuple(values[::2])


def _sound(_: SourceFile, values: Values) -> tuple[Any, ...]:
    """The same of statements, less those that were given up, of which a token is left."""
    return tuple(value for value in values[::2] if not isinstance(value, Token))


# --- items


def _topology_item(file: SourceFile, values: Values) -> tree.TopologyItem:
    return tree.TopologyItem(values[1], values[3], _span(file, values))


def _definition_item(file: SourceFile, values: Values) -> tree.DefinitionItem:
    return tree.DefinitionItem(values[1], _first_list(values), values[-1], _span(file, values))


def _use_item(file: SourceFile, values: Values) -> tree.UseItem:
    path, *names = _lists(values)
    end = _end(values[-1]) if names else path[-1].span.end
    return tree.UseItem(path, names[0] if names else (), Span(file, _start(values[0]), end))


def _scan_item(file: SourceFile, values: Values) -> tree.ScanItem:
    on = next(at for at, value in enumerate(values) if isinstance(value, Token) and value.kind == "ON")
    parameters, body = _first_list(values[:on]), _first_list(values[on:])
    return tree.ScanItem(values[1], parameters, values[on + 1], body, _span(file, values))


# --- topologies


def _topology(file: SourceFile, values: Values) -> tree.TopologyExpression:
    return values[0] if len(values) == 1 else tree.TopologyProduct(tuple(values[::2]), _span(file, values))


def _topology_name(_: SourceFile, values: Values) -> tree.TopologyName:
    return tree.TopologyName(values[0], values[0].span)


def _topology_call(file: SourceFile, values: Values) -> tree.TopologyCall:
    return tree.TopologyCall(values[0], _first_list(values), _span(file, values))


def _topology_runtime(file: SourceFile, values: Values) -> tree.TopologyRuntime:
    return tree.TopologyRuntime(values[0], _first_list(values), _span(file, values))


def _topology_inline(file: SourceFile, values: Values) -> tree.TopologyInline:
    return tree.TopologyInline(_name(file, values[0]), _first_list(values), _span(file, values))


def _topology_file(file: SourceFile, values: Values) -> tree.TopologyFile:
    string: Token = values[2]
    form = values[4] if len(values) > 3 else None
    path_span = Span(file, string.start, string.end)
    return tree.TopologyFile(values[0], string.text[1:-1], path_span, form, _span(file, values))


def _parameter(file: SourceFile, values: Values) -> tree.SizeParameter:
    return tree.SizeParameter(values[0], values[2] if len(values) > 1 else None, _span(file, values))


def _limit(file: SourceFile, values: Values) -> tree.Limit:
    return tree.Limit(values[0], values[2], _span(file, values))


def _lone_nodes(_: SourceFile, values: Values) -> tree.Arrow:
    names: tuple[tree.Name, ...] = values[0]
    return tree.Arrow(names, (), False, names[0].span.to(names[-1].span))


def _arrow(file: SourceFile, values: Values) -> tree.Arrow:
    at = next(k for k, value in enumerate(values) if isinstance(value, Token))
    tails, heads = _first_list(values[:at]), _first_list(values[at:])
    ends = [name.span for name in (*tails, *heads)]
    span = Span(file, values[at].start, values[at].end)
    for end in ends:
        span = span.to(end)
    return tree.Arrow(tails, heads, True, span)


# --- statements


def _equation(file: SourceFile, values: Values) -> tree.Equation:
    return tree.Equation(values[0], _first_list(values), values[-1], _span(file, values))


def _setting(file: SourceFile, values: Values) -> tree.Setting:
    end = next((at for at, value in enumerate(values) if isinstance(value, Token) and value.kind == "LPAR"), len(values))
    words = tuple(_name(file, value) if isinstance(value, Token) else value for value in values[:end])
    return tree.Setting(words[0], words[1:], _first_list(values[end:]), _span(file, values))


def _index(file: SourceFile, values: Values) -> tree.IndexUse:
    index = values[0] if isinstance(values[0], tree.Name) else _name(file, values[0])
    pinned = values[2] if len(values) > 1 else None
    port = _name(file, pinned) if isinstance(pinned, Token) else pinned
    return tree.IndexUse(index, port, _span(file, values))


# --- expressions


def _plain_name(file: SourceFile, values: Values) -> tree.Name:
    return _name(file, values[0])


def _number(file: SourceFile, values: Values) -> tree.Number:
    return tree.Number(float(values[0].text), Span(file, values[0].start, values[0].end))


def _reference(_: SourceFile, values: Values) -> tree.Reference:
    return tree.Reference(values[0], values[0].span)


def _primed(file: SourceFile, values: Values) -> tree.Reference:
    name = _name(file, values[0])
    return tree.Reference(name, name.span)


def _call(file: SourceFile, values: Values) -> tree.Call:
    return tree.Call(values[0], _first_list(values), _span(file, values))


def _argument(file: SourceFile, values: Values) -> tree.Argument:
    name = values[0] if len(values) > 1 else None
    return tree.Argument(name, values[-1], _span(file, values))


def _group(file: SourceFile, values: Values) -> tree.Expression:
    """Parentheses leave no node of their own, but their place belongs to what stands in them."""
    return replace(values[1], span=_span(file, values))


def _list(file: SourceFile, values: Values) -> tree.List:
    return tree.List(values[1], _span(file, values))


def _indexed(file: SourceFile, values: Values) -> tree.Indexed:
    return tree.Indexed(values[0], values[2], _span(file, values))


def _power(file: SourceFile, values: Values) -> tree.Power:
    return tree.Power(values[0], values[2], _span(file, values))


def _negate(file: SourceFile, values: Values) -> tree.Negate:
    return tree.Negate(values[1], _span(file, values))


def _chain(values: Values, inverse: str) -> tuple[tuple[bool, tree.Expression], ...]:
    """Operands with a flag for those behind the inverse operator."""
    first = ((False, values[0]),)
    return first + tuple((sign.kind == inverse, operand) for sign, operand in zip(values[1::2], values[2::2], strict=True))


def _sum(file: SourceFile, values: Values) -> tree.Sum:
    return tree.Sum(_chain(values, "MINUS"), _span(file, values))


def _product(file: SourceFile, values: Values) -> tree.Product:
    return tree.Product(_chain(values, "SLASH"), _span(file, values))


BUILDERS: dict[str, Builder] = {
    "file": _sound,
    "topology_item": _topology_item,
    "definition_item": _definition_item,
    "use_item": _use_item,
    "scan_item": _scan_item,
    "path": _entries,
    "names": _entries,
    "name": _plain_name,
    "topology": _topology,
    "topology_name": _topology_name,
    "topology_call": _topology_call,
    "topology_runtime": _topology_runtime,
    "topology_inline": _topology_inline,
    "topology_file": _topology_file,
    "parameters": _entries,
    "parameter": _parameter,
    "limits": _entries,
    "limit": _limit,
    "arrows": _sound,
    "lone_nodes": _lone_nodes,
    "arrow": _arrow,
    "body": _sound,
    "equation": _equation,
    "setting": _setting,
    "indices": _entries,
    "index": _index,
    "number": _number,
    "reference": _reference,
    "primed": _primed,
    "call": _call,
    "arguments": _entries,
    "argument": _argument,
    "group": _group,
    "list": _list,
    "entries": _entries,
    "indexed": _indexed,
    "power": _power,
    "negate": _negate,
    "sum": _sum,
    "product": _product,
}
"""Builders by rule name or alias."""
