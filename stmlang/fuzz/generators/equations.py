"""The equations of a drawn scan: gates that are bounded by construction, and the redefinitions of its inputs."""

from __future__ import annotations

from stmlang.fuzz.generators.complex_gates import number, turning
from stmlang.fuzz.generators.expressions import PORTS, PRIME, Site, Writer
from stmlang.fuzz.generators.styles import Style

REDEFINED = {
    "q": ("tanh(q)", "q * given(-1, 1)", "softmax(q, over = key)", "q / sqrt(key)"),
    "k": ("l2norm(k)", "k * sigmoid(linear(x))", "softplus(k)", "cap(k)"),
    "v": ("v * sigmoid(linear(x))", "v + param(0.5)", "sin(v)", "clip(v, -1, 2)"),
}
"""What inputs are redefined as."""
PACE = "pace"
"""The gate that differs between the steps of a node."""


def write_equations(writer: Writer, style: Style) -> None:
    """All equations of a scan."""
    writer.helpers()
    _transition(writer, style)
    _source(writer, style)
    _readings(writer, style)
    _inputs(writer, style)
    if style.steps:
        _stepped(writer)


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
            axes = ("key", "key'", *writer.subset(style.values))
        case "delta":
            axes = ("key", "key'")
        case "track":
            axes = ("track", *writer.subset(("track'",)), *writer.subset(style.values))
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

    def factor(positive: bool, ends: Site) -> str:
        return writer.helper(writer.subset(ends), lambda site: writer.bounded(site, 1, positive), positive)

    forms = ("key", "given", "linear", *(("free",) if style.mode != "none" and not style.positive else ()))
    if style.turning_once:
        forms = forms[:1]
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
    strength = writer.pick(("", "2 * ")) + factor(True, () if style.turning_once else ends)
    matrix = f"eye[key, key'] - {strength} * {u}[key] * {u}[key']"
    if style.scaled:
        shares = writer.helper(("out",), writer.share, False, plain=True) if "out" in ends else f"{1 / style.layout.fan:.3f}"
        return f"{shares} * ({matrix})"
    if not writer.maybe():
        return matrix
    scale = factor(False, ends)
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
        axes = ("key", *matrix, *writer.subset(style.values)) if matrix else writer.subset(style.axes)
        reads = writer.subset([term for term in style.terms if term == "read"])
        value = number if style.state == "complex" else _value
        writer.equate("mark", (*writer.subset(("in",)), *reads, *axes), lambda site: value(writer, site))
    if writer.maybe():
        axes = writer.subset([*(axis for axis in style.axes if axis != "track"), *style.terms])
        any_number = style.state == "complex" and writer.maybe()
        writer.equation("direct", axes, {}, lambda site: number(writer, site) if any_number else writer.bounded(site, 2, False))


def _inputs(writer: Writer, style: Style) -> None:
    """Redefinitions of query, key and value: positive ones where weights have to be."""
    for name, options in REDEFINED.items():
        if style.positive and name != "v":
            writer.equation(name, (), {}, lambda _, name=name: f"softplus({name})")
        elif not any(line.startswith(f"{name} =") for line in writer.equations) and writer.maybe():
            value = writer.pick(options)
            writer.equation(name, (), {}, lambda _, value=value: value)


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
