"""Random well-typed scans, of the shapes that facts have to be right about."""

from __future__ import annotations

from random import Random

from stmlang.scan.expression import (
    INDICES,
    Degree,
    Expr,
    Finite,
    Function,
    GateRef,
    Index,
    InputRef,
    LeafRef,
    Product,
    inside,
)
from stmlang.scan.scan import Direction, Mode, Scan
from stmlang.scan.topology import CompleteTree, Topology, is_regular, ports
from stmlang.scan.topology import Product as TopologyProduct
from tests.facts.build import add, div, eye, f, given, leaf, make_scan, mul, neg, norm, num, pow_, read, reduce_, split, sub
from tests.helpers.scans import NOWHERE, dag, grid, orientations

BOTH = (Direction((1,)), Direction((-1,)))
DIAMOND = dag(4, [(-1, 0), (0, 1), (0, 2), (1, 3), (2, 3), (3, -1), (0, 3)])
MULTITREE = dag(5, [(0, 2), (1, 2), (2, 3), (2, 4), (4, -1), (3, -1)])

TOPOLOGIES: dict[str, tuple[Topology, tuple[Direction, ...]]] = {
    "chain": (grid(3), orientations(1)),
    "grid": (grid(2, 2), orientations(2)[:2]),
    "volume": (grid(2, 2, 2), orientations(3)[5:6]),
    "diamond": (DIAMOND, BOTH),
    "multitree": (MULTITREE, BOTH),
    "tree": (CompleteTree(2, 2, NOWHERE), BOTH),
    "tree up": (CompleteTree(2, 2, NOWHERE), BOTH[:1]),
    "product": (TopologyProduct((grid(2), CompleteTree(2, 1, NOWHERE)), NOWHERE), (Direction((1, 1)),)),
    "product dag": (TopologyProduct((grid(2), DIAMOND), NOWHERE), (Direction((1, 1)), Direction((-1, -1)))),
}
NUMBERS = (0.0, 0.0, 1.0, -1.0, 0.5, 2.0, -0.25, 3.0, 1e-3, 1e30)
BOUNDS = ((0.0, 1.0), (-1.0, 1.0), (0.25, 0.75), (-3.0, 3.0), (2.0, 2.0), (0.0, float("inf")), (-40.0, -1.0), (0.0, 0.0))
ONE_ARGUMENT = tuple(entry.value for entry in Function if entry not in (Function.MINIMUM, Function.MAXIMUM, Function.CLIP))
BOUNDED = ("tanh", "sigmoid", "cap", "sin", "abs", "relu")


class Writer:
    """Writes the gates of one scan."""

    def __init__(self, random: Random, topology: Topology) -> None:
        self.random = random
        self.ports = [port.name for port in ports(topology)]
        self.regular = is_regular(topology)
        self.gates: dict[str, tuple[Index, ...]] = {}
        self.leaves: dict[str, tuple[float, float]] = {}
        self.count = 0

    def subset(self, allowed: set[Index]) -> tuple[Index, ...]:
        return tuple(index for index in INDICES if index in allowed and self.random.random() < 0.6)

    def leaf(self, allowed: set[Index]) -> Expr:
        self.count += 1
        name = f"leaf{self.count}"
        if self.random.random() < 0.5:
            self.leaves[name] = self.random.choice(BOUNDS)
        return leaf(name, *self.subset(allowed))

    def reference(self, allowed: set[Index]) -> Expr | None:
        """A reference to an earlier gate, if one can be made."""
        if not self.gates:
            return None
        name = self.random.choice(list(self.gates))
        bind: list[tuple[Index, Index | str]] = []
        for index in self.gates[name]:
            kind = ("out", "in") if index in ("out", "in") else (index.rstrip("'"), index.rstrip("'") + "'")
            names = [entry for entry in kind if entry in allowed]
            if index in ("out", "in"):
                names = [*names, self.random.choice(self.ports)] if self.regular else [index] if index in allowed else []
            if not names:
                return None
            bind.append((index, self.random.choice(names)))
        return read(name, *bind)

    def expr(self, depth: int, allowed: set[Index]) -> Expr:
        pick = self.random.random()
        if depth == 0 or pick < 0.08:
            return self.simple(allowed)
        parts = [self.expr(depth - 1, allowed) for _ in range(self.random.choice((1, 2, 2, 3)))]
        if pick < 0.25:
            return f(self.random.choice(ONE_ARGUMENT), parts[0])
        if pick < 0.4:
            return f(self.random.choice(BOUNDED), parts[0])
        if pick < 0.55:
            return self.random.choice((add, sub))(*parts) if len(parts) > 1 else neg(parts[0])
        if pick < 0.75:
            return mul(*parts) if len(parts) == 1 or self.random.random() < 0.8 else div(parts[0], parts[1])
        if pick < 0.79:
            return pow_(parts[0], self.random.choice((0, 0.5, 1, 2, 3, -1, -2, 1 / 16, parts[-1])))
        if pick < 0.83:
            return f(self.random.choice(("min", "max")), parts[0], parts[-1])
        if pick < 0.85:
            return f("clip", parts[0], -1, self.random.choice((0, 0.5, 1)))
        return self.special(depth, allowed)

    def simple(self, allowed: set[Index]) -> Expr:
        pick = self.random.random()
        if pick < 0.25:
            return num(self.random.choice(NUMBERS))
        if pick < 0.35 and {"key", "key'"} <= allowed:
            return eye()
        if pick < 0.42 and not self.regular:
            return self.counted(2)
        if pick < 0.45 and "key" in allowed:
            return given(self.random.choice("qk"), self.random.choice([i for i in allowed if i.startswith("key")]))
        if pick < 0.7 and (found := self.reference(allowed)) is not None:
            return found
        return self.leaf(allowed)

    def counted(self, depth: int) -> Expr:
        """Made of numbers and degrees alone, zero where it has no finite value."""
        if depth == 0 or self.random.random() < 0.3:
            return Degree(self.random.choice(("out", "in")), NOWHERE)
        first, second = self.counted(depth - 1), self.random.choice((num(1), num(-0.5), num(2), self.counted(depth - 1)))
        match self.random.choice(("sum", "difference", "product", "quotient", "inverse", "power", "log", "sqrt", "max", "min")):
            case "sum":
                return add(first, second)
            case "difference":
                return sub(first, second)
            case "product":
                return mul(first, second)
            case "quotient":
                return Finite(div(second, first), NOWHERE)
            case "inverse":
                return Finite(Product(((True, first),), NOWHERE), NOWHERE)
            case "power":
                return Finite(pow_(first, self.random.choice((2, 0.5, -0.5, -1))), NOWHERE)
            case "max" | "min" as name:
                return f(name, first, second)
            case name:
                return Finite(f(name, first), NOWHERE)

    def special(self, depth: int, allowed: set[Index]) -> Expr:
        """What is not elementwise."""
        pick = self.random.random()
        if pick < 0.3 and "out" in allowed and self.regular:
            arguments = [self.expr(depth - 1, allowed - {"out"}) for _ in self.ports[1:]]
            return split(*(f("sigmoid", part) if self.random.random() < 0.7 else part for part in arguments))
        if pick < 0.7 and allowed:
            over = self.random.choice(sorted(allowed))
            return norm(self.random.choice(("softmax", "l1", "l2")), over, self.expr(depth - 1, allowed))
        over = self.random.choice(sorted({"out", "in", "key"} if self.regular else {"key", *(allowed & {"out", "in"})}))
        return reduce_(self.random.choice(("sum", "mean", "max")), over, self.expr(depth - 1, allowed | {over}))

    def equations(self, name: str, indices: tuple[Index, ...], depth: int) -> dict[str, Expr]:
        """A gate: one equation, or one with others for pinned ports."""
        inside = ", ".join(indices)
        found = {f"{name}[{inside}]": self.expr(depth, set(indices))}
        pinned = [index for index in ("out", "in") if index in indices]
        if pinned and self.random.random() < 0.35:
            places = {index: self.random.choice(self.ports) for index in pinned}
            text = ", ".join(f"{index}={places[index]}" if index in places else index for index in indices)
            found[f"{name}[{text}]"] = (
                num(0) if self.random.random() < 0.5 else self.expr(depth - 1, set(indices) - set(pinned))
            )
        self.gates[name] = indices
        return found


def matrix(writer: Writer, u: str) -> Expr:
    """A transition of the delta rule's form, or nearly."""
    random = writer.random
    second = u if random.random() < 0.9 else "w"
    strength = mul(random.choice((1, 2, 2.5)), f(random.choice(("sigmoid", "tanh", "relu")), writer.leaf({"out"})))
    outer = [strength, read(u, ("key", "key")), read(second, ("key", "key'"))]
    whole = sub(eye(), mul(*outer))
    return whole if random.random() < 0.4 else mul(f("tanh", writer.leaf({"in"})), whole)


def shared(writer: Writer) -> Expr:
    """A transition that P-mode can be proved of, or nearly: bounded factors and something that is divided among the ports."""
    random = writer.random
    share = norm(random.choice(("softmax", "l1")), "out", writer.expr(1, {"out", "in"}))
    if writer.regular and random.random() < 0.5:
        share = split(*(f("sigmoid", writer.expr(1, {"in"})) for _ in writer.ports[1:]))
    if not writer.regular and random.random() < 0.6:
        share = shared_by_degree(writer)
    decay = f(random.choice(BOUNDED), writer.expr(1, {"in"}))
    whole = mul(decay, share) if random.random() < 0.7 else add(mul(0.5, share), mul(decay, 0.5, share))
    return f("tanh", whole) if random.random() < 0.2 else whole


def shared_by_degree(writer: Writer) -> Expr:
    """One over the number of outgoing edges, or over something that is larger, or nearly."""
    random = writer.random
    out = Degree("out", NOWHERE)
    more = f(random.choice(("sigmoid", "softplus", "exp", "tanh")), writer.expr(1, {"out", "in"}))
    divisor = random.choice(
        (
            out,
            mul(random.choice((2, 0.5)), out),
            add(out, more),
            add(out, writer.counted(1)),
            mul(out, add(1, more)),
            mul(out, more),
            f("max", 1, out),
            f("min", 2, out),
            pow_(out, random.choice((0.5, 1.5, 2))),
            sub(out, num(0.5)),
        )
    )
    if all(not isinstance(part, LeafRef | GateRef | InputRef) for part in inside(divisor)):
        return Finite(Product(((True, divisor),), NOWHERE), NOWHERE)
    return div(random.choice((1, f("tanh", writer.expr(1, {"out", "in"})))), divisor)


def random_scan(random: Random, name: str) -> Scan:
    """A scan on the topology of a name, with up to three helper gates and a transition."""
    topology, directions = TOPOLOGIES[name]
    writer = Writer(random, topology)
    helpers: tuple[tuple[Index, ...], ...] = ((), ("out",), ("in",), ("key",), ("out", "in"), ("key", "key'"), ("out", "key"))
    equations: dict[str, Expr] = {}
    for number in range(random.randint(0, 3)):
        equations |= writer.equations(f"g{number}", random.choice(helpers), random.choice((1, 2, 3)))
    state = random.choice(((), (), (), ("key",), ("key", "key'")))
    if state == ("key", "key'") and random.random() < 0.6:
        equations["u[key]"] = norm("l2", "key", given("k")) if random.random() < 0.8 else given("k")
        equations["w[key]"] = norm("l2", "key", given("q"))
        writer.gates |= {"u": ("key",), "w": ("key",)}
        equations["transition[out, in, key, key']"] = matrix(writer, "u")
    elif not state and random.random() < 0.3:
        equations["transition[out, in]"] = shared(writer)
    else:
        ends = random.choice((("out", "in"), ("out", "in"), ("out", "in"), ("out",), ("in",), ()))
        equations |= writer.equations("transition", (*ends, *state), random.choice((1, 2, 3)))
    mode = random.choice((Mode.AUTO, Mode.P, Mode.D, Mode.NONE))
    return make_scan(topology, equations, mode=mode, directions=directions, leaves=writer.leaves)
