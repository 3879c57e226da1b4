"""What each gate depends on: inputs and leaves on the left, the four gates of the recurrence on the right, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stmlang.draw.picture import ACCENT, INK, MARK, PALE, Picture
from stmlang.facts import Facts
from stmlang.facts.show import interval_of
from stmlang.scan.expression import Degree, Expr, GateRef, InputRef, LeafRef, inside
from stmlang.scan.scan import Gate, Leaf

CORE = ("source", "transition", "mark", "direct")
COLUMN, ROW = 2.3, 0.52
"""Inches from a column of boxes to the next, and from a box to the next."""

Name = tuple[str, str]
"""What a box stands for: `gate`, `leaf` or `input`, and its name. A leaf may be called like the gate that it stands in."""


@dataclass(frozen=True)
class Box:
    """What stands in a box, whose colour says its kind, and in which column."""

    text: str
    color: str
    column: int


def gates_picture(facts: Facts) -> Picture:
    """An arrow for each name that stands in an equation."""
    scan = facts.scan
    arrows = [(_source(expr), ("gate", gate.name)) for gate in scan.gates for expr in _read(gate)]
    boxes = _boxes(facts, arrows)
    columns: dict[int, list[Name]] = {}
    for name, box in boxes.items():
        columns.setdefault(box.column, []).append(name)
    tallest = max(len(names) for names in columns.values())
    last = max(columns)
    at = {
        name: (COLUMN * column, ROW * (row + (tallest - len(names)) / 2))
        for column, names in columns.items()
        for row, name in enumerate(names)
    }

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        axis.set_axis_off()
        axis.set(xlim=(-1.0, COLUMN * last + 1.3), ylim=(ROW * tallest - 0.1, -0.5))
        for start, end in dict.fromkeys(arrows):
            axis.annotate(
                "",
                at[end],
                at[start],
                arrowprops={"arrowstyle": "-|>", "color": PALE, "shrinkA": 34, "shrinkB": 34, "linewidth": 0.9},
            )
        for name, box in boxes.items():
            style = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": box.color}
            axis.text(*at[name], box.text, ha="center", va="center", fontsize=7.5, color=INK, bbox=style)

    caption = (
        "Arrows lead from what stands in an equation to the gate that it defines. Blue: gates, with the interval that they lie "
        f"in; orange: leaves, which are learned or given; grey: inputs. Stability: {facts.verdict.kind}."
    )
    return Picture("gates", caption, COLUMN * last + 2.3, max(1.4, ROW * tallest + 0.4), draw)


def _boxes(facts: Facts, arrows: list[tuple[Name, Name]]) -> Mapping[Name, Box]:
    """Inputs, leaves and gates, each in the column behind all that it depends on, the four gates last."""
    scan = facts.scan
    column: dict[Name, int] = {}
    for gate in scan.gates:
        before = [column.get(start, 0) for start, end in arrows if end == ("gate", gate.name)]
        column["gate", gate.name] = 1 + max(before, default=0)
    end = max(column.values())
    boxes = {start: Box(start[1], PALE, 0) for start, _ in arrows if start[0] == "input"}
    boxes |= {("leaf", leaf.name): Box(_leaf(leaf), MARK, 0) for leaf in scan.leaves}
    for gate in scan.gates:
        place = end if gate.name in CORE else column["gate", gate.name]
        boxes["gate", gate.name] = Box(_gate(facts, gate), ACCENT, place)
    return boxes


def _read(gate: Gate) -> Iterator[Expr]:
    """What the equations of a gate read."""
    for clause in gate.clauses:
        for expr in inside(clause.value):
            if isinstance(expr, LeafRef | InputRef | GateRef | Degree):
                yield expr


def _source(expr: Expr) -> Name:
    match expr:
        case LeafRef(leaf=name):
            return "leaf", name
        case GateRef(gate=name):
            return "gate", name
        case InputRef(name=name):
            return "input", name
        case _:
            return "input", "degree"


def _leaf(leaf: Leaf) -> str:
    read = ", ".join(feature.name for feature in leaf.features)
    return f"{_named(leaf.name, leaf.indices)}\n{leaf.kind}{f'({read})' if read else ''}"


def _gate(facts: Facts, gate: Gate) -> str:
    return f"{_named(gate.name, gate.indices)}\n{interval_of(facts.bounds, gate.name)}"


def _named(name: str, indices: tuple[str, ...]) -> str:
    return f"{name}[{', '.join(indices)}]" if indices else name
