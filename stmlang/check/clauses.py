"""Equations of one gate: which of them holds for which ports, and that exactly one does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from stmlang.check.problems import Problems, listed
from stmlang.scan.expression import PORT_INDICES, Index
from stmlang.source.advice import Edit, inserted
from stmlang.source.diagnostic import Label
from stmlang.source.span import Span
from stmlang.syntax import tree

_NAME = re.compile(r"\w+")
_BRACKET = re.compile(r"\s*\[(?:[^\]#]|#[^\r\n]*)*\]")

Pins = tuple[tuple[Index, str], ...]
Places = tuple[tuple[Index, int], ...]


@dataclass(frozen=True)
class Written:
    """An equation with the ports and the positions on state axes that it is pinned to, in the order of its gate's indices."""

    equation: tree.Equation
    pins: Pins
    places: Places = ()

    @property
    def head(self) -> Span:
        """The left-hand side."""
        return head_of(self.equation.span)


def head_of(equation: Span) -> Span:
    """The left-hand side of an equation: a name, and a bracket if one follows, comments and line ends in it included."""
    text = equation.file.text
    name = _NAME.match(text, equation.start, equation.end)
    assert name is not None
    bracket = _BRACKET.match(text, name.end(), equation.end)
    return Span(equation.file, equation.start, (bracket or name).end())


def with_index(equation: Span, index: str) -> Edit:
    """The left-hand side of an equation with one more index."""
    head = head_of(equation)
    name, _, bracketed = head.text.partition("[")
    entries = bracketed.removesuffix("]").strip()
    return Edit(head, f"{name.strip()}[{entries}, {index}]" if entries else f"{name}[{index}]")


def in_force(
    problems: Problems, gate: str, indices: Sequence[Index], written: list[Written], names: list[str]
) -> list[list[Written]]:
    """The equations that hold somewhere, those for the same ports together, whose positions differ. Ties and gaps are errors;
    one that never holds is left out with a warning.

    For each choice of ports, of the equations that match it the one with the most pins holds. `names` are the ports.
    """
    groups: dict[Pins, list[Written]] = {}
    for clause in written:
        group = groups.setdefault(clause.pins, [])
        first = next((other for other in group if other.places == clause.places), None)
        if first is None:
            group.append(clause)
            continue
        labels = [Label(first.head, "the first one")]
        pinned = " for the same ports" if clause.pins else " for the same positions" if clause.places else ""
        problems.error("STM2009", f"`{gate}` has two equations{pinned}", clause.head, "every gate is said once", labels=labels)
    table = {pins: group[0] for pins, group in groups.items()}
    over: list[Index] = [index for index in indices if index in PORT_INDICES]
    if not any(pins for pins in table):
        return list(groups.values())
    used: dict[Pins, None] = {}
    gaps: list[str] = []
    for ports in product(names, repeat=len(over)):
        choice: Pins = tuple(zip(over, ports, strict=True))
        holding = _holding(table, choice)
        if not holding:
            gaps.append(", ".join(f"{index} = {port}" for index, port in zip(over, ports, strict=True)))
        elif len(holding) > 1:
            _tie(problems, gate, holding, ", ".join(f"{index} = {port}" for index, port in zip(over, ports, strict=True)))
        used.update(dict.fromkeys(clause.pins for clause in holding))
    if gaps:
        _gap(problems, gate, indices, written[0], gaps)
    for pins, clause in table.items():
        if pins not in used:
            problems.warn("STM2042", "this equation never holds", clause.head, "more specific ones hold for all of its ports")
    return [group for pins, group in groups.items() if pins in used]


def _holding(table: dict[Pins, Written], ports: Pins) -> list[Written]:
    """The most specific equations for a choice of ports: with all pins, else with one, else without."""
    if ports in table:
        return [table[ports]]
    single = [table[pin,] for pin in ports if (pin,) in table] if len(ports) > 1 else []
    return single or ([table[()]] if () in table else [])


def _tie(problems: Problems, gate: str, holding: list[Written], ports: str) -> None:
    first, second = sorted(holding, key=lambda clause: clause.equation.span.start)
    labels = [Label(first.head, "the other one")]
    note = "of several equations the one with the most pinned indices holds, and here both have one"
    help = f"say which: `{gate}[{ports}] = ...`"
    message = f"two equations of `{gate}` hold for `{ports}`"
    problems.error("STM2009", message, second.head, note, help=help, labels=labels)


def _gap(problems: Problems, gate: str, indices: Sequence[Index], first: Written, gaps: list[str]) -> None:
    shown = listed([f"{gate}[{ports}]" for ports in gaps[:3]]) + (f" and {len(gaps) - 3} more" if len(gaps) > 3 else "")
    note = f"there is no equation for {shown}"
    default = f"{gate}[{', '.join(indices)}] = 0"
    help = inserted(f"add `{default}`, which holds wherever no other equation does", first.equation.span, f"; {default}")
    problems.error("STM2010", f"the equations of `{gate}` leave gaps", first.head, note, help=help)
