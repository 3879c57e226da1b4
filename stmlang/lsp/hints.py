"""What a text leaves unsaid, to be shown between its words: indices of gates, and the intervals that they lie in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stmlang.check.definitions import subexpressions
from stmlang.check.vocabulary import INPUTS, input_indices
from stmlang.facts.show import interval_of
from stmlang.lsp.document import Document
from stmlang.lsp.knowledge import facts_about
from stmlang.lsp.symbols import gates_of
from stmlang.scan.scan import Scan
from stmlang.source.span import Span
from stmlang.syntax import tree

_UNBOUNDED = "(-inf, inf)"


@dataclass(frozen=True)
class Hint:
    """Words at an offset that are not in the text. `interval` tells bounds from indices."""

    offset: int
    label: str
    interval: bool


def hints(document: Document, start: int, end: int) -> list[Hint]:
    """The hints between two offsets."""
    shown = (hint for item, scan in document.surveyed.scans for hint in _of_scan(item, scan, start, end))
    return sorted((hint for hint in shown if start <= hint.offset <= end), key=lambda hint: hint.offset)


def _of_scan(item: tree.ScanItem, scan: Scan | None, start: int, end: int) -> Iterator[Hint]:
    if item.span.end < start or item.span.start > end:
        return
    gates = gates_of(item)
    numbers = {parameter.name.text for parameter in item.parameters}
    indices = {name: _indices(name, equations[0], numbers) for name, equations in gates.items()}
    for name, equations in gates.items():
        for equation in equations:
            if indices[name] and not equation.indices:
                yield Hint(equation.target.span.end, _bracket(indices[name]), False)
            own = {**indices, name: ()} if name in INPUTS else indices
            yield from (Hint(span.end, _bracket(own[span.text]), False) for span in _bare(equation.value) if own.get(span.text))
        if scan is not None and (bounds := _interval(scan, name)) is not None:
            yield Hint(equations[-1].span.end, f" in {bounds}", True)


def _indices(name: str, equation: tree.Equation, numbers: set[str]) -> tuple[str, ...]:
    """The indices that a gate has, those of a redefined input where they are not written."""
    written = tuple(entry.index.text for entry in equation.indices)
    return written or (input_indices(name, numbers) if name in INPUTS else ())


def _bracket(indices: tuple[str, ...]) -> str:
    return f"[{', '.join(indices)}]"


def _bare(expression: tree.Expression) -> Iterator[Span]:
    """Where references stand that have no bracket behind them."""
    inner = list(subexpressions(expression))
    bracketed = {entry.base.span for entry in inner if isinstance(entry, tree.Indexed)}
    return (entry.name.span for entry in inner if isinstance(entry, tree.Reference) and entry.span not in bracketed)


def _interval(scan: Scan, name: str) -> str | None:
    """The interval of a gate, None where nothing bounds it or it is a number of its own."""
    facts = facts_about(scan)
    if facts is None or not any(gate.name == name for gate in facts.scan.gates):
        return None
    shown = interval_of(facts.bounds, name)
    low, _, high = shown[1:-1].partition(", ")
    return None if shown == _UNBOUNDED or low == high else shown
