"""Topologies: from how they are written to what they are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from math import prod
from pathlib import PurePath
from typing import assert_never

from stmlang.check.foreign_names import TOPOLOGIES
from stmlang.check.inline_graphs import Graphs
from stmlang.check.modules import Module, NamedTopology
from stmlang.check.problems import arrows, listed
from stmlang.check.search_path import EscapeError, Place, locate, looked_in
from stmlang.check.sizes import Sizer
from stmlang.check.typing.scope import NAMED_SIZE, SIZE, NoNumber, Numbers
from stmlang.check.vocabulary import CORE, INPUTS, MEANT, RESERVED, SIZES
from stmlang.scan.graph_files import FORMATS, SUFFIXES, suffix_of
from stmlang.scan.sizes import SIZE_LIMIT
from stmlang.scan.topology import Axis, CompleteTree, FromFile, Product, Regular, Runtime, Static, Topology, ports
from stmlang.source.advice import replaced, written
from stmlang.source.span import Span
from stmlang.source.suggest import nearest
from stmlang.syntax import tree

MOST_FACTORS = 8
MOST_AXES = 16
DEEPEST_NAME = 100

Factor = Regular | Static | CompleteTree | FromFile | Runtime

_FORMS = {
    "chain": "`chain(time)`",
    "grid": "`grid(rows, cols)`",
    "tree": '`tree(arity = 2, depth = 4)`, `tree { a, b -> root }`, `tree from "file"` or `tree(nodes <= 64)`',
    "dag": '`dag { a -> b, c }`, `dag from "file"` or `dag(nodes <= 64, edges <= 160)`',
}


class Topologies:
    """Builds the topology of one scan. The sizes of its axes join `numbers` as they are found."""

    def __init__(self, sizer: Sizer, graphs: Graphs, numbers: Numbers, defaults: Numbers, places: Sequence[Place]) -> None:
        self._problems = sizer.problems
        self._sizer = sizer
        self._graphs = graphs
        self._numbers = numbers
        self._defaults = defaults
        self._search = places
        self._open: list[NamedTopology] = []
        self._named_factors: dict[NamedTopology, list[Factor] | None] = {}

    def build(self, expression: tree.TopologyExpression, module: Module) -> Topology | None:
        """The topology of an expression, None after an error."""
        factors = self._factors(expression, module, self._numbers)
        if factors is None:
            return None
        topology = _merged(factors, expression.span)
        return topology if self._sound(topology) else None

    def _factors(self, expression: tree.TopologyExpression, module: Module, numbers: Numbers) -> list[Factor] | None:
        match expression:
            case tree.TopologyProduct(factors=written):
                factor_lists = [self._factors(factor, module, numbers) for factor in written]
                sound = [factors for factors in factor_lists if factors is not None]
                flat = [factor for factors in sound for factor in factors]
                # More than this is refused below; names of products of names could grow it without bound.
                return flat[: MOST_FACTORS + MOST_AXES + 1] if len(sound) == len(factor_lists) else None
            case tree.TopologyName():
                return self._named(expression, module)
            case tree.TopologyCall():
                factor = self._call(expression, module, numbers)
            case tree.TopologyRuntime():
                factor = self._runtime(expression, module, numbers)
            case tree.TopologyInline():
                if expression.kind.text not in ("tree", "dag"):
                    self._wrong_kind(expression.kind, expression.span)
                    return None
                factor = self._graphs.build(expression)
            case tree.TopologyFile():
                factor = self._file(expression, module)
            case _:
                assert_never(expression)
        return None if factor is None else [factor]

    # --- names

    def _named(self, expression: tree.TopologyName, module: Module) -> list[Factor] | None:
        name, span = expression.name.text, expression.span
        topology = module.names.get(name)
        if not isinstance(topology, NamedTopology):
            if not module.unknown(name):
                self._unknown(name, span, module)
            return None
        if topology in self._named_factors:
            return self._named_factors[topology]
        if topology in self._open:
            cycle = [*self._open[self._open.index(topology) :], topology]
            shown = arrows([item.item.name.text for item in cycle])
            self._problems.error("STM1009", f"topologies are named in a circle: `{shown}`", span)
            return None
        if len(self._open) >= DEEPEST_NAME:
            note = f"a topology's name may lead to another one's {DEEPEST_NAME} times"
            self._problems.error("STM3014", "topologies are named too deeply", span, note)
            return None
        self._open.append(topology)
        # A topology with a name is the same wherever it is used: it sees its own axes, not the parameters of a scan.
        factors = self._factors(topology.item.value, topology.module, {})
        self._open.pop()
        self._named_factors[topology] = factors
        return factors

    def _what(self) -> str:
        return NAMED_SIZE if self._open else SIZE

    def _unknown(self, name: str, span: Span, module: Module) -> None:
        if name in _FORMS:
            self._problems.error("STM3002", f"`{name}` says too little", span, help=f"write {_FORMS[name]}")
        elif name in module.names:
            self._problems.error("STM1011", f"`{name}` is a definition, not a topology", span)
        else:
            help = self._problems.near(name, chain(module.topologies(), _FORMS), at=span)
            if help is None and name.lower() in TOPOLOGIES:
                help = f"write {_FORMS[TOPOLOGIES[name.lower()]]}"
            self._problems.error("STM1003", f"there is no topology `{name}`", span, help=help)

    # --- calls

    def _call(self, call: tree.TopologyCall, module: Module, numbers: Numbers) -> Factor | None:
        kind = call.kind.text
        if kind in ("chain", "grid"):
            return self._regular(call, module, numbers)
        if kind == "tree":
            return self._complete_tree(call, module, numbers)
        self._wrong_kind(call.kind, call.span)
        return None

    def _wrong_kind(self, kind: tree.Name, span: Span) -> None:
        if kind.text in _FORMS:
            self._problems.error("STM3002", f"a {kind.text} is not written like this", span, help=f"write {_FORMS[kind.text]}")
        else:
            note = f"the kinds are {listed(_FORMS)}"
            meant = TOPOLOGIES.get(kind.text.lower())
            help = self._problems.near(kind.text, _FORMS, at=kind.span)
            if meant is not None:
                help = f"write {_FORMS[meant]}" if meant == "dag" else written(kind.span, meant)
            self._problems.error("STM3001", f"there is no kind of topology `{kind.text}`", kind.span, note, help=help)

    def _regular(self, call: tree.TopologyCall, module: Module, numbers: Numbers) -> Regular | None:
        kind, count = call.kind.text, len(call.parameters)
        if count == 0 or (kind == "chain" and count > 1):
            wrong = f"a chain has one axis, not {count}" if kind == "chain" else "a grid has at least one axis"
            help = "write `chain(time)`" if count == 0 and kind == "chain" else "write `grid(rows, cols)`"
            self._problems.error("STM3002", wrong, call.span, help=help)
            return None
        axes: list[Axis] = []
        sound = True
        for parameter in call.parameters:
            size = self._axis(parameter, module, numbers)
            sound = sound and size is not NoNumber.BROKEN
            axes.append(Axis(parameter.name.text, None if isinstance(size, NoNumber) else size))
        return Regular(tuple(axes), call.span) if sound else None

    def _axis(self, parameter: tree.SizeParameter, module: Module, numbers: Numbers) -> int | NoNumber:
        name = parameter.name.text
        taken = RESERVED.get(name)
        if taken is None and name in (*INPUTS, *CORE, *SIZES, "edge"):
            taken = MEANT
        if taken is not None:
            self._problems.error("STM1005", f"`{name}` {taken} and cannot name an axis", parameter.name.span)
            return NoNumber.BROKEN
        size = self._sizer.size(parameter, module, numbers, self._defaults.get(name), 0, self._what())
        # Later axes may be given in terms of this one, and so may equations.
        numbers[name] = self._numbers[name] = size
        return size

    def _complete_tree(self, call: tree.TopologyCall, module: Module, numbers: Numbers) -> CompleteTree | None:
        sizes = self._sizes(call.parameters, {"arity": 1, "depth": 0}, call, module, numbers)
        if sizes is None or not self._small(_tree_nodes(sizes["arity"], sizes["depth"]), call.span):
            return None
        return CompleteTree(sizes["arity"], sizes["depth"], call.span)

    def _runtime(self, call: tree.TopologyRuntime, module: Module, numbers: Numbers) -> Runtime | None:
        kind = call.kind.text
        if kind not in ("tree", "dag"):
            self._wrong_kind(call.kind, call.span)
            return None
        # At most one edge leaves each node of a tree, so that its number of nodes says it all.
        allowed = {"nodes": 1} if kind == "tree" else {"nodes": 1, "edges": 0}
        parameters = [tree.SizeParameter(limit.name, limit.bound, limit.span) for limit in call.limits]
        sizes = self._sizes(parameters, allowed, call, module, numbers)
        return None if sizes is None else Runtime(sizes["nodes"], sizes.get("edges", sizes["nodes"]), kind == "tree", call.span)

    def _sizes(
        self,
        parameters: Sequence[tree.SizeParameter],
        allowed: dict[str, int],
        call: tree.TopologyCall | tree.TopologyRuntime,
        module: Module,
        numbers: Numbers,
    ) -> dict[str, int] | None:
        """Named sizes, each of the allowed ones once and none below its least value."""
        by_name: dict[str, tree.SizeParameter] = {}
        help = f"write {_FORMS[call.kind.text]}"
        for parameter in parameters:
            name = parameter.name.text
            if name not in allowed or name in by_name:
                wrong = f"`{name}` is given twice" if name in by_name else f"a {call.kind.text} has no `{name}`"
                self._problems.error("STM3002", wrong, parameter.span, f"it has {listed(allowed)} here", help=help)
                return None
            by_name[name] = parameter
        if len(by_name) < len(allowed):
            lacking = listed(name for name in allowed if name not in by_name)
            self._problems.error("STM3002", f"this {call.kind.text} lacks {lacking}", call.span, help=help)
            return None
        sizes: dict[str, int] = {}
        for name, parameter in by_name.items():
            size = self._sizer.size(parameter, module, numbers, self._defaults.get(name), allowed[name], self._what())
            if size is NoNumber.UNBOUND:
                note = "only the axes of chains and grids may stay without a size"
                help = f"write `{name} = 2`, or set it from outside"
                self._problems.error("STM1015", f"`{name}` has no value", parameter.span, note, help=help)
            elif not isinstance(size, NoNumber):
                sizes[name] = size
            numbers[name] = self._numbers[name] = size
        return sizes if len(sizes) == len(allowed) else None

    def _file(self, item: tree.TopologyFile, module: Module) -> FromFile | None:
        if item.kind.text not in ("tree", "dag"):
            self._wrong_kind(item.kind, item.span)
            return None
        form = item.format
        if form is not None and form.text not in FORMATS:
            note = f"the formats are {listed(FORMATS)}"
            help = self._problems.near(form.text, FORMATS, at=form.span)
            self._problems.error("STM3402", f"there is no graph format `{form.text}`", form.span, note, help=help)
            return None
        places = [module.place, *self._search]
        try:
            located = locate(item.path, places)
        except EscapeError:
            rule = (
                "graph files are read from the folder of the spec and the search path; `..` and absolute paths are not followed"
            )
            self._problems.error("STM3011", f'"{item.path}" lies outside of where a spec may read', item.path_span, rule)
            return None
        if located is None:
            rule = looked_in(places)
            files = chain.from_iterable(_files_beside(item.path, place) for place in places)
            beside = (file for file in files if _alike(item.path, file))
            help = self._problems.near(item.path, beside, at=item.path_span, put='"{}"')
            self._problems.error("STM3010", f'there is no file "{item.path}"', item.path_span, rule, help=help)
            return None
        if form is None and suffix_of(item.path) not in SUFFIXES:
            self._unknown_suffix(item)
            return None
        return FromFile(str(located.resolved), None if form is None else form.text, item.kind.text == "tree", item.span)

    def _unknown_suffix(self, item: tree.TopologyFile) -> None:
        """Report a path whose suffix names no format."""
        suffix = suffix_of(item.path)
        message = f"the suffix `{suffix}` names no graph format" if suffix else f'"{item.path}" has no suffix'
        note = f"the suffix tells the format: {', '.join(SUFFIXES)}"
        near = nearest(suffix, SUFFIXES) if suffix else None
        help = "say which format it has, `as edgelist`, or convert it to one of them"
        if near is not None and item.path.lower().endswith(suffix):
            right = f'"{item.path[: -len(suffix)]}{near}"'
            help = replaced(f"did you mean `{right}`? If not, {help}", item.path_span, right)
        self._problems.error("STM3402", message, item.path_span, note, f"the formats are {listed(FORMATS)}", help=help)

    # --- what holds of the whole

    def _sound(self, topology: Topology) -> bool:
        factors = topology.factors if isinstance(topology, Product) else (topology,)
        axes = [axis for factor in factors if isinstance(factor, Regular) for axis in factor.axes]
        if len(factors) > MOST_FACTORS:
            note = f"a product has at most {MOST_FACTORS} factors, all chains and grids together being one"
            self._problems.error("STM3014", f"this product has more than {MOST_FACTORS} factors", topology.span, note)
            return False
        if len(axes) > MOST_AXES:
            note = f"a grid has at most {MOST_AXES} axes"
            self._problems.error("STM3014", f"this grid has more than {MOST_AXES} axes", topology.span, note)
            return False
        names = [port.name for port in ports(topology)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            note = "an axis names a port and a size, so that each needs a name of its own"
            self._problems.error("STM3003", f"the axis {listed(twice)} occurs twice", topology.span, note)
            return False
        return self._small(prod(_nodes(factor) for factor in factors), topology.span)

    def _small(self, nodes: int, span: Span) -> bool:
        if nodes < SIZE_LIMIT:
            return True
        shown = f"{nodes:,}" if nodes < 10**18 else "more than 10^18"
        note = "nodes and edges are numbered in 32 bits"
        self._problems.error("STM3303", f"this topology has {shown} nodes", span, note, help="make it smaller")
        return False


def _merged(factors: list[Factor], span: Span) -> Topology:
    """A product with its regular factors made one, which stands where the first of them stood."""
    regular = [factor for factor in factors if isinstance(factor, Regular)]
    if len(factors) == 1:
        return factors[0]
    merged = Regular(tuple(axis for factor in regular for axis in factor.axes), span)
    if len(regular) == len(factors):
        return merged
    flat: list[Factor] = []
    for factor in factors:
        if not isinstance(factor, Regular):
            flat.append(factor)
        elif factor is regular[0]:
            flat.append(merged)
    return Product(tuple(flat), span)


def _nodes(factor: Factor) -> int:
    """How many nodes a factor has, as far as that is known without reading a file."""
    match factor:
        case Regular(axes=axes):
            return prod(1 if axis.size is None else axis.size for axis in axes)
        case Static(nodes=nodes):
            return len(nodes)
        case CompleteTree(arity=arity, depth=depth):
            return 1 if arity is None or depth is None else _tree_nodes(arity, depth)
        case Runtime(nodes=nodes):
            return nodes
        case FromFile():
            return 1
        case _:
            assert_never(factor)


def _tree_nodes(arity: int, depth: int) -> int:
    """`1 + arity + ... + arity^depth`; any number beyond the limit once the sum is."""
    if arity == 1:
        return depth + 1
    total, level = 1, 1
    for _ in range(depth):
        level *= arity
        total += level
        if total >= SIZE_LIMIT:
            break
    return total


def _alike(path: str, other: str) -> bool:
    """Whether one file's name may be a misspelling of another: suffix and folder, where they are the same, make no likeness."""
    missing, beside = PurePath(path), PurePath(other)
    if missing.parent != beside.parent or missing.suffix.lower() != beside.suffix.lower():
        return True
    return missing.stem.lower() == beside.stem.lower() or nearest(missing.stem, (beside.stem,)) is not None


def _files_beside(path: str, place: Place) -> list[str]:
    """Paths of the files in the folder where one is missing."""
    folder, slash, _ = path.rpartition("/")
    try:
        beside = islice(sorted((place.directory / folder).iterdir()), 1000)
        return [f"{folder}{slash}{file.name}" for file in beside if file.is_file()]
    except (OSError, ValueError):
        return []
