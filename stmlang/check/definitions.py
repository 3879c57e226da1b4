"""Definitions looked at on their own: names that exist, parameters that are used, no recursion. What their bodies mean is seen
where they are called."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from stmlang.check.dependency_order import followed
from stmlang.check.modules import Definition, Module
from stmlang.check.problems import Problems, arrows
from stmlang.check.vocabulary import BUILT_IN, FEATURES, INDEX_WORDS, INPUTS, MEANT, RESERVED, SIZES
from stmlang.source.diagnostic import Label
from stmlang.syntax import tree


def check_definitions(problems: Problems, module: Module) -> None:
    """Report what is wrong with the definitions a file declares, whether they are called or not."""
    declared = [item for item in module.own.values() if isinstance(item, Definition)]
    for definition in declared:
        definition.sound = _parameters(problems, definition) and definition.sound
        definition.sound = _body(problems, definition) and definition.sound
    _recursion(problems, declared)


def _parameters(problems: Problems, definition: Definition) -> bool:
    first_named: dict[str, tree.Name] = {}
    sound = True
    for name in definition.item.parameters:
        if name.text in RESERVED or name.text in INPUTS or name.text in SIZES:
            what = RESERVED.get(name.text, MEANT)
            problems.error("STM1005", f"`{name.text}` {what} and cannot name a parameter", name.span)
            sound = False
        elif name.text in first_named:
            labels = [Label(first_named[name.text].span, "first declared here")]
            problems.error("STM1004", f"the parameter `{name.text}` is declared twice", name.span, labels=labels)
            sound = False
        first_named.setdefault(name.text, name)
    return sound


def _body(problems: Problems, definition: Definition) -> bool:
    """Every name of the body exists, and every parameter occurs in it."""
    parameters = {name.text: name for name in definition.item.parameters}
    visible = {*parameters, *INPUTS, *FEATURES, *SIZES, *INDEX_WORDS, *BUILT_IN, "eye", "pi"}
    used: set[str] = set()
    sound = True
    for inner in subexpressions(definition.item.value):
        match inner:
            case tree.Reference(name=name):
                used.add(name.text)
                if name.text not in visible and name.text not in definition.module.names:
                    sound = _unknown_name(problems, definition, name) and sound
            case tree.Call(function=function):
                if not _known_function(definition.module, function.text):
                    sound = _unknown_function(problems, definition, function) and sound
            case _:
                pass
    for name in parameters.values():
        if name.text not in used:
            note = "an argument that nothing reads would go unchecked"
            problems.error("STM1010", f"`{definition.item.name.text}` never uses its parameter `{name.text}`", name.span, note)
            sound = False
    return sound


def _known_function(module: Module, name: str) -> bool:
    return name in BUILT_IN or isinstance(module.names.get(name), Definition)


def _unknown_name(problems: Problems, definition: Definition, name: tree.Name) -> bool:
    if name.text not in definition.module.missing:
        known = [*(parameter.text for parameter in definition.item.parameters), *INPUTS, *SIZES, "pi"]
        note = "a definition sees its parameters, `q`, `k`, `v` and the sizes, nothing else of a scan"
        help = (
            problems.meant(name.text, known, name.span)
            or f"make it a parameter: `def {definition.item.name.text}(..., {name.text})`"
        )
        problems.error("STM1001", f"there is no `{name.text}` here", name.span, note, help=help)
    return False


def _unknown_function(problems: Problems, definition: Definition, name: tree.Name) -> bool:
    if not definition.module.unknown(name.text):
        help = problems.called(name.text, chain(definition.module.functions(), BUILT_IN), name.span)
        problems.error("STM1002", f"there is no function `{name.text}`", name.span, help=help)
    return False


def subexpressions(expression: tree.Expression) -> Iterator[tree.Expression]:
    """An expression and everything inside it, in the order of writing."""
    stack = [expression]
    while stack:
        inner = stack.pop()
        yield inner
        stack += reversed(_inside(inner))


def _inside(expression: tree.Expression) -> list[tree.Expression]:
    match expression:
        case tree.Number() | tree.Reference():
            return []
        case tree.Indexed(base=base):
            return [base]
        case tree.List(entries=entries):
            return list(entries)
        case tree.Call(arguments=arguments):
            return [argument.value for argument in arguments]
        case tree.Negate(operand=operand):
            return [operand]
        case tree.Sum(terms=pairs) | tree.Product(factors=pairs):
            return [inner for _, inner in pairs]
        case tree.Power(base=base, exponent=exponent):
            return [base, exponent]


def _recursion(problems: Problems, declared: list[Definition]) -> None:
    """Report circles of definitions. Those that are not reported lead through a definition that is not sound, and so come to an
    end. Files do not import each other in circles: a circle lies in one file."""
    calls = {definition.item.name.text: _called(definition) for definition in declared}
    for circle in followed(calls)[1]:
        _report(problems, declared, calls, circle)


def _called(definition: Definition) -> dict[str, tree.Call]:
    """The definitions of the same file that a body calls, each with its first call."""
    first_calls: dict[str, tree.Call] = {}
    for inner in subexpressions(definition.item.value):
        if isinstance(inner, tree.Call) and inner.function.text in definition.module.own:
            first_calls.setdefault(inner.function.text, inner)
    return first_calls


def _report(problems: Problems, declared: list[Definition], calls: dict[str, dict[str, tree.Call]], circle: list[str]) -> None:
    by_name = {definition.item.name.text: definition for definition in declared}
    for name in circle:
        by_name[name].sound = False
    steps = list(zip(circle, circle[1:] + circle[:1], strict=True))
    places = [calls[caller][callee].function.span for caller, callee in steps]
    labels = [Label(place, f"`{callee}` is called here") for place, (_, callee) in zip(places[1:8], steps[1:8], strict=True)]
    shown = arrows([*circle, circle[0]])
    note = "definitions are expanded where they are called, so a circle of them would never end"
    what = "calls itself" if len(circle) == 1 else f"is defined in a circle: `{shown}`"
    problems.error("STM1007", f"`{circle[0]}` {what}", places[0], note, labels=labels)
