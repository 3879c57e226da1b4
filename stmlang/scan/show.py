"""A scan and its expressions as text: for `--emit scan`, for explanations and for error messages.

What the caller supplies is marked with `@`: `@source[out]` is the leaf named `source`, `@k[key]` the key as given. Everything
else reads as it is written in the language. The text depends on nothing but the scan.
"""

from __future__ import annotations

import re
from typing import TypeAlias, assert_never

from stmlang.scan.expression import (
    Apply,
    Bind,
    Degree,
    Expr,
    Eye,
    Finite,
    Function,
    GateRef,
    InputRef,
    LeafRef,
    LineMask,
    Neighbour,
    Normalize,
    Number,
    Power,
    Product,
    Reduce,
    Spectral,
    Split,
    Spread,
    Stack,
    Sum,
)
from stmlang.scan.scan import Clause, Direction, Feature, Gate, Initial, Leaf, Scan
from stmlang.scan.topology import OPEN, CompleteTree, FromFile, Regular, Runtime, Static, Topology, kind_of, ports
from stmlang.scan.topology import Product as TopologyProduct

_SUM, _PRODUCT, _MINUS, _POWER, _ATOM = range(5)
"""How tightly the outermost sign of a text binds; an operand that binds less tightly than its place asks is bracketed."""

_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "largest"}
_NORMALIZATIONS = {"softmax": "softmax", "l1": "l1norm", "l2": "l2norm"}


def show_number(value: float) -> str:
    """A number as short as it can be written without changing it: `1`, `0.25`, `1e-06`."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


_Atom: TypeAlias = (
    Spread
    | LeafRef
    | InputRef
    | GateRef
    | Apply
    | Reduce
    | Normalize
    | Stack
    | Split
    | Eye
    | Spectral
    | Degree
    | Neighbour
    | LineMask
)


def show_expr(expr: Expr) -> str:
    """An expression on one line, with no more brackets than it needs."""
    return _show(expr)[0]


def _show(expr: Expr) -> tuple[str, int]:
    """The text of an expression and how tightly it binds."""
    match expr:
        case Number(value=value):
            return show_number(value), _MINUS if value < 0 else _ATOM
        case Sum(terms=((True, term),)):
            return f"-{_operand(term, _POWER)}", _MINUS
        case Sum(terms=terms):
            return _signed(terms), _SUM
        case Product(factors=factors):
            return _ratio(factors), _PRODUCT
        case Power(base=base, exponent=exponent):
            return f"{_operand(base, _ATOM)} ^ {_operand(exponent, _ATOM)}", _POWER
        case Finite(argument=argument):
            return _show(argument)
        case _:
            return _atom(expr), _ATOM


def _atom(expr: _Atom) -> str:
    """The text of an expression that needs no brackets anywhere."""
    match expr:
        case Spread(low=low, high=high):
            return f"spread({show_number(low)}, {show_number(high)})"
        case LeafRef(leaf=leaf, indices=indices):
            return f"@{leaf}{_brackets(list(indices))}"
        case InputRef(name=name, bind=bind):
            return f"@{name}{_binds(bind)}"
        case GateRef(gate=gate, bind=bind):
            return f"{gate}{_binds(bind)}"
        case Apply(function=Function.DIVISOR, arguments=(argument,)):
            return f"max(1, {show_expr(argument)})"
        case Apply(function=function, arguments=arguments):
            return f"{function.value}({_list(arguments)})"
        case Reduce(kind=kind, over=over, argument=argument):
            return f"{_REDUCTIONS[kind]}({show_expr(argument)}, over = {over})"
        case Normalize(kind=kind, over=over, argument=argument):
            return f"{_NORMALIZATIONS[kind]}({show_expr(argument)}, over = {over})"
        case Stack():
            return _stack(expr)
        case Split(arguments=arguments):
            return f"split({_list(arguments)})[out]"
        case Eye(first=first, second=second):
            return f"eye[{first}, {second}]"
        case Spectral(pairs=pairs, argument=argument):
            over = ", ".join(index for pair in pairs for index in pair)
            return f"norm({show_expr(argument)}, over = {over})"
        case Degree(over=over):
            return f"degree({over})"
        case Neighbour(over=over):
            return f"neighbour({over})"
        case LineMask():
            return "multitree[out, in]"
        case _:
            assert_never(expr)


def _stack(expr: Stack) -> str:
    """`[[a, b], [c, d]][key, key']`, and where not every position has an entry `[0: a, else: b][key]`."""
    indices, level = [expr.index], [expr]
    while all(stack.rest is None for stack in level):
        inner = [entry for stack in level for _, entry in stack.entries]
        if not all(isinstance(entry, Stack) and entry.index == getattr(inner[0], "index", None) for entry in inner):
            break
        level = [entry for entry in inner if isinstance(entry, Stack)]
        indices.append(level[0].index)
    return f"{_entries(expr, len(indices))}[{', '.join(indices)}]"


def _entries(expr: Expr, levels: int) -> str:
    if levels == 0 or not isinstance(expr, Stack):
        return show_expr(expr)
    if expr.rest is None:
        return f"[{', '.join(_entries(entry, levels - 1) for _, entry in sorted(expr.entries, key=lambda pair: pair[0]))}]"
    entries = [f"{place}: {_entries(entry, levels - 1)}" for place, entry in expr.entries]
    return f"[{', '.join([*entries, f'else: {_entries(expr.rest, levels - 1)}'])}]"


def _list(arguments: tuple[Expr, ...]) -> str:
    return ", ".join(show_expr(argument) for argument in arguments)


def _operand(expr: Expr, tightness: int) -> str:
    text, binds = _show(expr)
    return text if binds >= tightness else f"({text})"


def _signed(terms: tuple[tuple[bool, Expr], ...]) -> str:
    """`-a + b - c`. A term that is itself a sum is bracketed, and one with a minus of its own where it does not come first."""
    first = f"-{_operand(terms[0][1], _POWER)}" if terms[0][0] else _operand(terms[0][1], _PRODUCT)
    later_terms = [f" {'-' if negative else '+'} {_later(term, _PRODUCT)}" for negative, term in terms[1:]]
    return first + "".join(later_terms)


def _later(expr: Expr, tightness: int) -> str:
    """An operand that does not come first."""
    text, binds = _show(expr)
    return text if binds >= tightness and binds != _MINUS else f"({text})"


def _ratio(factors: tuple[tuple[bool, Expr], ...]) -> str:
    """`a * b / c`, or `1 / a` where the first factor is inverted."""
    first = f"1 / {_later(factors[0][1], _POWER)}" if factors[0][0] else _operand(factors[0][1], _MINUS)
    later_factors = [f" {'/' if inverted else '*'} {_later(factor, _POWER)}" for inverted, factor in factors[1:]]
    return first + "".join(later_factors)


def _brackets(entries: list[str]) -> str:
    return f"[{', '.join(entries)}]" if entries else ""


def _binds(bind: tuple[Bind, ...]) -> str:
    return _brackets([_pin(entry) if entry.index is None else entry.index for entry in bind])


def _pin(entry: Bind) -> str:
    return f"{entry.declared} = {entry.port if entry.place is None else entry.place}"


# --- topologies ------------------------------------------------------------------------------------------------------


def show_topology(topology: Topology) -> str:
    """A topology as it would be written in a spec."""
    match topology:
        case Regular(axes=axes):
            return f"{kind_of(topology)}({', '.join(_size(axis.name, axis.size) for axis in axes)})"
        case CompleteTree(arity=arity, depth=depth):
            return f"tree({_size('arity', arity)}, {_size('depth', depth)})"
        case FromFile(path=path, format=format, tree=tree):
            return f'{_word(tree)} from "{path}"' + (f" as {format}" if format else "")
        case Runtime(nodes=nodes, tree=True):
            return f"tree(nodes <= {nodes})"
        case Runtime(nodes=nodes, edges=edges):
            return f"dag(nodes <= {nodes}, edges <= {edges})"
        case Static(tree=tree):
            return f"{_word(tree)} {{ {'; '.join(_arrows(topology))} }}"
        case TopologyProduct(factors=factors):
            return " * ".join(show_topology(factor) for factor in factors)
        case _:
            assert_never(topology)


def _word(tree: bool) -> str:
    return "tree" if tree else "dag"


def _size(name: str, size: int | None) -> str:
    return name if size is None else f"{name} = {size}"


def _arrows(graph: Static) -> list[str]:
    """One arrow for each edge in order, then the nodes that no edge touches."""
    touched = {end for edge in graph.edges for end in edge}
    names = [*graph.nodes, ""]  # OPEN is -1: the empty name
    arrows = [f"{names[tail]} -> {names[head]}".strip() for tail, head in graph.edges]
    return arrows + [name for number, name in enumerate(graph.nodes) if number not in touched - {OPEN}]


# --- scans -----------------------------------------------------------------------------------------------------------


def show_scan(scan: Scan) -> str:
    """A typed scan, one fact a line: its topology, sizes and modes, its leaves, and its gates in dependency order."""
    names = [port.name for port in ports(scan.topology)]
    directions = ", ".join(show_direction(direction, names) for direction in scan.directions)
    lines = [
        f"scan {scan.name}",
        f"    topology    {show_topology(scan.topology)}",
        f"    sizes       heads = {scan.heads}, key = {scan.key}, value = {scan.value}, track = {scan.track}{_terms(scan)}",
        f"    directions  {directions}{_own(scan)}{' concat' if scan.combine == 'concat' else ''}",
        f"    stabilize   {scan.stabilize.value}",
        f"    normalize   {scan.normalize}{f'(eps = {show_number(scan.epsilon)})' if scan.epsilon else ''}",
        "leaves",
        *(f"    {show_leaf(leaf)}" for leaf in scan.leaves),
        "gates",
        *(f"    {line}" for gate in scan.gates for line in _gate(gate)),
    ]
    return "\n".join(lines) + "\n"


def _terms(scan: Scan) -> str:
    """How often nodes write and read, and how many steps they take, where it is not one."""
    terms = (("writes", scan.writes), ("reads", scan.reads), ("steps", scan.steps))
    return "".join(f", {name} = {size}" for name, size in terms if size > 1)


def _own(scan: Scan) -> str:
    """The inputs of which each direction has one of its own."""
    return f" own {' '.join(scan.own)}" if scan.own else ""


def show_direction(direction: Direction, names: list[str]) -> str:
    """`+rows -cols`."""
    return " ".join(f"{'+' if sense > 0 else '-'}{name}" for name, sense in zip(names, direction.senses, strict=True))


def show_leaf(leaf: Leaf) -> str:
    """`@source[out] = linear(x, bias = -4, weight = 0.5), per direction`."""
    match leaf.kind:
        case "linear":
            features = [_feature(feature) for feature in leaf.features]
            inside = ", ".join([*features, f"bias = {_initial(leaf.bias)}", f"weight = {show_number(leaf.weight)}"])
        case "param":
            spread = [f"weight = {show_number(leaf.weight)}"] if leaf.weight else []
            inside = ", ".join([_initial(leaf.bias), *spread])
        case "given":
            inside = ", ".join(_bounds(leaf))
        case _:
            assert_never(leaf.kind)
    tail = f"{', per direction' if leaf.directional else ''}{', per step' if leaf.stepped else ''}"
    return f"@{leaf.name}{_brackets(list(leaf.indices))} = {leaf.kind}({inside}){tail}"


def spoken(text: str, scan: Scan) -> str:
    """A text with expressions in it as their author would write them: `linear(x)` for `@source[out]`, `k` for `@k`."""
    for leaf in sorted(scan.leaves, key=lambda leaf: -len(leaf.name)):
        inside = {
            "linear": ", ".join(map(_feature, leaf.features)),
            "param": _initial(leaf.bias),
            "given": ", ".join(_bounds(leaf)),
        }
        own = rf"@{re.escape(leaf.name)}(\[[^\]]*\])?(?![\w.\[])"
        text = re.sub(own, f"{leaf.kind}({inside[leaf.kind]})", text)
    return re.sub(r"@([qkv])(?![\w.])", r"\1", text)


def _feature(feature: Feature) -> str:
    return feature.name + (f"[{feature.index}]" if feature.index else "")


def _initial(initial: Initial) -> str:
    low, high = show_number(initial.low), show_number(initial.high)
    return low if initial.low == initial.high else f"spread({low}, {high})"


def _bounds(leaf: Leaf) -> list[str]:
    bounds = (("low", leaf.low), ("high", leaf.high))
    return [f"{name} = {show_number(bound)}" for name, bound in bounds if abs(bound) != float("inf")]


def _gate(gate: Gate) -> list[str]:
    tail = "    # per direction" if gate.directional else ""
    return [f"{gate.name}{_clause_indices(gate, clause)} = {show_expr(clause.value)}{tail}" for clause in gate.clauses]


def _clause_indices(gate: Gate, clause: Clause) -> str:
    pinned = dict(clause.ports)
    return _brackets([f"{index} = {pinned[index]}" if index in pinned else index for index in gate.indices])
