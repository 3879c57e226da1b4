"""The last look at a scan: dependency order, what is per direction, what is used at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from stmlang.check.complex_gates import Halves, RealGate, complex_gates, implied_gate, real_gate, referred
from stmlang.check.dependency_order import in_order, reached
from stmlang.check.finite import finite
from stmlang.check.foreign_names import SIZES_ELSEWHERE
from stmlang.check.headers import Declared
from stmlang.check.implied import Implied
from stmlang.check.modes import Modes
from stmlang.check.problems import Problems
from stmlang.check.steps import check_steps, stepped_leaf, without_steps
from stmlang.check.typing.complex_values import written_name
from stmlang.check.vocabulary import CORE, INPUTS, SIZES
from stmlang.scan.expression import STEP, Degree, Expr, InputName, InputRef, LeafRef, Neighbour, Number, inside
from stmlang.scan.scan import Clause, Gate, Leaf, Scan
from stmlang.scan.topology import Topology
from stmlang.source.advice import Advice
from stmlang.source.diagnostic import Label
from stmlang.source.span import Span
from stmlang.source.suggest import nearest
from stmlang.syntax import tree

_STATE_GATES = ("source", "transition", "mark")


@dataclass
class Draft:
    """What the equations of a scan were found to say."""

    item: tree.ScanItem
    topology: Topology | None
    sizes: Mapping[str, int] | None
    modes: Modes
    declared: dict[str, Declared] = field(default_factory=dict[str, Declared])
    implied: dict[str, Implied | None] = field(default_factory=dict[str, "Implied | None"])
    uses: dict[str, dict[str, Span]] = field(default_factory=dict[str, dict[str, Span]])
    leaves: dict[str, tuple[Leaf, ...]] = field(default_factory=dict[str, tuple[Leaf, ...]])
    clauses: dict[str, tuple[Clause, ...]] = field(default_factory=dict[str, tuple[Clause, ...]])
    halves: dict[str, Halves] = field(default_factory=dict[str, Halves])
    """The clauses of complex gates, for each of their halves."""


def finish(problems: Problems, draft: Draft) -> Scan | None:
    """The scan; None if anything was wrong with it."""
    for name, gate in draft.implied.items():
        draft.uses[name] = {} if gate is None else dict(gate.uses)
    order = in_order(problems, draft.uses)
    _check_tracks(problems, draft)
    if order is None:
        return None
    made = _real_gates(draft, order)
    clauses = finite(problems, {name: gate.clauses for name, gate in made.items()})
    whole = draft  # in the gates that were written, as warnings are
    draft = _in_real_gates(draft, made)
    directional = _directional(draft, list(made))
    _check_shared(problems, draft, directional)
    if draft.topology is not None and draft.sizes is not None and draft.sizes["steps"] > 1:
        check_steps(problems, draft.topology, draft.modes, draft.item.name.span)
    if problems.failed or draft.topology is None or draft.sizes is None:
        return None
    used = reached(whole.uses, (*CORE, *INPUTS))
    for name in order:
        if name not in used:
            note = "it is left out, with the leaves in it"
            help = _meant(problems, draft, name, clauses.get(name, ()))
            problems.warn("STM1034", f"nothing uses the gate `{name}`", draft.declared[name].name.span, note, help=help)
    live = reached(draft.uses, (*CORE, *INPUTS))
    known: dict[int, tuple[Expr, Expr]] = {}
    gates = tuple(_gate(name, gate, clauses[name], name in directional, known) for name, gate in made.items() if name in live)
    varying = _varying_leaves(draft)
    found = {leaf.name: leaf for gate in gates for leaf in draft.leaves.get(gate.name, ())}
    leaves = tuple(
        replace(stepped_leaf(leaf, draft.sizes["steps"]), directional=leaf.name in varying) for leaf in found.values()
    )
    return Scan(
        name=draft.item.name.text,
        topology=draft.topology,
        **draft.sizes,
        gates=gates,
        leaves=leaves,
        directions=draft.modes.directions,
        combine=draft.modes.combine,
        stabilize=draft.modes.stabilize,
        normalize=draft.modes.normalize,
        epsilon=draft.modes.epsilon,
        own=draft.modes.own,
        span=draft.item.name.span,
    )


def _meant(problems: Problems, draft: Draft, name: str, clauses: tuple[Clause, ...]) -> str | Advice | None:
    """What a gate that nothing uses may be misspelt for: one that the scan lacks, or a size, which its head says."""
    span = draft.declared[name].name.span
    at = span if len(clauses) == 1 else None
    near = problems.near(name, [gate for gate in (*CORE, *INPUTS) if gate not in draft.declared], at=at)
    if near is not None:
        return near
    size = SIZES_ELSEWHERE.get(name) or nearest(name, SIZES)
    match clauses:
        case (Clause(value=Number(value=value)),) if size is not None and value.is_integer():
            return f"did you mean `{size}`? A size is said in the head: `scan {draft.item.name.text}({size} = {value:.0f})`"
        case _:
            return None


def _real_gates(draft: Draft, order: list[str]) -> dict[str, RealGate]:
    """The gates of the scan, in order: complex ones are several real ones."""
    made: dict[str, RealGate] = {}
    for name in order:
        implied, declared = draft.implied.get(name), draft.declared.get(name)
        if implied is not None:
            made[name] = implied_gate(implied)
        elif declared is not None and declared.header is not None:
            halves = draft.halves.get(name)
            if halves is not None:
                made |= complex_gates(declared.header, halves)
            else:
                made[name] = real_gate(declared.header, draft.clauses.get(name, ()))
        elif declared is not None:
            made[name] = RealGate((), (), declared.name.span)
    return made


def _gate(
    name: str, gate: RealGate, clauses: tuple[Clause, ...], directional: bool, known: dict[int, tuple[Expr, Expr]]
) -> Gate:
    own = tuple(replace(clause, value=without_steps(clause.value, known)) for clause in clauses)
    return Gate(name, tuple(index for index in gate.indices if index != STEP), own, directional, gate.span)


def _in_real_gates(draft: Draft, made: Mapping[str, RealGate]) -> Draft:
    """The draft with what its gates use and the leaves in them for each real gate. A leaf may be in both halves of a complex
    one; those of equations that never hold are in none."""
    every = {leaf.name: leaf for leaves in draft.leaves.values() for leaf in leaves}
    order = {name: number for number, name in enumerate(every)}
    leaves: dict[str, tuple[Leaf, ...]] = {}
    for name, gate in made.items():
        read = {expr.leaf for expr in inside(*(clause.value for clause in gate.clauses)) if isinstance(expr, LeafRef)}
        leaves[name] = tuple(every[leaf] for leaf in sorted(read, key=order.__getitem__))
    uses = {name: referred(made, name) for name in made}
    return replace(draft, uses=uses, leaves=leaves, clauses={name: gate.clauses for name, gate in made.items()})


# --- directions


def _varying(draft: Draft) -> set[str]:
    """The gates whose leaves there are one of for each direction: what the states rest on, and what the inputs do of which each
    direction has its own, but not what those do that all directions share."""
    if len(draft.modes.directions) < 2:
        return set()
    own = _own(draft)
    return reached(draft.uses, (*_STATE_GATES, *own), barriers=[name for name in INPUTS if name not in own])


def _own(draft: Draft) -> tuple[InputName, ...]:
    """The inputs of which each of several directions has its own."""
    return draft.modes.own if len(draft.modes.directions) > 1 else ()


def _varying_leaves(draft: Draft) -> set[str]:
    """Those leaves, by name."""
    return {leaf.name for name in _varying(draft) for leaf in draft.leaves.get(name, ())}


def _directional(draft: Draft, order: list[str]) -> set[str]:
    """The gates that rest on a leaf or an input of which there is one for each direction, or on degrees or neighbours, counted
    along it."""
    varying = _varying_leaves(draft)
    counted = _counted(draft)
    reading = _reading_own(draft)
    directional: set[str] = set()
    for name in order:
        own = any(leaf.name in varying for leaf in draft.leaves.get(name, ())) or name in counted or name in reading
        if own or any(other in directional for other in draft.uses[name]):
            directional.add(name)
    return directional


def _reading_own(draft: Draft) -> set[str]:
    """The gates whose equations read an input, as it is given, of which each direction has its own."""
    own = _own(draft)
    return {
        name
        for name, clauses in draft.clauses.items()
        for inner in inside(*(clause.value for clause in clauses))
        if isinstance(inner, InputRef) and inner.name in own
    }


def _counted(draft: Draft) -> dict[str, Span]:
    """The gates whose equations count edges, each with a place where, if there are several directions to count them along."""
    if len(draft.modes.directions) < 2:
        return {}
    counted: dict[str, Span] = {}
    for name, clauses in draft.clauses.items():
        for inner in inside(*(clause.value for clause in clauses)):
            if isinstance(inner, Degree | Neighbour):
                counted.setdefault(name, inner.span)
    return counted


def _refuse_counted(problems: Problems, name: str, place: Span, *labels: Label) -> None:
    note = f"all directions share `{name}`, while what is `in` and what is `out` changes places against the edges"
    help = f"use degrees and neighbours in `source`, `mark` or `direct`, or end `directions` with `own {name}`"
    problems.error("STM2038", f"`{name}` differs from direction to direction", place, note, help=help, labels=labels)


def _check_shared(problems: Problems, draft: Draft, directional: set[str]) -> None:
    counted = _counted(draft)
    for name in INPUTS:
        if name not in directional or name not in draft.declared or name in draft.modes.own:
            continue
        if name in counted:
            _refuse_counted(problems, name, counted[name])
            continue
        other, place = next((other, place) for other, place in draft.uses[name].items() if other in directional)
        below = sorted(reached(draft.uses, (other,)) & set(counted))
        if below:
            _refuse_counted(problems, name, place, Label(counted[below[0]], "counted here"))
            continue
        other = written_name(other)
        note = f"all directions share `{name}`, while `{other}` has one value for each"
        help = f"write what `{name}` needs of it as a gate of its own, or end `directions` with `own {name}`"
        labels = [Label(draft.declared[other].name.span, "declared here")] if other in draft.declared else []
        problems.error("STM2038", f"`{name}` differs from direction to direction", place, note, help=help, labels=labels)


def _check_tracks(problems: Problems, draft: Draft) -> None:
    """Tracks are tracks of the state: a gate that has them is of no use if no state does."""
    headers = {name: gate.header for name, gate in draft.declared.items() if gate.header is not None}
    tracked = [name for name, header in headers.items() if "track" in header.indices or "track'" in header.indices]
    sound = all(name in headers for name in ("source", "transition"))
    if sound and tracked and not any(name in _STATE_GATES for name in tracked):
        note = "a state has tracks if `source`, `transition` or `mark` has the index `track`"
        problems.error(
            "STM2039", f"only `{tracked[0]}` has the index `track`, the state does not", headers[tracked[0]].span, note
        )
