"""A tree as a text that reads back as the same tree.

Unlike the formatter, which rearranges an author's tokens, this needs nothing but the tree: programs that make or change trees
use it, and tests use it to see that a tree holds all that a text says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from stmlang.syntax import tree
from stmlang.syntax.show import show_arguments, show_expression, show_indices


def write_file(file: tree.File) -> str:
    """The items of a file, without its comments, each statement on a line of its own."""
    # A line end may be taken for the middle of a statement, a semicolon never.
    return "".join(f"{_item(item)};\n" for item in file.items)


def _item(item: tree.Item) -> str:
    match item:
        case tree.TopologyItem(name=name, value=value):
            return f"topology {name.text} = {_topology(value)}"
        case tree.DefinitionItem(name=name, parameters=parameters, value=value):
            return f"def {name.text}({_names(parameters)}) = {show_expression(value)}"
        case tree.UseItem(path=path, names=names):
            return f"use {'.'.join(name.text for name in path)}" + (f" ({_names(names)})" if names else "")
        case tree.ScanItem(name=name, parameters=parameters, topology=topology, body=body):
            statements = "".join(f"    {_statement(statement)};\n" for statement in body)
            return f"scan {name.text}({_parameters(parameters)}) on {_topology(topology)} {{\n{statements}}}"
        case _:
            assert_never(item)


def _statement(statement: tree.Equation | tree.Setting) -> str:
    match statement:
        case tree.Equation(target=target, indices=indices, value=value):
            bracket = f"[{show_indices(indices)}]" if indices else ""
            return f"{target.text}{bracket} = {show_expression(value)}"
        case tree.Setting(keyword=keyword, words=words, arguments=arguments):
            bracket = f"({show_arguments(arguments)})" if arguments else ""
            return " ".join(word.text for word in (keyword, *words)) + bracket
        case _:
            assert_never(statement)


def _topology(topology: tree.TopologyExpression) -> str:
    match topology:
        case tree.TopologyCall(kind=kind, parameters=parameters):
            return f"{kind.text}({_parameters(parameters)})"
        case tree.TopologyRuntime(kind=kind, limits=limits):
            return f"{kind.text}({', '.join(f'{limit.name.text} <= {show_expression(limit.bound)}' for limit in limits)})"
        case tree.TopologyInline(kind=kind, arrows=arrows):
            return f"{kind.text} {{ {'; '.join(_arrow(arrow) for arrow in arrows)} }}"
        case tree.TopologyFile(kind=kind, path=path, format=form):
            return f'{kind.text} from "{path}"' + (f" as {form.text}" if form else "")
        case tree.TopologyName(name=name):
            return name.text
        case tree.TopologyProduct(factors=factors):
            return " * ".join(_topology(factor) for factor in factors)
        case _:
            assert_never(topology)


def _arrow(arrow: tree.Arrow) -> str:
    return f"{_names(arrow.tails)} -> {_names(arrow.heads)}" if arrow.arrow else _names(arrow.tails)


def _parameters(parameters: Sequence[tree.SizeParameter]) -> str:
    defaults = [f" = {show_expression(entry.default)}" if entry.default is not None else "" for entry in parameters]
    return ", ".join(entry.name.text + default for entry, default in zip(parameters, defaults, strict=True))


def _names(names: Sequence[tree.Name]) -> str:
    return ", ".join(name.text for name in names)
