"""Trees as data: what a node holds, and comparison without places, however deep."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, cast

from stmlang.source.span import SourceFile, Span
from stmlang.syntax.tree import File


def tree_equal(left: File, right: File) -> bool:
    """Whether two texts say the same: their items agree in all but spans. Comments do not count."""
    pending: list[tuple[Any, Any]] = [(left.items, right.items)]
    while pending:
        a, b = pending.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, tuple):
            first, second = cast(tuple[Any, ...], a), cast(tuple[Any, ...], b)
            if len(first) != len(second):
                return False
            pending += zip(first, second, strict=True)
        elif is_dataclass(a):
            pending += zip(fields_of(a), fields_of(b), strict=True)
        elif a != b:
            return False
    return True


def fields_of(node: Any) -> list[Any]:
    """The values of a node's fields, less the places."""
    values = [getattr(node, field.name) for field in fields(node)]
    return [value for value in values if not isinstance(value, Span | SourceFile)]
