"""Left-hand sides: the gates that a scan's equations declare, and the indices each may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stmlang.check.clauses import Pins, Places, Written
from stmlang.check.problems import listed
from stmlang.check.typing.context import Context
from stmlang.check.typing.indices import index_word, is_state, pinned_place, pinned_port
from stmlang.check.typing.scope import Header
from stmlang.check.vocabulary import ALLOWED, CORE, INPUT_INDEX, RESERVED, input_indices, known_indices
from stmlang.scan.expression import BOUND_INDICES, PORT_INDICES, WRITTEN_INDICES, Index
from stmlang.source.advice import Advice, replaced
from stmlang.source.advice import written as written_as
from stmlang.source.diagnostic import Label
from stmlang.syntax import tree

_WHY = {
    "source": "what a node adds goes onto its outgoing edges, into the state there",
    "transition": "a transition maps the state of an incoming edge to that of an outgoing one",
    "mark": "a mark reads the state of an incoming edge",
    "direct": "a node's own contribution to its output passes no edge and no state",
    "q": "a query has one index",
    "k": "a key has one index",
    "v": "a value has one index",
}
_TWINS: dict[str, str] = {"out": "in", "in": "out", "key": "key'", "key'": "key", "track": "track'", "track'": "track"}
"""What stands beside an index as the other of its kind."""


@dataclass
class Declared:
    """A gate and its equations; `header` is None where a left-hand side is broken."""

    name: tree.Name
    header: Header | None
    written: list[Written] = field(default_factory=list[Written])


def declared(context: Context, equations: Sequence[tree.Equation]) -> dict[str, Declared]:
    """The gates of a scan's equations by name, in order of first mention."""
    gates: dict[str, Declared] = {}
    for equation in equations:
        name = equation.target.text
        if name not in gates:
            gates[name] = Declared(equation.target, _header(context, equation))
        gate = gates[name]
        if gate.header is None:
            continue
        pinned = _pins(context, gate.header, equation)
        if pinned is None:
            gate.header = None
        else:
            gate.written.append(Written(equation, *pinned))
    return gates


def _header(context: Context, equation: tree.Equation) -> Header | None:
    """The gate that its first equation declares."""
    name, span = equation.target.text, equation.target.span
    if name in RESERVED:
        context.error("STM1005", f"`{name}` {RESERVED[name]} and cannot name a gate", span)
        return None
    if name in context.world.numbers:
        note = "parameters and the sizes of axes are numbers that equations can use"
        context.error("STM1004", f"`{name}` is a number already", span, note, help="give the gate another name")
        return None
    indices = _indices(context, equation)
    if indices is None:
        return None
    if name in INPUT_INDEX and not indices:
        indices = input_indices(name, context.world.numbers)
    header = Header(name, indices, span)
    return header if _permitted(context, header, equation) else None


def _indices(context: Context, equation: tree.Equation) -> tuple[Index, ...] | None:
    pins: list[Index] = [index for index in PORT_INDICES if index in ALLOWED.get(equation.target.text, WRITTEN_INDICES)]
    words: list[Index | None] = [index_word(context, entry.index, pins) for entry in equation.indices]
    written = [entry.index.text for entry in equation.indices]
    for place, entry in enumerate(equation.indices):
        if entry.index.text in written[:place]:
            _twice(context, equation.target.text, entry, written)
            return None
    sound: tuple[Index, ...] = tuple(word for word in words if word is not None)
    return sound if len(sound) == len(words) else None


def _twice(context: Context, gate: str, entry: tree.IndexUse, written: list[str]) -> None:
    """Report an index that stands twice; where its twin may stand beside it, the twin is most likely meant."""
    index = entry.index.text
    twin = _TWINS.get(index)
    note, help = "each index of a gate is another one", "leave it away"
    if twin is not None and twin in ALLOWED.get(gate, WRITTEN_INDICES) and twin not in written and entry.port is None:
        rows = f"`{gate}[{index}, {twin}]`" if not index.endswith("'") else f"`{gate}[{twin}, {index}]`"
        meaning = "a matrix has a row and a column index" if index not in PORT_INDICES else "a pair of edges has one index each"
        note, help = f"{meaning}: {rows}", written_as(entry.index.span, twin)
    context.error("STM2002", f"the index `{index}` stands twice", entry.span, note, help=help)


def _permitted(context: Context, header: Header, equation: tree.Equation) -> bool:
    """Whether the gate may have its indices; a helper gate may have any."""
    name = header.name
    allowed = ALLOWED.get(name, WRITTEN_INDICES)
    for index, entry in zip(header.indices, equation.indices, strict=False):
        if index in BOUND_INDICES:
            row, column, note = index[:-2], index[:-1], "it stands in sums on the right, where matrices are multiplied"
            help = f"write `sum(a[{row}, {index}] * b[{index}, {column}], over = {index})`"
            context.error("STM2003", f"no gate has the index `{index}`", entry.span, note, help=help)
            return False
        if index not in allowed:
            known = known_indices(allowed, context.world.numbers)
            why = f"{_WHY[name]} of the state" if name in INPUT_INDEX and len(known) > 1 else _WHY[name]
            note = f"{why}; it can have {listed(known)}"
            context.error(
                "STM2003", f"`{name}` cannot have the index `{index}`", entry.span, note, help=_instead(name, entry.index)
            )
            return False
        if name in CORE and index.endswith("'") and index.rstrip("'") not in header.indices:
            row = index.rstrip("'")
            note = f"a matrix has the row index `{row}`, of the result, and the column index `{index}`, of what it acts on"
            context.error(
                "STM2004",
                f"`{index}` stands alone",
                entry.span,
                note,
                help=replaced(f"write `{name}[{row}, {index}]`", entry.index.span, f"{row}, {index}"),
            )
            return False
    if name in INPUT_INDEX and INPUT_INDEX[name] not in header.indices:
        note = f"{_WHY[name]}, `{INPUT_INDEX[name]}`"
        context.error(
            "STM2003", f"`{name}` needs its index", equation.target.span, note, help=f"write `{name} = ...`, which has it"
        )
        return False
    return True


def _instead(name: str, index: tree.Name) -> str | Advice | None:
    return {
        ("source", "in"): replaced("`source` has `out`: the edges that a node writes to", index.span, "out"),
        ("mark", "out"): replaced("`mark` has `in`: the edges that a node reads", index.span, "in"),
        ("mark", "track'"): "the output has no track axis: `mark[track]` is a row that is multiplied and summed",
        ("direct", "out"): "what goes onto edges is `source[out]`",
        ("direct", "in"): "what is read from edges is `mark[in]`",
    }.get((name, index.text))


def _pins(context: Context, header: Header, equation: tree.Equation) -> tuple[Pins, Places] | None:
    """The ports and positions that an equation's left-hand side names; its indices must be those of the gate."""
    indices = _indices(context, equation)
    if indices is None:
        return None
    if set(indices) != set(header.indices) and not (header.name in INPUT_INDEX and not indices):
        has = f"`{header.name}[{', '.join(header.indices)}]`" if header.indices else f"`{header.name}` without indices"
        labels = [Label(header.span, "first written here")]
        note = "all equations of a gate have the same indices"
        context.error("STM2005", f"this gate was declared as {has}", equation.target.span, note, labels=labels)
        return None
    pins: dict[Index, str] = {}
    places: dict[Index, int] = {}
    for index, entry in zip(indices, equation.indices, strict=False):
        if entry.port is None:
            continue
        port = None if is_state(entry) else pinned_port(context, entry, reference=False)
        place = pinned_place(context, entry) if is_state(entry) else None
        if port is None and place is None:
            return None
        pins |= {} if port is None else {index: port}
        places |= {} if place is None else {index: place}
    ports: Pins = tuple((index, pins[index]) for index in header.indices if index in pins)
    positions: Places = tuple((index, places[index]) for index in header.indices if index in places)
    return ports, positions
