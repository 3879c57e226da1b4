"""Equations of gates whose values have known bounds, typed as they are written.

Values lie in [-1, 1], or in [0, 1] where they are asked to be positive, whatever the leaves are; only what stands inside a
function with bounded values is larger. Functions stay away from where they are ill-conditioned or have no derivative, so that
single precision has a result to be compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

from stmlang.fuzz.generators.topologies import Layout

T = TypeVar("T")
Site = tuple[str, ...]
"""The indices that are free in an equation: those of its gate without the pinned ones."""

PORTS = ("out", "in")
PRIME = "'"
DEFINITIONS = "def gate(start) = sigmoid(linear(x, bias = start))\ndef damped(a, by) = a * exp(-softplus(by))\n"


@dataclass(frozen=True)
class Helper:
    """A gate that others may refer to."""

    name: str
    indices: Site
    positive: bool


class Writer:
    """Writes the equations of one scan on a layout.

    `constant` gates rest on nothing that differs between nodes; `positive` ones are nowhere negative. `spread` are the state
    indices that helper gates may have, `terms` which of `write` and `read` the scan has, `sizes` how many values each state
    index takes, `steps` whether nodes take steps that gates tell apart.
    """

    def __init__(
        self,
        draw: st.DrawFn,
        layout: Layout,
        *,
        constant: bool,
        positive: bool,
        spread: Site,
        terms: Site,
        sizes: Mapping[str, int],
        steps: bool,
    ) -> None:
        self._draw = draw
        self.layout = layout
        self.constant = constant
        self.positive = positive
        self._spread = (*spread, *terms)
        self._terms = terms
        self._steps = steps
        self._sizes = sizes
        self._helpers: list[Helper] = []
        self._named = 0
        self.equations: list[str] = []
        self.used: set[str] = set()
        """The definitions (`def`) and the number (`gamma`) that equations use."""

    # --- drawing

    def pick(self, options: Sequence[T]) -> T:
        """One of several; shrinks to the first."""
        return self._draw(st.sampled_from(options))

    def maybe(self) -> bool:
        """Yes or no; shrinks to no."""
        return self._draw(st.booleans())

    def subset(self, options: Sequence[str]) -> Site:
        """Some of several, in their order; shrinks to none."""
        return tuple(option for option in options if self.maybe())

    def senses(self, most: int) -> list[tuple[str, ...]]:
        """Up to so many directions, each with a sign for every port."""
        sign = st.sampled_from(("+", "-"))
        return self._draw(st.lists(st.tuples(*(sign for _ in self.layout.ports)), min_size=1, max_size=most, unique=True))

    # --- equations

    def equation(self, name: str, indices: Site, pins: Mapping[str, str], write: Callable[[Site], str]) -> None:
        """One equation, some indices of which are pinned to ports."""
        entries = [f"{index} = {pins[index]}" if index in pins else index for index in indices]
        left = f"{name}[{', '.join(entries)}]" if entries else name
        value = write(tuple(index for index in indices if index not in pins))
        self.equations.append(f"{left} = {value}")

    def equate(self, name: str, indices: Site, write: Callable[[Site], str], plain: bool = False) -> None:
        """The equations of a gate: a general one, and maybe others for single ports, or for the first position on a state
        axis; or one for each port. A `plain` gate has the general one only."""
        places = [index for index in indices if index in self._sizes and f"{index}'" not in indices]
        if places and not plain and self.maybe():
            self.equation(name, indices, {self.pick(places): "0"}, write)
            self.equation(name, indices, {}, write)
            return
        pinned = [index for index in indices if index in PORTS]
        ports = self.layout.ports
        if plain or len(ports) < 2 or not pinned or not self.maybe():
            self.equation(name, indices, {}, write)
            return
        index, everywhere = self.pick(pinned), self.maybe()
        for port in ports if everywhere else self.subset(ports):
            self.equation(name, indices, {index: port}, write)
        if not everywhere:
            self.equation(name, indices, {}, write)

    def helper(self, indices: Site, write: Callable[[Site], str], positive: bool, plain: bool = False) -> str:
        """A new gate, by name."""
        name = f"g{self._named}"
        self._named += 1  # before it is written, since that may take helpers of its own
        self.equate(name, indices, write, plain)
        self._helpers.append(Helper(name, indices, positive))
        return name

    def helpers(self) -> None:
        """Up to two gates of any indices, for others to refer to."""
        for _ in range(self.pick((0, 1, 2))):
            positive = self.positive or self.maybe()
            indices = (*self.subset(PORTS), *self.subset(self._spread))
            self.helper(indices, lambda site, positive=positive: self.bounded(site, 1, positive), positive)

    # --- expressions

    def leaf(self, site: Site) -> str:
        """Something that the caller supplies, of any size."""
        if self.constant:
            return self.pick(("param(0.5)", "param(spread(-1, 1))"))
        features = self._features(site)
        return self.pick(
            (
                f"linear({features})",
                f"linear({features}, bias = 1)",
                f"linear({features}, bias = spread(-2, 2), weight = 0)",
                "given()",
                "given(-2, 2)",
                "param(spread(-1, 1))",
            )
        )

    def _features(self, site: Site) -> str:
        options = ["x", "x", "x, log(1 + degree(in))"]
        if not self.layout.regular:
            options += [f"x, e[{index}]" for index in PORTS if index in site]
            options += [f"e[{index}]" for index in PORTS if index in site]
            options += ["x, e[out], e[in]"] * 6 if set(PORTS) <= set(site) else []
        return self.pick(options)

    def raw(self, site: Site) -> str:
        """A value of any size, for functions that bound it."""
        match self.pick(("leaf", "scaled", "shifted", "input")):
            case "scaled":
                return f"{self.pick((5, 0.3, -2))} * {self.leaf(site)}"
            case "shifted":
                return f"{self.leaf(site)} + {self.bounded(site, 0, False)}"
            case "input" if not self.constant:
                return self._input(site)
            case _:
                return self.leaf(site)

    def _input(self, site: Site) -> str:
        """An entry of query, key or value, or the mean of all; of keys and values there is one for each step."""
        name = self.pick(("k", "q", "v") if not self._steps else ("q",))
        axis, term = "value" if name == "v" else "key", "read" if name == "q" else "write"
        mean = f"mean({name}, over = {axis})"
        if term in self._terms and term not in site:
            return f"mean({mean}, over = {term})"
        lead = f"{term}, " if term in self._terms else ""
        options = [f"{name}[{lead}{index}]" for index in site if index.rstrip("'") == axis]
        return self.pick([*options, mean])

    def bounded(self, site: Site, depth: int, positive: bool) -> str:
        """A value in [-1, 1], or in [0, 1]; operations nest up to so deep."""
        positive = positive or self.positive
        if depth == 0 or not self.maybe():
            return self._simple(site, positive)
        if positive or self.maybe():
            return self._unit(site, depth - 1)
        return self._signed(site, depth - 1)

    def _number(self, site: Site, positive: bool) -> str:
        """A constant, a number of degrees, or whether there is a neighbour."""
        states = [index for index in site if index.rstrip(PRIME) in self._sizes]
        options = ["1", "0.5", "0", "gamma", "spread(0, 1)", *([] if positive else ["-1"])]
        options += ["list"] * 3 if states else []
        options += [] if self.constant else ["degree", *(f"neighbour({index})" for index in PORTS if index in site)]
        option = self.pick(options)
        self.used |= {option}
        match option:
            case "degree":
                return self._degree()
            case "list":
                index = self.pick(states)
                return f"[{', '.join(self.pick(('1', '0.5', '0')) for _ in range(self._sizes[index.rstrip(PRIME)]))}][{index}]"
            case _:
                return option

    def _degree(self) -> str:
        """A number in [0, 1] made of degrees, zero where there are no edges to count."""
        index, other = self.pick((PORTS, PORTS[::-1]))
        forms = ("1 / degree({0})", "degree({0}) ^ -0.5", "tanh(log(degree({0})))", "1 / (degree({0}) + degree({1}))")
        return self.pick(forms).format(index, other)

    def _simple(self, site: Site, positive: bool) -> str:
        options = ["leaf", "given", "number", *([] if self.constant else ["definition"])]
        referable = [helper for helper in self._helpers if (helper.positive or not positive) and self._visible(helper, site)]
        match self.pick([*options, "reference", "reference"] if referable else options):
            case "given" if not self.constant:
                return self.pick(("given(0, 1)", "given(0.25, 0.75)") if positive else ("given(-1, 1)", "given(-0.5, 1)"))
            case "number":
                return self._number(site, positive)
            case "definition":
                self.used |= {"def"}
                return self.pick(("gate(0)", "gate(spread(-1, 1))", "damped(gate(1), by = linear(x))"))
            case "reference":
                return self.reference(self.pick(referable), site)
            case _:
                function = self.pick(("sigmoid",) if positive else ("tanh", "sigmoid", "cap"))
                return f"{function}({self.raw(site)})"

    def _unit(self, site: Site, depth: int) -> str:
        """An operation with values in [0, 1]."""
        forms = ["product", "middle", "rest", "extreme", "function", "power"]
        forms += ["softmax"] if site else []
        forms += ["reduction"] if self._reducible(site, True) else []
        a = self.bounded(site, depth, True)
        match self.pick(forms):
            case "middle":
                return f"({a} + {self.bounded(site, depth, True)}) / 2"
            case "rest":
                return f"(1 - {a})"
            case "extreme":
                return f"{self.pick(('min', 'max'))}({a}, {self.bounded(site, depth, True)})"
            case "function":
                return self.pick(("exp(-{})", "log(1 + {})", "sqrt(0.25 + 0.75 * {})", "softplus({} - 1)", "cos({})")).format(a)
            case "power":
                return f"(0.5 + 0.5 * {a}) ^ {self.pick(('2', '(1 / 16)', '0.5', '3'))}"
            case "softmax":
                return self.softmax(site, self.pick(site))
            case "reduction":
                return self._reduction(site, True)
            case _:
                return f"{a} * {self.bounded(site, depth, True)}"

    def _signed(self, site: Site, depth: int) -> str:
        """An operation with values in [-1, 1]."""
        forms = ["product", "difference", "negation", "wave", "clip", "magnitude"]
        forms += ["norm"] if site else []
        forms += ["reduction"] if self._reducible(site, False) else []
        match self.pick(forms):
            case "difference":
                return f"({self.bounded(site, depth, False)} - {self.bounded(site, depth, False)}) / 2"
            case "negation":
                return f"-{self.bounded(site, depth, False)}"
            case "wave":
                return f"{self.pick(('sin', 'cos'))}(pi * {self.bounded(site, depth, False)})"
            case "clip":
                return f"clip({self.raw(site)}, -1, {self.pick((1, 0.5))})"
            case "magnitude":
                return f"{self.pick(('abs', 'relu'))}({self.bounded(site, depth, False)})"
            case "norm":
                return f"{self.pick(('l1norm', 'l2norm'))}({self.leaf(site)}, over = {self.pick(site)})"
            case "reduction":
                return self._reduction(site, False)
            case _:
                return f"{self.bounded(site, depth, False)} * {self.bounded(site, depth, False)}"

    def softmax(self, site: Site, over: str) -> str:
        """Shares along an index."""
        return f"softmax({self.leaf(site)}, over = {over})"

    def share(self, site: Site) -> str:
        """Numbers whose magnitudes add up to one over `out`, or to less."""
        cuts = len(self.layout.ports) - 1
        ways = ("softmax", "split", "split", "l1norm") if self.layout.regular and cuts else ("softmax", "l1norm", "degree")
        match self.pick(ways):
            case "split":
                angles = [self.helper((), lambda site: self.bounded(site, 1, True), True) for _ in range(cuts)]
                return f"split({', '.join(angles)})[out]" if self.maybe() else f"split({', '.join(angles)})"
            case "l1norm" if not self.positive:
                return f"l1norm({self.leaf(site)}, over = out)"
            case "degree" if not self.constant:
                return f"{self.bounded(site, 1, self.positive)} / degree(out)"
            case _:
                return self.softmax(site, "out")

    # --- references

    def _visible(self, helper: Helper, site: Site) -> bool:
        """Whether a reference can do with the indices that are free."""
        ports = self.layout.regular or set(helper.indices) & set(PORTS) <= set(site)
        kinds = [index.rstrip("'") for index in site]
        needed = [index.rstrip("'") for index in helper.indices if index not in PORTS]
        return ports and all(kinds.count(kind) >= needed.count(kind) for kind in needed)

    def reference(self, helper: Helper, site: Site) -> str:
        """A reference, its indices renamed or pinned."""
        entries: list[str] = []
        for index in helper.indices:
            if index in PORTS and self.layout.regular:
                pins = [f"{index} = {port}" for port in self.layout.ports]
                options = [index, *PORTS, *pins]
                entries.append(self.pick([entry for entry in options if entry in (*site, *pins) and entry not in entries]))
            elif index in PORTS:
                entries.append(index)
            else:
                twins = [entry for entry in site if entry.rstrip("'") == index.rstrip("'") and entry not in entries]
                place = [f"{index} = 0"] if index.rstrip(PRIME) in self._sizes else []
                entries.append(self.pick([*twins, *twins, *place]))
        bare = not entries or (entries == list(helper.indices) and self.maybe())
        return helper.name if bare else f"{helper.name}[{', '.join(entries)}]"

    def _reducible(self, site: Site, positive: bool) -> list[tuple[Helper, str]]:
        """Helpers that can be reduced along an index of theirs, with that index."""
        return [
            (helper, over)
            for helper in self._helpers
            for over in helper.indices
            if (helper.positive or not positive) and set(helper.indices) - {over} <= set(site)
        ]

    def _reduction(self, site: Site, positive: bool) -> str:
        helper, over = self.pick(self._reducible(site, positive))
        match self.pick(("mean", "largest", "sum")):
            case "sum":
                return f"tanh(sum({helper.name}, over = {over}))"
            case kind:
                return f"{kind}({helper.name}, over = {over})"
