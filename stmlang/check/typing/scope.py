"""What names stand for while an expression is typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from stmlang.check.modules import Module
from stmlang.check.typing.complex_values import Form, Typed
from stmlang.scan.expression import Index
from stmlang.scan.scan import Leaf
from stmlang.scan.topology import Topology, is_regular, ports
from stmlang.source.span import Span
from stmlang.syntax import tree


class NoNumber(Enum):
    """Why a name that stands for a number has none."""

    UNBOUND = "an axis whose size is not known yet"
    BROKEN = "an error that has been reported"


SIZE = "a size"
NAMED_SIZE = "the size of a topology with a name"

Numbers = dict[str, float | NoNumber]


@dataclass(frozen=True, slots=True)
class Header:
    """A gate as its left-hand sides declare it."""

    name: str
    indices: tuple[Index, ...]
    span: Span
    form: Form = Form.REAL
    paired: bool = False
    """Whether it has an entry for the real and one for the imaginary part of the state, and so an index `track`."""


@dataclass(eq=False)
class Argument:
    """A definition's argument: what was written and where its names are looked up. It is typed once, when first needed, so
    that a leaf in it is one leaf however often the definition uses it."""

    expression: tree.Expression
    scope: Scope
    typed: bool = False
    value: Typed | None = None


@dataclass(frozen=True)
class Scope:
    """Where an expression's names are looked up: a file's functions and, in a definition's body, its parameters.

    `whole` is True for an equation's own text, which sees the scan's gates and numbers; a body sees neither.
    """

    module: Module
    parameters: Mapping[str, Argument] = field(default_factory=dict[str, Argument])
    whole: bool = True


@dataclass
class World:
    """The scan around an equation: its numbers, its gates (None where the header is broken) and its topology, if sound."""

    numbers: Numbers
    gates: dict[str, Header | None] = field(default_factory=dict[str, "Header | None"])
    topology: Topology | None = None
    reported: set[str] = field(default_factory=set[str])
    """Names that do not exist and have been reported, functions with a bracket behind: each is reported once."""
    used: set[str] = field(default_factory=set[str])
    """The numbers that were referred to."""
    constant: str | None = None
    """Where only numbers make sense, what the number is for: `a size`."""

    @property
    def regular(self) -> bool:
        """Whether the topology is regular; an unknown one is taken for it, which forbids least."""
        return self.topology is None or is_regular(self.topology)

    def dense_ports(self) -> dict[str, bool]:
        """The ports, each with whether it is ragged."""
        return {} if self.topology is None else {port.name: port.ragged for port in ports(self.topology)}


@dataclass
class Site:
    """The equation being typed, and what is found in it."""

    gate: str
    label: str
    """The name of its first leaf: that of the gate, with the ports it is pinned to."""
    indices: tuple[Index, ...]
    """The indices that its leaves get: those on the left less the pinned ones."""
    span: Span
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    uses: dict[str, Span] = field(default_factory=dict[str, Span])
    """The gates referred to, each where it is first."""


@dataclass
class Budget:
    """How much a file's definitions may expand to."""

    steps: int = 100_000
    weight: int = 100_000
    spent: bool = False
