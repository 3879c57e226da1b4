"""The words inside brackets, on either side of an equation: indices, and the ports that they are pinned to."""

from __future__ import annotations

from collections.abc import Sequence

from stmlang.check.problems import listed
from stmlang.check.typing.context import Context
from stmlang.check.vocabulary import INDEX_WORDS, known_indices
from stmlang.scan.expression import BOUND_INDICES, STATE_INDICES, STEP, WRITTEN_INDICES, Index
from stmlang.source.advice import Advice, Edit, Rewrite
from stmlang.source.span import Span
from stmlang.syntax import tree


def index_word(context: Context, name: tree.Name, pins: Sequence[Index] = ()) -> Index | None:
    """The index of a word; anything else is reported, with what was meant. `pins` are the indices that may be pinned here."""
    word = INDEX_WORDS.get(name.text)
    if word is not None:
        return word
    if name.text in context.world.dense_ports():
        note, help = _port_as_index(name, pins)
        context.error("STM2001", f"`{name.text}` is not an index", name.span, note, help=help)
    elif name.text == "head" or name.text == "heads":
        context.error(
            "STM2001", f"`{name.text}` is not written", name.span, "everything has a head axis, which equations leave out"
        )
    else:
        known = known_indices(WRITTEN_INDICES, context.world.numbers)
        note = f"the indices are {listed(known)}"
        help = context.problems.near(name.text, (*known, *BOUND_INDICES), at=name.span)
        context.error("STM2001", f"there is no index `{name.text}`", name.span, note, help=help)
    return None


def _port_as_index(name: tree.Name, pins: Sequence[Index]) -> tuple[str, Advice]:
    """The rule, and what to write where the name of a port stands for an index."""
    if not pins:
        note = f"`{name.text}` is a port, which `out` and `in` range over; no index ranges over the nodes"
        return note, Advice("say which edges are meant, `out` or `in`; what lies along the axis is summed by the scan itself")
    forms = [f"{index} = {name.text}" for index in pins]
    words = "write " + " or ".join(f"`{form}`" for form in forms)
    fixes = tuple(Rewrite((Edit(name.span, form),)) for form in forms)
    return f"`{name.text}` is a port: an index is pinned to it", Advice(words, fixes)


def pinned_port(context: Context, entry: tree.IndexUse, *, reference: bool = True) -> str | None:
    """The port that an entry pins its index to; in a reference it must lead to one edge of a node."""
    assert entry.port is not None
    word = index_word(context, entry.index)
    if word is None:
        return None
    if word == STEP:
        note = "steps are told apart by their keys, values and leaves alone: `step` is not pinned"
        help = "give a leaf the index `step`: it has a value for each"
        context.error("STM2053", "a step cannot be picked", entry.span, note, help=help)
        return None
    ports = context.world.dense_ports()
    name = entry.port.text
    if context.world.topology is None:
        return None
    if name.isdigit():
        note = f"`{entry.index.text}` ranges over ports, which are {listed(ports)}"
        context.error("STM2006", f"there is no port `{name}`", entry.port.span, note)
        return None
    if name not in ports:
        note = f"the ports of this topology are {listed(ports)}"
        help = context.problems.near(name, ports, at=entry.port.span)
        context.error("STM2006", f"there is no port `{name}`", entry.port.span, note, help=help)
        return None
    if reference and ports[name]:
        note = f"a node has any number of edges of the port `{name}`, so this names no single value"
        context.error("STM2007", f"a reference cannot be pinned to `{name}`", entry.span, note)
        return None
    return name


def pinned_place(context: Context, entry: tree.IndexUse) -> int | None:
    """The position that an entry pins an index of the state to."""
    assert entry.port is not None
    index = index_word(context, entry.index)
    if index is None:
        return None
    if not entry.port.text.isdigit():
        note = f"`{index}` counts the entries of the state's axis from 0; only `out` and `in` range over ports"
        context.error("STM2007", f"`{index}` cannot be pinned to `{entry.port.text}`", entry.span, note)
        return None
    size, place = state_size(context, index, entry.span), int(entry.port.text)
    if size is not None and place >= size:
        note = f"`{index}` takes the values 0 to {size - 1} in this scan"
        context.error("STM2052", f"`{index}` is never {place}", entry.span, note)
    return None if size is None or place >= size else place


def is_state(entry: tree.IndexUse) -> bool:
    """Whether an entry is about an index of the state."""
    return entry.index.text in (*STATE_INDICES, *BOUND_INDICES)


def state_size(context: Context, index: Index, span: Span) -> int | None:
    """The size of a state's axis; None where it is not known, which has been reported."""
    name = index.rstrip("'")
    number = context.world.numbers.get(name)
    context.world.used.add(name)
    if number is None:
        context.error(
            "STM2039", f"the size of `{name}` is not known here", span, f"it is said in the scan's head: `{name} = 4`"
        )
    return int(number) if isinstance(number, float | int) else None
