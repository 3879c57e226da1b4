"""Typed expressions: what a gate's equation means once every name is resolved.

Every expression has *free indices*, a subset of `INDICES` in that order. Values are indexed by node, head and direction
besides, which are never written. An expression is evaluated for all nodes at once; `out` and `in` range over a node's outgoing
and incoming ports. Expressions refer to gates by name; a scan lists its gates in dependency order, so no function over
expressions needs to follow a reference recursively.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, assert_never

from stmlang.source.span import Span

Index = Literal["out", "in", "write", "read", "key", "key'", "value", "value'", "track", "track'", "key''", "track''", "step"]
INDICES: tuple[Index, ...] = ("out", "in", "write", "read", "key", "key'", "value", "value'", "track", "track'")
PORT_INDICES: tuple[Index, ...] = INDICES[:2]
TERM_INDICES: tuple[Index, ...] = INDICES[2:4]
"""They tell apart the terms that a node adds to a state, and those that it reads of it."""
STATE_INDICES: tuple[Index, ...] = INDICES[4:]
DENSE_INDICES: tuple[Index, ...] = TERM_INDICES + STATE_INDICES
"""Those that range over the same numbers at every node of every topology."""
BOUND_INDICES: tuple[Index, ...] = ("key''", "track''")
"""What only sums inside of an equation run over, as in a product of matrices: no gate and no leaf has them."""

STEP: Index = "step"
"""What tells apart the steps of a node, in equations. A checked scan has none: its gates are those of a step."""
WRITTEN_INDICES: tuple[Index, ...] = (*PORT_INDICES, STEP, *DENSE_INDICES)
"""Those of equations."""

InputName = Literal["q", "k", "v"]


def ordered(indices: set[Index]) -> tuple[Index, ...]:
    """A set of indices in the order of `WRITTEN_INDICES`, bound ones last."""
    return tuple(index for index in (*WRITTEN_INDICES, *BOUND_INDICES) if index in indices)


class Function(Enum):
    """Elementwise functions of one argument, except MINIMUM, MAXIMUM (two) and CLIP (x, low, high). No text says DIVISOR: only
    the stabilizer writes it."""

    EXP = "exp"
    LOG = "log"
    SIGMOID = "sigmoid"
    TANH = "tanh"
    RELU = "relu"
    SOFTPLUS = "softplus"
    ABS = "abs"
    SQRT = "sqrt"
    SIN = "sin"
    COS = "cos"
    CAP = "cap"  # x / max(1, |x|): the identity on [-1, 1], scaled back to magnitude one outside
    MINIMUM = "min"
    MAXIMUM = "max"
    CLIP = "clip"  # the identity between its bounds, gradient included, constant outside
    DIVISOR = "divisor"  # x where it is larger than 1 + SLACK, else 1, gradient included


SLACK = 4e-6
"""How far beyond one a norm may lie and still count as one: unit vectors and orthogonal matrices that were made in float32 are
as far off as that. It is the same for all data types, so that all of them leave the same matrices alone."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: float
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Spread:
    """A number for each head, evenly spaced from `low` to `high`; a single head has the middle."""

    low: float
    high: float
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Bind:
    """How one declared index of a referenced gate is used: renamed to `index`, or pinned: to the port `port`, or an index of
    the state to the position `place`."""

    declared: Index
    index: Index | None
    port: str | None = None
    place: int | None = None


@dataclass(frozen=True, slots=True)
class LeafRef:
    """A leaf of the scan (a linear map's value, a learned constant, a given array), by name. `indices` are its own."""

    leaf: str
    indices: tuple[Index, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InputRef:
    """The layer's query, key or value as given, before any redefinition; `bind` renames its indices: that of the state, and in
    front of it, where the spec's head says `writes` or `reads`, `write` (of k and v) or `read` (of q)."""

    name: InputName
    bind: tuple[Bind, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GateRef:
    """Another gate of the scan; `bind` says for each of its declared indices what becomes of it here."""

    gate: str
    bind: tuple[Bind, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """A built-in function of its arguments."""

    function: Function
    arguments: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sum:
    """`sum of (-1)^negative * term`; terms broadcast against each other by index name."""

    terms: tuple[tuple[bool, Expr], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Product:
    """`product of factor^(-1 if inverted)`."""

    factors: tuple[tuple[bool, Expr], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Power:
    """`base ^ exponent`."""

    base: Expr
    exponent: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reduce:
    """The sum, mean or largest value over one index, which is free no longer. Over `out` (`in`) it ranges over the outgoing
    (incoming) edges of the node; an empty sum is 0, an empty mean or maximum 0 too."""

    kind: Literal["sum", "mean", "max"]
    over: Index
    argument: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Normalize:
    """The argument rescaled along one index, which stays free.

    `softmax`: `exp(a) / sum exp(a)`; `l2`: `a / sqrt(sum a^2 + 1e-6)`... see `L2_EPSILON`; `l1`: `a / max(1, sum |a|)`.
    """

    kind: Literal["softmax", "l1", "l2"]
    over: Index
    argument: Expr
    span: Span = field(compare=False, repr=False)


L2_EPSILON = 1e-12
"""`l2norm(k) = k / sqrt(sum k^2 + L2_EPSILON)`: defined at zero, gradient included, and never longer than one."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Values side by side along a state index: at the position `p` the entry of `p`, and `rest` where there is none. What has
    the index itself counts with its value at that position. `rest` is None where each position has an entry."""

    index: Index
    entries: tuple[tuple[int, Expr], ...]
    rest: Expr | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Split:
    """A point of the simplex over `out` by breaking a stick: with arguments `a, b, ...` (one fewer than ports, each in [0, 1]),
    the ports in order get `a`, `(1-a) b`, `(1-a)(1-b) c`, ..., and the last one what is left. Regular topologies only."""

    arguments: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Eye:
    """One where both state indices are equal, else zero."""

    first: Index
    second: Index
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Spectral:
    """The spectral norm of the argument as a matrix: its rows are the first indices of `pairs`, its columns the second ones. An
    argument that lacks one of them is the same along it. What is computed is the Schatten norm

        (sum of s^(2 q))^(1 / (2 q)),   s the singular values,   q = 2^SQUARINGS + 1,

    which is smooth, and for n rows larger than the largest s by a factor of at most `n^(1 / (2 q))`: well within SLACK. Only
    the stabilizer writes it. The indices of `pairs` are not free."""

    pairs: tuple[tuple[Index, Index], ...]
    argument: Expr
    span: Span = field(compare=False, repr=False)

    @property
    def indices(self) -> frozenset[Index]:
        """The indices of the matrix, which are bound here."""
        return frozenset(index for pair in self.pairs for index in pair)


SQUARINGS = 21


@dataclass(frozen=True, slots=True)
class Degree:
    """How many edges the index `over` ranges over at a node, open ones among them: those that leave it or that enter it, in the
    sense of the direction. Not on regular topologies, where it is the number of ports."""

    over: Literal["out", "in"]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One where the edge that the index `over` ranges over has a node at its other end, zero where it comes from outside or
    leads there. Free index: `over`."""

    over: Literal["out", "in"]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Finite:
    """The argument where it has a finite value, else zero: `1 / degree(out)` is zero at a node that no edge leaves. It is a
    quotient, power, root or logarithm made of numbers and degrees alone, so that no derivative passes through it. No text
    says so: it is written as its argument is."""

    argument: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LineMask:
    """One on the line edges that a multitree reduction of the topology's line graph keeps, else zero
    (`stmlang.graph.multitree`). Only the stabilizer writes it; ragged topologies only. Free indices: out, in."""

    span: Span = field(compare=False, repr=False)


Expr = (
    Number
    | Spread
    | LeafRef
    | InputRef
    | GateRef
    | Apply
    | Sum
    | Product
    | Power
    | Reduce
    | Normalize
    | Stack
    | Split
    | Eye
    | Spectral
    | Degree
    | Neighbour
    | Finite
    | LineMask
)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside one, in order of writing."""
    match expr:
        case Number() | Spread() | LeafRef() | InputRef() | GateRef() | Eye() | Degree() | Neighbour() | LineMask():
            return ()
        case Stack(entries=entries, rest=rest):
            return (*(entry for _, entry in entries), *(() if rest is None else (rest,)))
        case Apply(arguments=arguments) | Split(arguments=arguments):
            return arguments
        case Sum(terms=pairs) | Product(factors=pairs):
            return tuple(operand for _, operand in pairs)
        case Power(base=base, exponent=exponent):
            return (base, exponent)
        case Reduce(argument=argument) | Normalize(argument=argument) | Finite(argument=argument):
            return (argument,)
        case Spectral(argument=argument):
            return (argument,)
        case _:
            assert_never(expr)


def inside(*exprs: Expr) -> Iterator[Expr]:
    """Expressions and everything inside them, each before what is inside it."""
    stack = list(exprs)
    while stack:
        top = stack.pop()
        yield top
        stack.extend(children(top))


def free_indices(expr: Expr) -> tuple[Index, ...]:
    """The free indices of an expression, in the order of `INDICES`."""
    match expr:
        case Number() | Spread() | Degree():
            return ()
        case Stack(index=index):
            return ordered({index, *(free for operand in children(expr) for free in free_indices(operand))})
        case LeafRef(indices=indices):
            return ordered(set(indices))
        case InputRef(bind=bind) | GateRef(bind=bind):
            return ordered({entry.index for entry in bind if entry.index is not None})
        case Eye(first=first, second=second):
            return ordered({first, second})
        case Neighbour(over=over):
            return (over,)
        case LineMask():
            return ("out", "in")
        case Split(arguments=arguments):
            return ordered({"out", *(index for operand in arguments for index in free_indices(operand))})
        case Reduce(over=over, argument=argument):
            return ordered({index for index in free_indices(argument) if index != over})
        case Spectral(argument=argument):
            return ordered({index for index in free_indices(argument) if index not in expr.indices})
        case Normalize(over=over, argument=argument):
            return ordered({over, *free_indices(argument)})
        case Apply() | Sum() | Product() | Power() | Finite():
            return ordered({index for operand in children(expr) for index in free_indices(operand)})
        case _:
            assert_never(expr)
