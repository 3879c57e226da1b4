"""Trees for people: an expression as text, a whole tree as an indented outline. Nothing here recurses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from stmlang.syntax import tree

_SUM, _PRODUCT, _PREFIX, _POWER, _OPERAND = range(5)


def show_number(value: float) -> str:
    """The shortest decimal that reads back as the same number; whole numbers without a point."""
    return repr(value).removesuffix(".0")


def show_expression(expression: tree.Expression) -> str:
    """The expression as the language writes it, with no more parentheses than it takes to read back as the same tree."""
    # An expression comes up twice: to put its operands on the list, and, ready, to join what they have become.
    done: list[tuple[int, str]] = []
    work: list[tuple[tree.Expression, bool]] = [(expression, False)]
    while work:
        node, ready = work.pop()
        operands = _operands(node)
        if operands and not ready:
            work.append((node, True))
            work += [(operand, False) for operand in reversed(operands)]
            continue
        written = done[len(done) - len(operands) :]
        del done[len(done) - len(operands) :]
        done.append(_write(node, written))
    return done[0][1]


def _operands(node: tree.Expression) -> tuple[tree.Expression, ...]:
    match node:
        case tree.Number() | tree.Reference():
            return ()
        case tree.Indexed(base=base):
            return (base,)
        case tree.List(entries=entries):
            return entries
        case tree.Call(arguments=arguments):
            return tuple(argument.value for argument in arguments)
        case tree.Negate(operand=operand):
            return (operand,)
        case tree.Sum(terms=pairs) | tree.Product(factors=pairs):
            return tuple(value for _, value in pairs)
        case tree.Power(base=base, exponent=exponent):
            return (base, exponent)
        case _:
            assert_never(node)


def _write(node: tree.Expression, operands: Sequence[tuple[int, str]]) -> tuple[int, str]:
    """How tightly a node binds, and its text, given those of its operands."""
    match node:
        case tree.Number(value=value):
            return _OPERAND, show_number(value)
        case tree.Reference(name=name):
            return _OPERAND, name.text
        case tree.Indexed(base=base, indices=indices):
            text = (
                operands[0][1]
                if isinstance(base, tree.Reference | tree.Call | tree.Number | tree.List)
                else f"({operands[0][1]})"
            )
            return _OPERAND, f"{text}[{show_indices(indices)}]"
        case tree.List():
            return _OPERAND, f"[{', '.join(text for _, text in operands)}]"
        case tree.Call(function=function, arguments=arguments):
            named = [f"{argument.name.text} = " if argument.name else "" for argument in arguments]
            inside = ", ".join(name + text for name, (_, text) in zip(named, operands, strict=True))
            return _OPERAND, f"{function.text}({inside})"
        case tree.Negate():
            return _PREFIX, "-" + _bracketed(operands[0], _PREFIX)
        case tree.Sum(terms=terms):
            return _SUM, _joined(terms, operands, "+", "-", _PRODUCT)
        case tree.Product(factors=factors):
            return _PRODUCT, _joined(factors, operands, "*", "/", _PREFIX)
        case tree.Power():
            return _POWER, f"{_bracketed(operands[0], _OPERAND)} ^ {_bracketed(operands[1], _PREFIX)}"
        case _:
            assert_never(node)


def _bracketed(operand: tuple[int, str], at_least: int) -> str:
    return operand[1] if operand[0] >= at_least else f"({operand[1]})"


def _joined(
    pairs: Sequence[tuple[bool, Any]], operands: Sequence[tuple[int, str]], plain: str, inverse: str, at_least: int
) -> str:
    texts = [_bracketed(operands[0], at_least)]
    for (inverted, _), operand in zip(pairs[1:], operands[1:], strict=True):
        texts += [inverse if inverted else plain, _bracketed(operand, at_least)]
    return " ".join(texts)


def show_indices(indices: Sequence[tree.IndexUse]) -> str:
    """What stands between the square brackets."""
    return ", ".join(use.index.text + (f" = {use.port.text}" if use.port else "") for use in indices)


def show_arguments(arguments: Sequence[tree.Argument]) -> str:
    """What stands between the round brackets."""
    return ", ".join((f"{entry.name.text} = " if entry.name else "") + show_expression(entry.value) for entry in arguments)


# --- the whole tree


def show_tree(file: tree.File) -> str:
    """An outline of a file, one node a line, two blanks a level; the same for every way to lay out the same text."""
    lines: list[str] = []
    work: list[tuple[int, str, Any]] = [(0, "", item) for item in reversed(file.items)]
    while work:
        depth, label, node = work.pop()
        title, children = _outline(node)
        lines.append("  " * depth + label + title)
        work += [(depth + 1, mark, child) for mark, child in reversed(children)]
    return "".join(f"{line}\n" for line in lines)


_Children = list[tuple[str, Any]]


def _outline(node: Any) -> tuple[str, _Children]:
    """A node's line, and its children, each with what stands before it."""
    if isinstance(node, tree.TopologyItem | tree.DefinitionItem | tree.UseItem | tree.ScanItem):
        return _outline_item(node)
    if isinstance(node, tree.Equation | tree.Setting):
        return _outline_statement(node)
    if isinstance(node, tree.SizeParameter | tree.Limit | tree.Arrow):
        return _outline_entry(node)
    if isinstance(
        node,
        tree.TopologyCall
        | tree.TopologyRuntime
        | tree.TopologyInline
        | tree.TopologyFile
        | tree.TopologyName
        | tree.TopologyProduct,
    ):
        return _outline_topology(node)
    return _outline_expression(node)


def _arguments(arguments: Sequence[tree.Argument]) -> _Children:
    return [(f"{argument.name.text} = " if argument.name else "", argument.value) for argument in arguments]


def _plain(nodes: Sequence[Any], label: str = "") -> _Children:
    return [(label, node) for node in nodes]


def _names(names: Sequence[tree.Name], between: str = ", ") -> str:
    return between.join(name.text for name in names)


def _outline_item(item: tree.Item) -> tuple[str, _Children]:
    match item:
        case tree.TopologyItem(name=name, value=value):
            return f"topology {name.text}", [("", value)]
        case tree.DefinitionItem(name=name, parameters=parameters, value=value):
            return f"def {name.text}({_names(parameters)})", [("", value)]
        case tree.UseItem(path=path, names=names):
            return f"use {_names(path, '.')}" + (f" ({_names(names)})" if names else ""), []
        case tree.ScanItem(name=name, parameters=parameters, topology=topology, body=body):
            return f"scan {name.text}", [*_plain(parameters), ("on ", topology), *_plain(body)]
        case _:
            assert_never(item)


def _outline_statement(statement: tree.Equation | tree.Setting) -> tuple[str, _Children]:
    match statement:
        case tree.Equation(target=target, indices=indices, value=value):
            bracket = f"[{show_indices(indices)}]" if indices else ""
            return f"equation {target.text}{bracket}", [("", value)]
        case tree.Setting(keyword=keyword, words=words, arguments=arguments):
            return f"setting {keyword.text} {_names(words, ' ')}", _arguments(arguments)
        case _:
            assert_never(statement)


def _outline_entry(entry: tree.SizeParameter | tree.Limit | tree.Arrow) -> tuple[str, _Children]:
    match entry:
        case tree.SizeParameter(name=name, default=default):
            return f"parameter {name.text}", [("= ", default)] if default is not None else []
        case tree.Limit(name=name, bound=bound):
            return f"limit {name.text}", [("<= ", bound)]
        case tree.Arrow(tails=tails, heads=heads, arrow=arrow):
            if not arrow:
                return f"nodes {_names(tails)}", []
            return "arrow " + " ".join(word for word in (_names(tails), "->", _names(heads)) if word), []
        case _:
            assert_never(entry)


def _outline_topology(topology: tree.TopologyExpression) -> tuple[str, _Children]:
    match topology:
        case tree.TopologyCall(kind=kind, parameters=parameters):
            return f"topology {kind.text}", _plain(parameters)
        case tree.TopologyRuntime(kind=kind, limits=limits):
            return f"run-time {kind.text}", _plain(limits)
        case tree.TopologyInline(kind=kind, arrows=arrows):
            return f"inline {kind.text}", _plain(arrows)
        case tree.TopologyFile(kind=kind, path=path, format=form):
            return f'file {kind.text} "{path}"' + (f" as {form.text}" if form else ""), []
        case tree.TopologyName(name=name):
            return f"name {name.text}", []
        case tree.TopologyProduct(factors=factors):
            return "product", _plain(factors)
        case _:
            assert_never(topology)


def _outline_expression(expression: tree.Expression) -> tuple[str, _Children]:
    match expression:
        case tree.Number(value=value):
            return f"number {show_number(value)}", []
        case tree.Reference(name=name):
            return f"reference {name.text}", []
        case tree.Indexed(base=base, indices=indices):
            return f"indexed [{show_indices(indices)}]", [("", base)]
        case tree.List(entries=entries):
            return "list", _plain(entries)
        case tree.Call(function=function, arguments=arguments):
            return f"call {function.text}", _arguments(arguments)
        case tree.Negate(operand=operand):
            return "negate", [("", operand)]
        case tree.Sum(terms=terms):
            return "sum", [("- " if negative else "+ ", term) for negative, term in terms]
        case tree.Product(factors=factors):
            return "product", [("/ " if inverted else "* ", factor) for inverted, factor in factors]
        case tree.Power(base=base, exponent=exponent):
            return "power", [("", base), ("^ ", exponent)]
        case _:
            assert_never(expression)
