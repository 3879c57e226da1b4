"""Specs: whole scans of every kind, well typed and bounded by construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st

from stmlang.fuzz.generators.complex_gates import number, turning
from stmlang.fuzz.generators.expressions import DEFINITIONS, PORTS, PRIME, Site, Writer
from stmlang.fuzz.generators.topologies import Layout, topologies
from stmlang.fuzz.generators.values import gate_values
from stmlang.fuzz.trial import Listed, Trial

State = Literal["scalar", "elementwise", "matrix", "delta", "track", "complex"]
STATES: tuple[State, ...] = ("scalar", "elementwise", "matrix", "delta", "track", "complex")
MODES = ("auto", "none", "P", "D")
FEW_PATHS = 64
"""Up to so many paths between two nodes may all have entries of one: more are scaled, or the sums would say little."""
TERMS = (0, 0, 0, 0, 1, 2, 3)
"""How many writes and reads a node has; 0 stands for a head that says nothing of them."""
MOST_SCANS = 300
"""Directions times nodes, at most: an oracle goes through them one by one."""


@dataclass(frozen=True)
class Style:
    """What a scan is to be: on what its transitions act, what its gates rest on, and its settings and sizes."""

    layout: Layout
    state: State
    constant: bool
    normalize: str
    mode: str
    read_after: bool
    heads: int
    key: int
    value: int
    track: int
    writes: int
    reads: int
    steps: int
    """0 where the head says nothing of them."""

    @property
    def terms(self) -> Site:
        """Which of the indices of writes and reads there are."""
        return (*(("write",) if self.writes else ()), *(("read",) if self.reads else ()))

    @property
    def positive(self) -> bool:
        """Whether weights have to be: their sum is divided by."""
        return self.normalize == "sum"

    @property
    def scaled(self) -> bool:
        """Whether the spec itself has to keep states small."""
        return self.mode == "none" and self.layout.paths > FEW_PATHS

    @property
    def out(self) -> bool:
        """Whether sources and transitions may tell outgoing edges apart."""
        return not self.read_after or (self.layout.regular and len(self.layout.ports) == 1)

    @property
    def axes(self) -> Site:
        """State indices that gates may have."""
        values = ("value",) if self.normalize == "none" else ()
        match self.state:
            case "scalar":
                return ()
            case "track":
                return ("track", *values)
            case _:
                return ("key", *values)


@st.composite
def _styles(draw: st.DrawFn, layout: Layout, scalar: bool | None) -> Style:
    states = STATES[:1] if scalar else STATES[1:] if scalar is False else (*STATES[:1] * 5, *STATES[1:])
    state: State = draw(st.sampled_from((*states, *(() if scalar else ("delta",)))))
    chain = layout.regular and len(layout.ports) == 1
    normalizations = ("none", "none", "none", "mlstm", *(("sum",) if state in ("scalar", "elementwise") else ()))
    return Style(
        layout,
        state,
        constant=state == "scalar" and draw(st.sampled_from((False, False, True))),
        normalize=draw(st.sampled_from(normalizations)),
        mode=draw(st.sampled_from(MODES)),
        read_after=draw(st.sampled_from((False, False, True))),
        heads=draw(st.integers(1, 3)),
        key=draw(st.integers(1, 3)),
        value=draw(st.integers(1, 4)),
        track=draw(st.integers(2, 3)) if state == "track" else 1,
        writes=0 if scalar else draw(st.sampled_from(TERMS)),
        reads=0 if scalar else draw(st.sampled_from(TERMS)),
        steps=0 if scalar or not chain else draw(st.sampled_from(TERMS)),
    )


# --- gates


def _transition(writer: Writer, style: Style) -> None:
    """What becomes of a state: in magnitude no more than it was, over all edges that leave where that is called for."""
    every = writer.pick(((), ("in",), ("out",), PORTS, PORTS))
    ends = tuple(index for index in every if index == "in" or style.out)
    match style.state:
        case "scalar":
            axes: Site = ()
        case "elementwise" | "complex":
            axes = writer.subset(style.axes) or style.axes[:1]
        case "matrix":
            axes = ("key", "key'", *writer.subset(style.axes[1:]))
        case "delta":
            axes = ("key", "key'")
        case "track":
            axes = ("track", *writer.subset(("track'",)), *writer.subset(style.axes[1:]))
    indices = (*ends, *axes)
    if style.state == "delta":
        value = _delta(writer, style, ends)
        writer.equation("transition", indices, {}, lambda _: value)
    elif style.state != "complex" and len(ends) == 2 and writer.maybe():
        value = _factors(writer, style, axes)
        writer.equation("transition", indices, {}, lambda _: value)
    else:
        writer.equate("transition", indices, lambda site: _entry(writer, style, site), style.scaled)
    if len(ends) == 2:
        for out, into in _closed(writer):
            writer.equation("transition", indices, {"out": out, "in": into}, lambda _: "0")


def _value(writer: Writer, site: Site) -> str:
    """A number in [-1, 1] or, where the site has a primed index, a matrix that makes nothing larger in sum."""
    primed = next((index for index in site if index.endswith("'")), None)
    if primed is None:
        return writer.bounded(site, 2, False)
    plain = primed.rstrip("'")
    if writer.maybe():
        return f"eye[{plain}, {primed}] * {writer.bounded(site, 1, False)}"
    if writer.maybe():
        matrix = writer.helper((plain, primed), lambda site: f"l1norm({writer.leaf(site)}, over = {plain})", False, plain=True)
        between = f"{primed}{PRIME}"
        return f"sum({matrix}[{plain}, {between}] * {matrix}[{between}, {primed}], over = {between})"
    return f"l1norm({writer.leaf(site)}, over = {plain})"


def _entry(writer: Writer, style: Style, site: Site) -> str:
    """The same, divided among the edges that leave if that is called for, or by their number; or anything, for the stabilizer
    to bound."""
    turns = style.state == "complex"
    if style.mode != "none" and not style.positive and writer.maybe():
        return f"complex({writer.raw(site)}, {writer.raw(site)})" if turns else writer.raw(site)
    value = turning(writer, site) if turns else _value(writer, site)
    if "out" in site and (style.scaled or writer.maybe()):
        return f"{value} * {writer.share(site)}"
    return f"{value} / {style.layout.fan}" if style.scaled else value


def _factors(writer: Writer, style: Style, axes: Site) -> str:
    """A product of what belongs to the edges that leave and what belongs to those that enter; either may hold the matrix."""
    matrix = tuple(axis for axis in axes if f"{axis.rstrip(PRIME)}{PRIME}" in axes)
    others = tuple(axis for axis in axes if axis not in matrix)
    first, second = (matrix, ()) if writer.maybe() else ((), matrix)
    leaving = ("out", *first, *writer.subset(others))
    entering = ("in", *second, *writer.subset(others))
    f = writer.helper(leaving, lambda site: _entry(writer, style, site), writer.positive, style.scaled)
    g = writer.helper(entering, lambda site: _value(writer, site), writer.positive)
    return f"{f} * {g}"


def _delta(writer: Writer, style: Style, ends: Site) -> str:
    """`scale * (eye - strength * u u')`, the scale also inside. `u` is no longer than one and the strength at most two; where
    there is a stabilizer to bound them, `u` may be the key as it comes."""

    def factor(positive: bool) -> str:
        return writer.helper(writer.subset(ends), lambda site: writer.bounded(site, 1, positive), positive)

    forms = ("key", "given", "linear", *(("free",) if style.mode != "none" and not style.positive else ()))
    match writer.pick(("given", "linear") if style.writes or style.steps else forms):
        case "free":
            u = "k"
        case "key":
            writer.equation("k", (), {}, lambda _: "l2norm(k)")
            u = "k"
        case "given":
            u = writer.helper(("key",), lambda _: "l2norm(given())", False, plain=True)
        case _:
            u = writer.helper(("key",), lambda _: "l2norm(linear(x))", False, plain=True)
    strength = writer.pick(("", "2 * ")) + factor(True)
    matrix = f"eye[key, key'] - {strength} * {u}[key] * {u}[key']"
    if style.scaled:
        shares = writer.helper(("out",), writer.share, False, plain=True) if "out" in ends else f"{1 / style.layout.fan:.3f}"
        return f"{shares} * ({matrix})"
    if not writer.maybe():
        return matrix
    scale = factor(False)
    inside = f"{scale} * eye[key, key'] - {strength} * {u}[key'] * {scale} * {u}[key]"
    return inside if writer.maybe() else f"{scale} * ({matrix})"


def _closed(writer: Writer) -> list[tuple[str, str]]:
    """Turns between ports that are not taken, as pairs of `out` and `in`: a side of the diagonal, or any."""
    ports = writer.layout.ports
    turns = [(out, into) for out in ports for into in ports if out != into]
    match writer.pick(("none", "one side", "one side", "any")):
        case "one side":
            down = writer.maybe()
            return [(out, into) for out, into in turns if (ports.index(out) > ports.index(into)) != down]
        case "any":
            return [turn for turn in turns if writer.maybe()]
        case _:
            return []


def _source(writer: Writer, style: Style) -> None:
    """What a node adds; exponentials of anything where their sum is divided by."""

    def value(site: Site) -> str:
        if style.normalize == "mlstm" and writer.maybe():
            return f"exp({writer.leaf(site)})"
        text = number(writer, site) if style.state == "complex" else writer.bounded(site, 2, False)
        return f"{text} * {writer.share(site)}" if "out" in site and writer.maybe() else text

    ends = writer.subset(("out",)) if style.out else ()
    writes = writer.subset([term for term in style.terms if term == "write"])
    writer.equate("source", (*ends, *writer.subset(style.axes), *writes), value)


def _readings(writer: Writer, style: Style) -> None:
    """What a node reads: `mark` and `direct`, or what leaves it."""
    if style.read_after:
        return
    if writer.maybe():
        matrix = ("key'",) if style.state in ("matrix", "delta") and writer.maybe() else ()
        axes = ("key", *matrix, *writer.subset(style.axes[1:])) if matrix else writer.subset(style.axes)
        reads = writer.subset([term for term in style.terms if term == "read"])
        value = number if style.state == "complex" else _value
        writer.equate("mark", (*writer.subset(("in",)), *reads, *axes), lambda site: value(writer, site))
    if writer.maybe():
        axes = writer.subset([*(axis for axis in style.axes if axis != "track"), *style.terms])
        any_number = style.state == "complex" and writer.maybe()
        writer.equation("direct", axes, {}, lambda site: number(writer, site) if any_number else writer.bounded(site, 2, False))


REDEFINED = {
    "q": ("tanh(q)", "q * given(-1, 1)", "softmax(q, over = key)", "q / sqrt(key)"),
    "k": ("l2norm(k)", "k * sigmoid(linear(x))", "softplus(k)", "cap(k)"),
    "v": ("v * sigmoid(linear(x))", "v + param(0.5)", "sin(v)", "clip(v, -1, 2)"),
}


def _inputs(writer: Writer, style: Style) -> None:
    """Redefinitions of query, key and value: positive ones where weights have to be."""
    for name, options in REDEFINED.items():
        if style.positive and name != "v":
            writer.equation(name, (), {}, lambda _, name=name: f"softplus({name})")
        elif not any(line.startswith(f"{name} =") for line in writer.equations) and writer.maybe():
            value = writer.pick(options)
            writer.equation(name, (), {}, lambda _, value=value: value)


# --- settings


PACE = "pace"
"""The gate that differs between the steps of a node."""


def _stepped(writer: Writer) -> None:
    """Sources and transitions that differ between the steps of a node, at most as large as they were."""
    changed = writer.subset(("source", "transition"))
    for place, line in enumerate(writer.equations):
        name = next((name for name in changed if line.startswith((f"{name} ", f"{name}["))), None)
        if name is not None:
            indexed = line.startswith(f"{name}[")
            head, _, value = line.partition("] = " if indexed else " = ")
            writer.equations[place] = f"{f'{head}, step' if indexed else f'{name}[step'}] = {PACE} * ({value})"
    if changed:
        writer.equations.append(f"{PACE}[step] = sigmoid({writer.pick(('linear(x)', 'param(0.5)', 'given(-2, 2)'))})")


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


# --- whole scans


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
    style = draw(_styles(layout, scalar))
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
    writer.helpers()
    _transition(writer, style)
    _source(writer, style)
    _readings(writer, style)
    _inputs(writer, style)
    if style.steps:
        _stepped(writer)
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
