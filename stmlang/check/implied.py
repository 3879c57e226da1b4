"""`mark` and `direct` where no equation gives them: by default, or by `read after`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stmlang.check.headers import Declared
from stmlang.check.modes import Modes
from stmlang.check.problems import Problems
from stmlang.check.typing.scope import Header
from stmlang.scan.expression import Bind, Expr, GateRef, Index, Number, Product, Reduce, Stack, free_indices
from stmlang.scan.topology import Topology, is_regular, ports
from stmlang.source.diagnostic import Label
from stmlang.source.span import Span


@dataclass(frozen=True)
class Implied:
    """A gate that no equation gives; None where it would rest on something broken."""

    header: Header
    value: Expr
    uses: Mapping[str, Span]


def implied(
    problems: Problems,
    modes: Modes,
    gates: Mapping[str, Declared],
    topology: Topology | None,
    track: int | None,
    place: Span,
) -> dict[str, Implied | None]:
    """The gates among `mark` and `direct` that a scan leaves out: one and zero, unless it reads after its nodes' updates.
    `track` is how many tracks its states have, None where they are complex numbers, whose real part is read."""
    if modes.read_after is None:
        one, zero = Number(1.0, place), Number(0.0, place)
        mark = one if track is not None else Stack("track", ((0, one), (1, zero)), None, place)
        defaults = {
            "mark": Implied(Header("mark", (), place, paired=track is None), mark, {}),
            "direct": Implied(Header("direct", (), place), zero, {}),
        }
        return {name: value for name, value in defaults.items() if name not in gates}
    for name in ("mark", "direct"):
        if name in gates:
            labels = [Label(modes.read_after, "said here already")]
            note = "`read after` means `mark = transition` and `direct = source`"
            problems.error("STM1033", f"`{name}` is said twice", gates[name].name.span, note, labels=labels)
    read = {"mark": "transition", "direct": "source"}
    return {
        name: _read(problems, name, gates.get(base), topology, track, modes.read_after)
        for name, base in read.items()
        if name not in gates
    }


def _read(
    problems: Problems, name: str, base: Declared | None, topology: Topology | None, track: int | None, place: Span
) -> Implied | None:
    """`mark` as `transition`, `direct` as `source`, summed over the tracks of what leaves; the index `out`, if any, pinned to
    the only port there is."""
    if base is None or base.header is None or topology is None:
        return None
    header = base.header
    names = [port.name for port in ports(topology)]
    if "out" in header.indices and not (is_regular(topology) and len(names) == 1):
        note = "a node that is read after its update must hold one state: the same on all of its outgoing edges"
        labels = [Label(header.span, "it has the index `out`")]
        help = f"leave `out` away from `{header.name}`, or write equations for `mark` and `direct`"
        problems.error(
            "STM2037", f"`{header.name}` differs between a node's outgoing edges", place, note, help=help, labels=labels
        )
        return None
    indices: tuple[Index, ...] = tuple(index for index in header.indices if index != "out")
    if track is None:
        value = _real_part(name, header, names[0], place)
        return Implied(Header(name, indices, place, paired=name == "mark"), value, {header.name: place})
    value = _left(name, header, names[0], track, place)
    kept: tuple[Index, ...] = tuple(index for index in indices if index in free_indices(value))
    return Implied(Header(name, kept, place), value, {header.name: place})


def _real_part(name: str, header: Header, port: str, place: Span) -> Expr:
    """The real part of what leaves, of what enters or of what is written: what the first track has of them."""
    bind = tuple(Bind(index, None, port) if index == "out" else Bind(index, index) for index in header.indices)
    first = Bind("track", None, place=0)
    if not header.paired:
        entry = GateRef(header.name, bind, place)
        return entry if name == "direct" else Stack("track", ((0, entry), (1, Number(0.0, place))), None, place)
    if name == "direct":
        return GateRef(header.name, (*bind, first), place)
    return GateRef(header.name, (*bind, first, Bind("track'", "track")), place)


def _left(name: str, header: Header, port: str, track: int, place: Span) -> Expr:
    """What leaves of what enters, or of what is written, summed over the tracks that it leaves on. The column of a transition
    between tracks is what `mark` has for the track that enters; a source without tracks is written to all of them."""
    matrix = "track'" in header.indices
    renamed: dict[Index, Index] = {"track": "track'", "track'": "track"} if matrix else {}
    bind = tuple(
        Bind(index, None, port) if index == "out" else Bind(index, renamed.get(index, index)) for index in header.indices
    )
    entry = GateRef(header.name, bind, place)
    if matrix:
        return Reduce("sum", "track'", entry, place)
    if name == "mark" or track == 1:
        return entry
    if "track" in header.indices:
        return Reduce("sum", "track", entry, place)
    return Product(((False, Number(float(track), place)), (False, entry)), place)
