"""The typed scan: gates as equations over named indices, on a topology."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from stmlang.scan.expression import Expr, Index, InputName
from stmlang.scan.topology import Regular, Topology
from stmlang.source import short
from stmlang.source.span import Span


@dataclass(frozen=True, slots=True)
class Feature:
    """An argument of `linear`: node features `x`, or edge features `e[in]`, `e[out]` (ragged topologies only)."""

    name: Literal["x", "e"]
    index: Literal["in", "out"] | None = None


@dataclass(frozen=True, slots=True)
class Initial:
    """Where a learned bias or constant starts: `low` everywhere, or evenly spread over the heads from `low` to `high`
    (one head gets the middle)."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Leaf:
    """What the caller supplies. The array's shape is `(*nodes, head, [direction], [step], *indices)`, where

    * the node axes become one axis of edges if a ragged port index is free (`out`: the edge leaves the node; `in`: it enters),
      one of line edges if both are, and then those indices have no axis of their own;
    * `param` has no node axes at all;
    * there is a direction axis exactly if `directional` and the scan has more than one direction;
    * there is an axis of steps exactly if `stepped`: then it has a value for each step of a node.

    `linear`: `W f + b`, W and b learned, one of each for every head, direction and (not ragged) index; the array is the value.
    `param`: starts at `bias`, and at random around it where `weight`, a standard deviation, is not zero: those are the weights
    of degrees.
    `given`: computed by the caller, clamped to [low, high] (gradient one inside, bounds included; zero outside).
    """

    name: str
    kind: Literal["linear", "param", "given"]
    indices: tuple[Index, ...]
    directional: bool
    features: tuple[Feature, ...] = ()
    bias: Initial = Initial(0.0, 0.0)
    weight: float = 0.0
    low: float = float("-inf")
    high: float = float("inf")
    stepped: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """One equation of a gate. `ports` pins indices to ports, `()` for the general equation. Of the clauses that match, the one
    with the most pinned indices holds; the checker has refused ambiguous pairs and gaps."""

    ports: tuple[tuple[Index, str], ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class Gate:
    """A named quantity. `indices` in the order written; a value that lacks one of them is the same along it. A gate that is
    `directional` may differ between the directions of the scan."""

    name: str
    indices: tuple[Index, ...]
    clauses: tuple[Clause, ...]
    directional: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Direction:
    """A sense for each port, +1 along the edges as declared, -1 against them."""

    senses: tuple[int, ...]


class Mode(Enum):
    """What a spec asks of its stability (`stabilize ...`)."""

    P = "P"
    D = "D"
    AUTO = "auto"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Scan:
    """A checked scan.

    `gates` are in dependency order and always hold `source`, `transition`, `mark` and `direct`, and `q`, `k`, `v` where the
    spec redefines them. `heads`, `key`, `value`, `track` are sizes; `track` is 1 unless a gate has the index. `writes` is how
    many keys and values a node has, `reads` how many queries and outputs; they are 1 unless the head of the spec says. `own`
    names the inputs among `q`, `k`, `v`, in this order, of which each direction has one of its own (`own_inputs`). `steps` is
    how many steps a node of a chain takes; the gates are those of a step (`stmlang.scan.steps`).
    `epsilon` is that of `normalize mlstm`, added at the scale of the largest term so far.

    Invariants (`stmlang.check.invariants` asserts them): every reference is to an earlier gate or a leaf; a gate's clauses have
    no free index outside its `indices` less the pinned ones; `source` has no `in`, `mark` no `out`, `direct` neither.
    """

    name: str
    topology: Topology
    heads: int
    key: int
    value: int
    track: int
    gates: tuple[Gate, ...]
    leaves: tuple[Leaf, ...]
    directions: tuple[Direction, ...]
    combine: Literal["sum", "concat"]
    stabilize: Mode
    normalize: Literal["none", "sum", "mlstm"]
    span: Span = field(compare=False, repr=False)
    writes: int = 1
    reads: int = 1
    epsilon: float = 0.0
    own: tuple[InputName, ...] = ()
    steps: int = 1

    __pdoc__ = short.text

    def __repr__(self) -> str:
        terms = (("writes", self.writes), ("reads", self.reads), ("steps", self.steps))
        several = "".join(f"{name} {size}, " for name, size in terms if size > 1)
        return (
            f"<Scan {self.name}: heads {self.heads}, key {self.key}, value {self.value}, track {self.track}, {several}"
            f"{len(self.gates)} gates, {len(self.leaves)} leaves, {len(self.directions)} directions>"
        )

    def gate(self, name: str) -> Gate:
        """The gate of a name; KeyError if there is none."""
        for gate in self.gates:
            if gate.name == name:
                return gate
        raise KeyError(name)

    def leaf(self, name: str) -> Leaf:
        """The leaf of a name; KeyError if there is none."""
        for leaf in self.leaves:
            if leaf.name == name:
                return leaf
        raise KeyError(name)


def own_inputs(scan: Scan) -> tuple[InputName, ...]:
    """The inputs of which each direction has one of its own: their arrays have an axis of directions behind that of heads. Of a
    single direction there is none."""
    return scan.own if len(scan.directions) > 1 else ()


def adds_direct_once(scan: Scan) -> bool:
    """Whether one direct term is added for all directions: where these are summed and share the gate and all that it is
    applied to."""
    return scan.combine == "sum" and not scan.gate("direct").directional and not own_inputs(scan)


def has_scale(scan: Scan) -> bool:
    """Whether a scan is run at a scale of its own: a normalized one, on a chain, whose gates have no state axes."""
    plain = all(set(scan.gate(name).indices) <= {"out", "in"} for name in ("source", "transition", "mark", "direct"))
    chain = isinstance(scan.topology, Regular) and len(scan.topology.axes) == 1
    return scan.normalize != "none" and plain and chain
