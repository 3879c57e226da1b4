"""The stability verdict: which mode holds, why, and the scan in which it does.

* P-mode: in every column, the sum over `out` of `|T[out, in]|` is at most one. Then the line graph's adjacency has L1 norm at
  most one: in total no more goes on than has come in.
* D-mode: there is at most one path between any two edges, and every entry is at most one.

For a matrix on state axes `|T|` is the spectral norm; for a transition that acts elementwise on the state the bounds hold for
each element by itself. With one port (a chain) both modes say `|T| <= 1`; that is called P there.

`stabilize auto` takes the first that holds of

1. D proved: nothing to do, and single paths are the cheapest to evaluate;
2. P proved: nothing to do;
3. D inserted where there are single paths already: `T / max(1, |T|)` entry by entry, which changes fewer values than
4. P inserted: `T / max(1, sum over out of |T|)`.

It never drops turns or line edges: that changes which paths exist, and is done only where `stabilize D` asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

import numpy as np

from stmlang.facts.bounds import Bounds
from stmlang.facts.classes import Bools
from stmlang.facts.reason import column_steps, entry_steps, listed, path_growth, show_bound
from stmlang.facts.rewrite import factors
from stmlang.facts.stabilize import with_single_paths, with_small_columns, with_small_entries
from stmlang.facts.turns import factors_are_trees, kept_turns, single_paths
from stmlang.graph.dag import DAG
from stmlang.scan.expression import LineMask
from stmlang.scan.scan import Mode, Scan
from stmlang.scan.topology import Product, Regular
from stmlang.source import short
from stmlang.source.diagnostic import Diagnostic, Severity

_UNASKED = (
    "give the transition a bound that can be proved, or say what is meant: `stabilize P` or `stabilize D` where it may be "
    "divided, `stabilize none` where it is to run as it is written"
)

Kind = Literal["proved P", "proved D", "inserted P", "inserted D", "unbounded by request"]


@dataclass(frozen=True)
class Verdict:
    """`kind` in five words, and the steps of the proof, or of what was missing and what was done about it.

    `mode` is the mode that holds in `scan`, None where none is known to; `also` says that the other one was proved as well.
    """

    kind: Kind
    mode: Literal["P", "D"] | None
    reason: tuple[str, ...]
    scan: Scan = field(repr=False)
    also: bool = False

    __repr__ = short.fields

    @property
    def inserted(self) -> bool:
        return self.kind in ("inserted P", "inserted D")

    def note(self) -> Diagnostic | None:
        """What the user should be told without asking, if anything: a warning where numbers change that nobody asked to be
        changed."""
        asked = self.scan.stabilize is not Mode.AUTO
        severity, help = (Severity.NOTE, None) if asked else (Severity.WARNING, _UNASKED)
        span = self.scan.gate("transition").span
        match self.kind:
            case "inserted P":
                message = "P-mode could not be proved: the transition is divided by its column sums where these exceed 1"
                return Diagnostic("STM4001", message, span, self.reason, help, severity=severity)
            case "inserted D":
                message = "D-mode could not be proved and was inserted"
                return Diagnostic("STM4002", message, span, self.reason, help, severity=severity)
            case "unbounded by request":
                message = "this scan is not bounded by a stability mode"
                return None if self.mode else Diagnostic("STM4003", message, span, self.reason, severity=Severity.NOTE)
            case "proved P" | "proved D":
                return None
            case _:
                assert_never(self.kind)


def judge(bounds: Bounds, dag: DAG | None) -> Verdict:
    """The verdict on a scan."""
    scan = bounds.scan
    paths = single_paths(scan, bounds.classes, bounds.allowed, _masked(scan), dag)
    proved_d = paths is not None and bounds.small_entries
    proved_p = bounds.small_columns
    match scan.stabilize:
        case Mode.NONE:
            return _unbounded(bounds, proved_p, proved_d)
        case Mode.P:
            return _proved_p(bounds, proved_d) if proved_p else _insert_p(bounds)
        case Mode.D:
            return _proved_d(bounds, paths, proved_p) if proved_d and paths else _insert_d(bounds, paths)
        case Mode.AUTO:
            if proved_p and bounds.classes.single:
                return _proved_p(bounds, proved_d)
            if proved_d and paths:
                return _proved_d(bounds, paths, proved_p)
            if proved_p:
                return _proved_p(bounds, proved_d)
            return _insert_p(bounds) if paths is None or bounds.classes.single else _insert_d(bounds, paths)
        case _:
            assert_never(scan.stabilize)


def _masked(scan: Scan) -> bool:
    """Whether the transition is a product with a multitree's mask."""
    clauses = scan.gate("transition").clauses
    return len(clauses) == 1 and any(
        isinstance(factor, LineMask) and not inverted for inverted, factor in factors(clauses[0].value)[1]
    )


def _proved_p(bounds: Bounds, also: bool) -> Verdict:
    return Verdict("proved P", "P", tuple(column_steps(bounds)), bounds.scan, also)


def _proved_d(bounds: Bounds, paths: str, also: bool) -> Verdict:
    return Verdict("proved D", "D", (paths, *entry_steps(bounds)), bounds.scan, also)


def _insert_p(bounds: Bounds) -> Verdict:
    """Divide by the column sums; on a chain by the magnitude, which is the same."""
    worst = float(bounds.columns.max())
    missing = f"a column of transition may sum to {show_bound(worst)}: " + "; ".join(entry_steps(bounds))
    if bounds.classes.single:
        done = "transition is divided by max(1, |transition|): what is at most 1 stays as it is"
        return Verdict("inserted P", "P", (missing, done), with_small_entries(bounds.scan, bounds.pairs), True)
    done = "transition is divided by max(1, sum over out of |transition|): columns that sum to at most 1 stay as they are"
    return Verdict("inserted P", "P", (missing, done), with_small_columns(bounds.scan, bounds.pairs))


def _insert_d(bounds: Bounds, paths: str | None) -> Verdict:
    """Make the entries small, and where there may be several paths drop turns, or line edges."""
    capped = "transition is divided by max(1, |transition|): what is at most 1 stays as it is"
    entries = entry_steps(bounds)
    if paths is not None:
        return Verdict("inserted D", "D", (paths, *entries, capped), with_small_entries(bounds.scan, bounds.pairs))
    names = bounds.classes.names
    dropped = _dropped(bounds)
    if dropped is None:
        steps = [
            "the line graph may have several paths between two edges",
            "line edges are left out until what is left is a multitree, straight ones last",
        ]
    else:
        turns = listed([f"from {names[into]} to {names[out]}" for out, into in np.argwhere(dropped)])
        steps = ["turns between ports lead round in a circle: several paths join two edges", f"dropped: turns {turns}"]
    done = [] if bounds.small_entries else [capped]
    scan = with_single_paths(bounds.scan, bounds.classes, dropped, bounds.pairs, bounds.small_entries)
    return Verdict("inserted D", "D", (*steps, *entries, *done), scan)


def _dropped(bounds: Bounds) -> Bools | None:
    """`[out, in]` turns to drop where that is enough: on products of chains and trees."""
    topology = bounds.scan.topology
    if isinstance(topology, Regular) or (isinstance(topology, Product) and factors_are_trees(topology)):
        return bounds.allowed & ~kept_turns(bounds.allowed)
    return None


def _unbounded(bounds: Bounds, proved_p: bool, proved_d: bool) -> Verdict:
    """Run as it is. If a mode holds anyway, say so."""
    if proved_p or proved_d:
        mode = "P" if proved_p else "D"
        steps = column_steps(bounds) if proved_p else entry_steps(bounds)
        return Verdict(
            "unbounded by request",
            mode,
            (*steps, f"{mode}-mode holds without being asked for"),
            bounds.scan,
            proved_p and proved_d,
        )
    worst = float(bounds.columns.max())
    steps = (f"a column of transition may sum to {show_bound(worst)}", path_growth(bounds.scan, bounds))
    return Verdict("unbounded by request", None, (*steps, "nothing is done about it: stabilize none"), bounds.scan)
