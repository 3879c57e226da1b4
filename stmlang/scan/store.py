"""A scan as JSON values, and back. Indices in the text are left out: they say where a scan was written, not what it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, cast, get_args

from stmlang.scan import expression, topology
from stmlang.scan.scan import Clause, Direction, Feature, Gate, Initial, Leaf, Mode, Scan
from stmlang.source.span import SourceFile, Span

NOWHERE = Span(SourceFile("<stored>", ""), 0, 0)
DATACLASSES: tuple[type, ...] = (
    *(Scan, Gate, Clause, Leaf, Feature, Initial, Direction, expression.Bind, *get_args(expression.Expr)),
    *(topology.Axis, topology.Regular, topology.Static, topology.CompleteTree, topology.FromFile, topology.Runtime),
)
KINDS: Mapping[str, type] = {**{kind.__name__: kind for kind in DATACLASSES}, "ProductOfTopologies": topology.Product}
"""What a scan is made of. Nothing else is ever made of stored values."""
NAMES: Mapping[type, str] = {kind: name for name, kind in KINDS.items()}
ENUMS: Mapping[str, type[Enum]] = {"Mode": Mode, "Function": expression.Function}


def scan_json(scan: Scan) -> dict[str, Any]:
    """A scan as JSON values; infinite bounds are the texts `inf` and `-inf`."""
    return _stored(scan)


def scan_from_json(stored: Any) -> Scan:
    """The scan. Raises ValueError for what is none."""
    scan = _made(stored)
    if not isinstance(scan, Scan):
        raise ValueError("no scan is stored")
    return scan


def _stored(value: Any) -> Any:
    if isinstance(value, Enum):
        return {"is": type(value).__name__, "value": value.value}
    if is_dataclass(value) and not isinstance(value, type):
        by_field = {entry.name: _stored(getattr(value, entry.name)) for entry in fields(value) if entry.name != "span"}
        return {"is": NAMES[type(value)], **by_field}
    if isinstance(value, tuple):
        return [_stored(item) for item in cast(tuple[Any, ...], value)]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value


def _made(stored: Any) -> Any:
    match stored:
        case {"is": str(name), "value": value} if name in ENUMS:
            return ENUMS[name](value)
        case {"is": str(name), **entries}:
            if name not in KINDS:
                raise ValueError(f"no part of a scan is called {name!r:.40}")
            kind = cast(Any, KINDS[name])
            by_field = {str(field): _made(value) for field, value in entries.items()}
            known = {entry.name for entry in fields(kind)}
            if set(by_field) != known - {"span"}:
                raise ValueError(f"a part {name} has other fields")
            return kind(**by_field, **({"span": NOWHERE} if "span" in known else {}))
        case list():
            return tuple(_made(item) for item in cast(list[Any], stored))
        case "inf" | "-inf":
            return float(stored)
        case str() | int() | float() | bool() | None:
            return stored
        case _:
            raise ValueError(f"{stored!r:.40} is no part of a scan")
