"""What each name in a text stands for and where that is declared, by the rules of SPEC.md, section 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from stmlang.check.definitions import subexpressions
from stmlang.check.modules import Definition, Module, NamedTopology, path_of
from stmlang.check.vocabulary import BUILT_IN, CORE, FEATURES, INDEX_WORDS, INPUTS, KINDS_OF_TOPOLOGY, SIZES
from stmlang.scan.graph_files import FORMATS
from stmlang.source.span import Span
from stmlang.syntax import tree


class Kind(Enum):
    """What a name can stand for. The first ones are declared in texts, the others by the language."""

    FUNCTION = "definition"
    TOPOLOGY = "topology"
    SCAN = "scan"
    GATE = "gate"
    NUMBER = "number"
    PARAMETER = "parameter of a definition"
    NODE = "node"
    FILE = "file"
    INDEX = "index"
    INPUT = "input"
    FEATURE = "features"
    BUILT_IN = "built-in function"
    CONSTANT = "constant"
    SIZE = "size"
    PORT = "port"
    ARGUMENT = "argument"
    TOPOLOGY_KIND = "kind of topology"
    FORMAT = "format"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name in a text. `declaration` is where what it stands for is declared, in this text or another one; None for what the
    language declares. `declares` where this is that place, or another equation of the same gate."""

    span: Span
    kind: Kind
    declaration: Span | None = None
    declares: bool = False

    @property
    def name(self) -> str:
        return self.span.text


Meaning = tuple[Kind, Span | None]
Names = Mapping[str, Meaning]

_OF_TEXTS: Names = {
    **dict.fromkeys(INPUTS, (Kind.INPUT, None)),
    "pi": (Kind.CONSTANT, None),
}
_ELSEWHERE: Names = {
    **dict.fromkeys(SIZES, (Kind.SIZE, None)),
    **dict.fromkeys(FEATURES, (Kind.FEATURE, None)),
    **dict.fromkeys(INDEX_WORDS, (Kind.INDEX, None)),
    **dict.fromkeys((*BUILT_IN, "eye"), (Kind.BUILT_IN, None)),
}
"""What a name is that nothing in its scope is called."""
_UNKNOWN: Meaning = (Kind.UNKNOWN, None)


def occurrences_of(file: tree.File, module: Module) -> tuple[Occurrence, ...]:
    """The names in a file, in the order of the text, each place once."""
    places: dict[int, Occurrence] = {}
    for item in file.items:
        for occurrence in _item(item, module):
            places.setdefault(occurrence.span.start, occurrence)
    return tuple(places[start] for start in sorted(places))


def _item(item: tree.Item, module: Module) -> Iterator[Occurrence]:
    match item:
        case tree.UseItem():
            yield from _use(item, module)
        case tree.TopologyItem(name=name, value=value):
            yield Occurrence(name.span, Kind.TOPOLOGY, name.span, True)
            yield from _topology(value, module, {})
        case tree.DefinitionItem(name=name, parameters=parameters, value=value):
            yield Occurrence(name.span, Kind.FUNCTION, name.span, True)
            yield from (Occurrence(parameter.span, Kind.PARAMETER, parameter.span, True) for parameter in parameters)
            own: dict[str, Meaning] = {}
            for parameter in parameters:
                own.setdefault(parameter.text, (Kind.PARAMETER, parameter.span))
            yield from _expression(value, module, {**_OF_TEXTS, **own}, {})
        case tree.ScanItem():
            yield from _scan(item, module)


def _use(item: tree.UseItem, module: Module) -> Iterator[Occurrence]:
    span = path_of(item)
    target = module.imports.get(span)
    yield Occurrence(span, Kind.FILE, None if target is None else Span(target.source, 0, 0))
    for name in item.names:
        declared = None if target is None else target.own.get(name.text)
        match declared:
            case None:
                yield Occurrence(name.span, Kind.UNKNOWN)
            case Definition():
                yield Occurrence(name.span, Kind.FUNCTION, declared.item.name.span)
            case NamedTopology():
                yield Occurrence(name.span, Kind.TOPOLOGY, declared.item.name.span)


# --- scans


def gates_of(item: tree.ScanItem) -> dict[str, list[tree.Equation]]:
    """The equations of each gate, in the order in which the gates are first mentioned."""
    gates: dict[str, list[tree.Equation]] = {}
    for statement in item.body:
        if isinstance(statement, tree.Equation):
            gates.setdefault(statement.target.text, []).append(statement)
    return gates


def numbers_of(item: tree.ScanItem, module: Module) -> dict[str, Span]:
    """The numbers that a scan's equations can use, each where it is declared: an axis by its topology, else by the head."""
    axes = {axis.name.text: axis.name.span for axis in axes_of(item.topology, module)}
    head = {parameter.name.text: parameter.name.span for parameter in reversed(item.parameters)}
    return {**{name: span for name, span in head.items() if name not in SIZES}, **axes}


def _scan(item: tree.ScanItem, module: Module) -> Iterator[Occurrence]:
    if item.name.text:
        yield Occurrence(item.name.span, Kind.SCAN, item.name.span, True)
    numbers: Names = {name: (Kind.NUMBER, span) for name, span in numbers_of(item, module).items()}
    axes: Names = {axis.name.text: (Kind.NUMBER, axis.name.span) for axis in axes_of(item.topology, module)}
    for parameter in item.parameters:
        kind, span = numbers.get(parameter.name.text, (Kind.SIZE, None))
        yield Occurrence(parameter.name.span, kind, span, span == parameter.name.span)
        if parameter.default is not None:
            yield from _expression(parameter.default, module, {**numbers, **_OF_TEXTS}, {})
    yield from _topology(item.topology, module, numbers)
    gates = gates_of(item)
    meanings: Names = {
        **numbers,
        **_OF_TEXTS,
        **{name: (Kind.GATE, equations[0].target.span) for name, equations in gates.items()},
    }
    for statement in item.body:
        if isinstance(statement, tree.Setting):
            yield from _setting(statement, module, axes, numbers)
            continue
        target = statement.target
        yield Occurrence(target.span, Kind.GATE, gates[target.text][0].target.span, True)
        yield from _indices(statement.indices, axes)
        inside: Names = {**meanings, target.text: (Kind.INPUT, None)} if target.text in INPUTS else meanings
        yield from _expression(statement.value, module, inside, axes)


def _setting(setting: tree.Setting, module: Module, axes: Names, numbers: Names) -> Iterator[Occurrence]:
    for before, word in zip((setting.keyword, *setting.words), setting.words, strict=False):
        if before.text in ("+", "-"):
            yield _named(word, axes.get(word.text, (Kind.PORT, None)))
        elif word.text in INPUTS:
            yield Occurrence(word.span, Kind.INPUT)
    for argument in setting.arguments:
        if argument.name is not None:
            yield Occurrence(argument.name.span, Kind.ARGUMENT)
        yield from _expression(argument.value, module, numbers, {})


# --- topologies


def axes_of(expression: tree.TopologyExpression, module: Module, depth: int = 0) -> Iterator[tree.SizeParameter]:
    """The axes of the chains and grids that a topology is made of, through its names, wherever these are declared."""
    match expression:
        case tree.TopologyCall(kind=kind, parameters=parameters):
            if kind.text in ("chain", "grid"):
                yield from parameters
        case tree.TopologyProduct(factors=factors):
            for factor in factors:
                yield from axes_of(factor, module, depth + 1)
        case tree.TopologyName(name=name):
            declared = module.names.get(name.text)
            if isinstance(declared, NamedTopology) and depth < _DEEPEST:
                yield from axes_of(declared.item.value, declared.module, depth + 1)
        case _:
            return


_DEEPEST = 20
"""Names of topologies that lead to others are followed so far: they may run in a circle."""


def _topology(expression: tree.TopologyExpression, module: Module, numbers: Names) -> Iterator[Occurrence]:
    """Names in a topology as written in place. `numbers` are what its sizes can be made of, axes before them besides."""
    match expression:
        case tree.TopologyCall(kind=kind, parameters=parameters):
            yield _kind(kind)
            regular = kind.text in ("chain", "grid")
            seen = dict(numbers)
            for parameter in parameters:
                name = parameter.name
                yield Occurrence(name.span, Kind.NUMBER, name.span, True) if regular else Occurrence(name.span, Kind.ARGUMENT)
                if parameter.default is not None:
                    yield from _expression(parameter.default, module, {**seen, **_OF_TEXTS}, {})
                seen[name.text] = (Kind.NUMBER, name.span)
        case tree.TopologyRuntime(kind=kind, limits=limits):
            yield _kind(kind)
            for limit in limits:
                yield Occurrence(limit.name.span, Kind.ARGUMENT)
                yield from _expression(limit.bound, module, numbers, {})
        case tree.TopologyInline(kind=kind, arrows=arrows):
            yield _kind(kind)
            first: dict[str, Span] = {}
            for arrow in arrows:
                for node in (*arrow.tails, *arrow.heads):
                    declaration = first.setdefault(node.text, node.span)
                    yield Occurrence(node.span, Kind.NODE, declaration, declaration == node.span)
        case tree.TopologyFile(kind=kind, format=form):
            yield _kind(kind)
            if form is not None:
                yield Occurrence(form.span, Kind.FORMAT if form.text in FORMATS else Kind.UNKNOWN)
        case tree.TopologyName(name=name):
            declared = module.names.get(name.text)
            if isinstance(declared, NamedTopology):
                yield Occurrence(name.span, Kind.TOPOLOGY, declared.item.name.span)
            elif name.text:
                yield Occurrence(name.span, Kind.UNKNOWN)
        case tree.TopologyProduct(factors=factors):
            for factor in factors:
                yield from _topology(factor, module, numbers)


def _kind(name: tree.Name) -> Occurrence:
    return Occurrence(name.span, Kind.TOPOLOGY_KIND if name.text in KINDS_OF_TOPOLOGY else Kind.UNKNOWN)


# --- expressions


def _expression(expression: tree.Expression, module: Module, names: Names, axes: Names) -> Iterator[Occurrence]:
    for inner in subexpressions(expression):
        match inner:
            case tree.Reference(name=name):
                yield _named(name, names.get(name.text) or _ELSEWHERE.get(name.text) or _function(module, name.text))
            case tree.Indexed(indices=indices):
                yield from _indices(indices, axes)
            case tree.Call(function=function, arguments=arguments):
                meaning = _function(module, function.text)
                # A gate that is called is a mistake, of which it helps to see what it is.
                yield _named(function, meaning if meaning[0] is not Kind.UNKNOWN else names.get(function.text, meaning))
                parameters = _parameters(module, function.text)
                for argument in arguments:
                    if argument.name is not None:
                        yield _named(argument.name, parameters.get(argument.name.text, (Kind.ARGUMENT, None)))
            case _:
                pass


def _parameters(module: Module, function: str) -> Names:
    declared = module.names.get(function)
    if not isinstance(declared, Definition):
        return {}
    return {name.text: (Kind.PARAMETER, name.span) for name in reversed(declared.item.parameters)}


def _function(module: Module, name: str) -> Meaning:
    declared = module.names.get(name)
    if name in BUILT_IN:
        return Kind.BUILT_IN, None
    return (Kind.FUNCTION, declared.item.name.span) if isinstance(declared, Definition) else _UNKNOWN


def _indices(entries: Sequence[tree.IndexUse], axes: Names) -> Iterator[Occurrence]:
    for entry in entries:
        yield Occurrence(entry.index.span, Kind.INDEX if entry.index.text in INDEX_WORDS else Kind.UNKNOWN)
        if entry.port is not None and not entry.port.text.isdigit():
            yield _named(entry.port, axes.get(entry.port.text, (Kind.PORT, None)))


def _named(name: tree.Name, meaning: Meaning) -> Occurrence:
    return Occurrence(name.span, meaning[0], meaning[1])


def is_core(occurrence: Occurrence) -> bool:
    """Whether a gate is one of those that every scan has, or a redefined input: its name is the language's."""
    return occurrence.kind is Kind.GATE and occurrence.name in (*CORE, *INPUTS)
