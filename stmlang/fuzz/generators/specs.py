"""Specs: whole scans of every kind, well typed and bounded by construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from stmlang.fuzz.generators.equations import write_equations
from stmlang.fuzz.generators.expressions import DEFINITIONS, Writer
from stmlang.fuzz.generators.styles import Style, styles
from stmlang.fuzz.generators.topologies import topologies
from stmlang.fuzz.generators.values import gate_values
from stmlang.fuzz.trial import Listed, Trial

MOST_SCANS = 300
"""Directions times nodes, at most: an oracle goes through them one by one."""


def _directions(writer: Writer, style: Style) -> str:
    """A setting of directions, or none; few enough for the number of nodes."""
    if style.steps > 1:
        return writer.pick(("", "directions forward", "directions backward"))
    layout = writer.layout
    most, rank = max(1, MOST_SCANS // layout.nodes), len(layout.ports)
    words = ["", "forward", "backward", *(["both"] if most > 1 else [])]
    if layout.regular:
        words += ["senses", *(["all"] if 2**rank <= most else [])]
    word = writer.pick(words)
    if word == "senses":
        chosen = writer.senses(min(3, most))
        word = ", ".join(" ".join(f"{sign}{port}" for sign, port in zip(signs, layout.ports, strict=True)) for signs in chosen)
    own = writer.subset(("q", "k", "v")) if writer.pick((False, False, True)) else ()
    return word and f"directions {word}{' '.join(('', 'own', *own)) if own else ''}{' concat' if writer.maybe() else ''}"


def _settings(writer: Writer, style: Style) -> list[str]:
    stabilize = "" if style.mode == "auto" and not writer.maybe() else f"stabilize {style.mode}"
    normalize = "" if style.normalize == "none" else f"normalize {style.normalize}"
    settings = (_directions(writer, style), stabilize, normalize, "read after" if style.read_after else "")
    return [setting for setting in settings if setting]


@dataclass(frozen=True)
class Spec:
    """A spec, the kind of its topology, and graphs if it leaves them to run time."""

    kind: str
    text: str
    graphs: tuple[Listed, ...] | None


@st.composite
def written(draw: st.DrawFn, kinds: Sequence[str] | None = None, scalar: bool | None = None) -> Spec:
    """A spec of one scan, as `specs` says."""
    layout = draw(topologies(kinds))
    style = draw(styles(layout, scalar))
    spread = style.axes if style.state != "track" else style.axes[1:]
    sizes = {"key": style.key, "value": style.value, "track": style.track}
    writer = Writer(
        draw,
        layout,
        constant=style.constant,
        positive=style.positive,
        spread=spread,
        terms=style.terms,
        sizes=sizes,
        steps=style.steps > 0,
    )
    write_equations(writer, style)
    equations = list(reversed(writer.equations)) if writer.maybe() else writer.equations
    return Spec(layout.kind, _text(style, writer, [*equations, *_settings(writer, style)]), layout.graphs)


def _text(style: Style, writer: Writer, body: Sequence[str]) -> str:
    sizes = f"heads = {style.heads}, key = {style.key}, value = {style.value}"
    sizes += f", track = {style.track}" if style.state == "track" else ""
    sizes += f", writes = {style.writes}" if style.writes else ""
    sizes += f", reads = {style.reads}" if style.reads else ""
    sizes += f", steps = {style.steps}" if style.steps else ""
    sizes += ", gamma = 0.9" if "gamma" in writer.used else ""
    lines = "".join(f"    {line}\n" for line in body)
    definitions = DEFINITIONS if "def" in writer.used else ""
    return f"{style.layout.declarations}{definitions}scan drawn({sizes}) on {style.layout.text} {{\n{lines}}}\n"


def specs(kinds: Sequence[str] | None = None, scalar: bool | None = None) -> st.SearchStrategy[str]:
    """Texts of well-typed specs on topologies of the kinds `topologies.KINDS`, or of those named. `scalar` ones have gates
    without any indices but those of ports, those that are not act on states; by default there are both.

    Gates are at most 1 in magnitude (but for exponentials that are divided by), and where a graph has many paths and the spec
    asks for no stability, what leaves a node adds up to at most 1.
    """
    return written(kinds, scalar).map(lambda spec: spec.text)


@st.composite
def trials(draw: st.DrawFn, kinds: Sequence[str] | None = None, scalar: bool | None = None) -> Trial:
    """Specs, as `specs` draws them, with a rule for the values of their leaves, a seed, and graphs where a spec leaves them to
    run time; named after the kind of topology."""
    spec = draw(written(kinds, scalar))
    return Trial(spec.text, spec.kind, draw(gate_values()), draw(st.integers(0, 2**16)), spec.graphs)
