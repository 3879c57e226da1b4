"""What is proved of scans and planned for them. Both are kept: an edit elsewhere leaves what is known of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from stmlang.check import Spec, Surveyed, survey
from stmlang.compiler import Call, Request, plan, prepare, previews
from stmlang.facts import Facts, analyse
from stmlang.lsp.document import Document
from stmlang.lsp.sizes import sizes_of
from stmlang.plan.plan import Plan
from stmlang.plan.preview import Outlook
from stmlang.scan.scan import Scan
from stmlang.scan.topology import CompleteTree, FromFile, Product, Regular, Runtime, Static, Topology
from stmlang.source.diagnostic import SpecError
from stmlang.syntax import tree

MOST_NODES = 100_000
"""A larger graph is not built while somebody types."""
_KEPT = 256


def facts_about(scan: Scan) -> Facts | None:
    """What holds of a scan; None where its graph is not built for that: it is large, read from a file, or cannot be built."""
    known = _facts.pop(id(scan), None)
    entry = (scan, _found(scan)) if known is None else known
    while len(_facts) >= _KEPT:
        del _facts[next(iter(_facts))]
    _facts[id(scan)] = entry  # which keeps the scan, and so its number, alive
    return entry[1]


_facts: dict[int, tuple[Scan, Facts | None]] = {}


def _found(scan: Scan) -> Facts | None:
    if not _small(scan.topology):
        return None
    try:
        return analyse(scan)
    except SpecError:
        return None


def _small(topology: Topology) -> bool:
    match topology:
        case Regular() | Runtime() | Static():
            return True
        case CompleteTree(arity=arity, depth=depth):
            return arity is not None and depth is not None and max(arity, 2) ** depth <= MOST_NODES
        case FromFile():
            return False
        case Product(factors=factors):
            return all(map(_small, factors))


@lru_cache(_KEPT)
def plan_for(scan: Scan, target: str) -> Plan | str:
    """The plan for training a scan of known sizes in float32, or why there is none."""
    if not _small(scan.topology):
        return "the graph is large or in a file: `stmlang explain` shows the plan"
    try:
        return plan(prepare(scan, Call()), Request(target))
    except SpecError as error:
        return error.diagnostics[0].message


@lru_cache(_KEPT)
def outlook_for(scan: Scan, target: str) -> tuple[Outlook, ...]:
    """What would be chosen for graphs of several sizes that come at run time."""
    try:
        return tuple(previews(scan, Call(), Request(target), lambda _: None)[1])
    except SpecError:
        return ()


def sized(document: Document, item: tree.ScanItem) -> tuple[Scan | None, tuple[str, ...]]:
    """A scan of a text at the sizes that its comments say, and the names in them that it has nothing of to set."""
    values = sizes_of(document, item).values
    surveyed = _alone(document, item, values)
    unknown = tuple(name for name in values if _refused(surveyed, name))
    if unknown:
        surveyed = _alone(document, item, {name: value for name, value in values.items() if name not in unknown})
    return surveyed.scan, unknown


def _refused(surveyed: Surveyed, name: str) -> bool:
    return any(f"`{name}`" in diagnostic.message for diagnostic in surveyed.diagnostics if diagnostic.code == "STM1014")


def _alone(document: Document, item: tree.ScanItem, values: Mapping[str, int | float]) -> Surveyed:
    """What the checker says of one scan of a text with some sizes, the other scans left out."""
    items = tuple(other for other in document.parsed.file.items if other is item or not isinstance(other, tree.ScanItem))
    parsed = replace(document.parsed, file=replace(document.parsed.file, items=items))
    spec = Spec(document.source, None, document.place, document.path)
    return survey(spec, parsed, values, search_path=document.folders, reader=document.reader)
