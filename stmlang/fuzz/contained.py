"""A user's spec as trials: a text that needs no other file, with every size a small number.

The definitions that the scan calls, its own and imported ones, are written in front of it, graph files as the graphs they hold,
and every size as its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from hypothesis import reject
from hypothesis import strategies as st

from stmlang.check import Spec, examine
from stmlang.check.modules import Definition, Loader, Module
from stmlang.check.problems import Problems
from stmlang.check.search_path import search_folders
from stmlang.fuzz.generators.topologies import batches
from stmlang.fuzz.generators.values import gate_values
from stmlang.fuzz.trial import Listed, Trial
from stmlang.graph.topology import dag_of
from stmlang.scan.scan import Scan
from stmlang.scan.show import show_topology
from stmlang.scan.topology import CompleteTree, FromFile, Product, Regular, Runtime, Static, Topology
from stmlang.source.diagnostic import SpecError
from stmlang.source.reading import from_text
from stmlang.source.span import Span
from stmlang.syntax import tree
from stmlang.syntax.parser import parse
from stmlang.syntax.write import write_file

GENERATOR = "spec"
"""What makes these trials, in counts."""
LONGEST, WIDEST, DEEPEST = 7, 3, 2
"""The largest sizes that are drawn: of an axis, of heads, key, value, track, writes, reads, arity, of the depth of a tree."""
MOST_NODES, MOST_EDGES = 8, 20
"""The same of graphs that come at run time."""

Values = Mapping[str, int | float]
Node = TypeVar("Node")


def trials_of(spec: Spec, settings: Values, search_path: Sequence[Path] = ()) -> st.SearchStrategy[Trial]:
    """Trials of one spec: all sizes that `settings` leave open, also those with defaults, are drawn small.

    Raises SpecError where the spec is wrong, whatever its sizes.
    """
    examined = examine(spec, settings, search_path=search_path, library_file=False)
    if examined.scan is None or examined.failed:
        raise SpecError(examined.diagnostics)
    topology = examined.scan.topology
    for factor in _factors(topology):
        if isinstance(factor, FromFile) or (isinstance(factor, Runtime) and factor is not topology):
            dag_of(factor)  # a wrong file, or what is not there yet
    sizes = {name: st.integers(1, most) for name, most in _sizes(examined.scan).items() if name not in settings}

    def trial(drawn: dict[str, int], values: str, seed: int, graphs: tuple[Listed, ...] | None) -> Trial:
        try:
            return Trial(contained(spec, {**drawn, **settings}, search_path), GENERATOR, values, seed, graphs)
        except SpecError:  # some sizes do not suit the spec
            reject()

    return st.builds(trial, st.fixed_dictionaries(sizes), gate_values(), st.integers(0, 2**32 - 1), _graphs(topology))


def _graphs(topology: Topology) -> st.SearchStrategy[tuple[Listed, ...] | None]:
    """Small graphs for a topology that leaves them to run time."""
    if not isinstance(topology, Runtime):
        return st.none()
    return batches(min(MOST_NODES, topology.nodes), min(MOST_EDGES, topology.edges), topology.tree)


def _sizes(scan: Scan) -> dict[str, int]:
    """The names of a scan's sizes, and the largest that each is to have."""
    sizes = {"heads": WIDEST, "key": WIDEST, "value": WIDEST} | ({"track": WIDEST} if scan.track > 1 else {})
    sizes |= {name: WIDEST for name, size in _terms(scan).items() if size > 1}
    for factor in _factors(scan.topology):
        match factor:
            case Regular(axes=axes):
                sizes |= {axis.name: LONGEST if len(axes) == 1 else LONGEST - len(axes) for axis in axes}
            case CompleteTree():
                sizes |= {"arity": WIDEST, "depth": DEEPEST}
            case _:
                pass
    return sizes


def _terms(scan: Scan) -> dict[str, int]:
    """How often nodes write and read, and how many steps they take."""
    return {"writes": scan.writes, "reads": scan.reads, "steps": scan.steps}


def _factors(topology: Topology) -> tuple[Topology, ...]:
    return topology.factors if isinstance(topology, Product) else (topology,)


def contained(spec: Spec, settings: Values, search_path: Sequence[Path] = ()) -> str:
    """The spec's scan as a text that needs no other file and leaves no size open. Raises SpecError."""
    examined = examine(spec, settings, search_path=search_path, library_file=False)
    if examined.scan is None or examined.failed:
        raise SpecError(examined.diagnostics)
    scan, file = examined.scan, parse(spec.source)
    path = None if spec.path is None else spec.path.resolve()
    module = Loader(Problems(spec.source), search_folders(search_path), path).module(spec.source, file, spec.place)
    item = next(item for item in module.scans if item.name.text == scan.name)
    called = _called(module, item)
    head = _head(item, scan, settings)
    whole = replace(item, parameters=head, topology=_written(scan.topology), body=_renamed(item.body, called, module))
    definitions = [
        replace(
            definition.item,
            name=_name(name, definition.item.span),
            value=_renamed(definition.item.value, called, definition.module),
        )
        for name, definition in called.items()
    ]
    return write_file(tree.File(spec.source, (*definitions, whole), ()))


# --- definitions


def _called(module: Module, item: tree.ScanItem) -> dict[str, Definition]:
    """The definitions that a scan needs, by names that no two share."""
    definitions: dict[str, Definition] = {}
    pending = [(module, item.body)]
    while pending:
        place, expression = pending.pop()
        for call in _calls(expression):
            definition = place.names.get(call.function.text)
            if isinstance(definition, Definition) and all(definition.item is not other.item for other in definitions.values()):
                definitions[_free(call.function.text, definitions)] = definition
                pending.append((definition.module, cast(Any, definition.item.value)))
    return definitions


def _free(name: str, taken: Mapping[str, Any]) -> str:
    count = 1
    while (shown := name if count == 1 else f"{name}_{count}") in taken:
        count += 1
    return shown


def _calls(root: Any) -> Iterator[tree.Call]:
    """Every call in a part of a tree, the outer ones first."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, tree.Call):
            yield node
        if isinstance(node, tuple):
            pending += reversed(cast("tuple[Any, ...]", node))
        elif is_dataclass(node) and not isinstance(node, Span):
            pending += [getattr(node, entry.name) for entry in reversed(fields(node))]


def _renamed(node: Node, called: Mapping[str, Definition], module: Module) -> Node:
    """A part of a tree with every call of a definition by its new name."""

    def name(call: tree.Call) -> tree.Call:
        definition = module.names.get(call.function.text)
        shown = [key for key, other in called.items() if isinstance(definition, Definition) and other.item is definition.item]
        return replace(call, function=_name(shown[0], call.span)) if shown else call

    return cast(Node, _changed(node, name))


def _changed(node: Any, change: Callable[[tree.Call], tree.Call]) -> Any:
    """A part of a tree, rebuilt with its calls changed."""
    if isinstance(node, tuple):
        return tuple(_changed(element, change) for element in cast("tuple[Any, ...]", node))
    if not is_dataclass(node) or isinstance(node, (Span, type)):
        return node
    rebuilt: Any = replace(node, **{entry.name: _changed(getattr(node, entry.name), change) for entry in fields(node)})
    return change(rebuilt) if isinstance(rebuilt, tree.Call) else rebuilt


# --- sizes and graphs


def _head(item: tree.ScanItem, scan: Scan, settings: Values) -> tuple[tree.SizeParameter, ...]:
    """The head's parameters with their values; heads, key and value are always among them."""
    known: dict[str, float] = {"heads": scan.heads, "key": scan.key, "value": scan.value}
    names = [parameter.name.text for parameter in item.parameters]
    if "track" in names or "track" in settings:
        known["track"] = scan.track
    known |= {name: size for name, size in _terms(scan).items() if name in names}
    known |= {axis.name: axis.size for axis in _axes(scan.topology) if axis.size is not None and axis.name in names}
    known |= {name: value for name, value in settings.items() if name in names and name not in known}
    kept = [
        replace(parameter, default=_number(known[parameter.name.text], parameter.span))
        if parameter.name.text in known
        else parameter
        for parameter in item.parameters
    ]
    added = [name for name in known if name not in names]
    return (*kept, *(tree.SizeParameter(_name(name, item.span), _number(known[name], item.span), item.span) for name in added))


def _axes(topology: Topology) -> list[Any]:
    return [axis for factor in _factors(topology) if isinstance(factor, Regular) for axis in factor.axes]


def _name(text: str, span: Span) -> tree.Name:
    return tree.Name(text, span)


def _number(value: float, span: Span) -> tree.Expression:
    number = tree.Number(abs(float(value)), span)
    return tree.Negate(number, span) if value < 0 else number


def _written(topology: Topology) -> tree.TopologyExpression:
    """A topology as it is written, graph files as their edges. Raises SpecError where a file is wrong."""
    (item,) = parse(from_text(f"topology t = {show_topology(_inline(topology))}\n")).items
    assert isinstance(item, tree.TopologyItem)
    return item.value


def _inline(topology: Topology) -> Topology:
    """A topology with graph files as graphs that are written out, their nodes named by number."""
    match topology:
        case FromFile(tree=is_tree, span=span):
            dag = dag_of(topology)
            edges = tuple((int(tail), int(head)) for tail, head in zip(dag.tail, dag.head, strict=True))
            return Static(tuple(f"n{number}" for number in range(dag.node_count)), edges, is_tree, span)
        case Product(factors=factors):
            return replace(topology, factors=tuple(cast(Any, _inline(factor)) for factor in factors))
        case _:
            return topology
