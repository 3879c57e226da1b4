"""Topologies as declared: symbols and sizes. `stmlang.graph` turns them into numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

from stmlang.source.span import Span

OPEN = -1
"""Stands for "outside" as the tail of an edge that enters or the head of one that leaves."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a regular topology. Its name is its port's name and the name of its size; `size` is None until bound."""

    name: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Regular:
    """A chain or grid: the product of its axes' chains. Port `p` of a node leads to the next node along axis `p`; edges cross
    every border, so each node has exactly one incoming and one outgoing edge of each port."""

    axes: tuple[Axis, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Static:
    """A DAG written out. `edges[k] = (tail, head)`, indices into `nodes`, or `OPEN`. Acyclic, no self loops. A `tree` has its
    edges from the children to the root: at most one leaves a node."""

    nodes: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]
    tree: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CompleteTree:
    """The complete tree whose inner nodes have `arity` children, `depth` edges from the root to each leaf; edges from the
    children to the root. Nodes are numbered level by level from the deepest leaves to the root, which is last."""

    arity: int | None
    depth: int | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FromFile:
    """A DAG in a graph file; `path` is absolute and exists. `format` is None where the suffix decides."""

    path: str
    format: str | None
    tree: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Runtime:
    """DAGs given at run time, of at most so many nodes and edges."""

    nodes: int
    edges: int
    tree: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Product:
    """The product of DAGs: a node for each tuple of nodes, an edge wherever one component moves along an edge of its factor.
    At least one factor is not regular (regular ones are merged); factors are never products."""

    factors: tuple[Regular | Static | CompleteTree | FromFile | Runtime, ...]
    span: Span = field(compare=False, repr=False)


Topology = Regular | Static | CompleteTree | FromFile | Runtime | Product


@dataclass(frozen=True, slots=True)
class Port:
    """A class of edges. A node has one edge in and one out of a regular port, any number of a ragged one."""

    name: str
    ragged: bool


def ports(topology: Topology) -> tuple[Port, ...]:
    """The ports of a topology in order. The ports of several ragged factors are `edge1`, `edge2`, ..."""
    match topology:
        case Regular(axes=axes):
            return tuple(Port(axis.name, False) for axis in axes)
        case Static() | CompleteTree() | FromFile() | Runtime():
            return (Port("edge", True),)
        case Product(factors=factors):
            all_ports = [port for factor in factors for port in ports(factor)]
            if sum(port.ragged for port in all_ports) > 1:
                count = iter(range(1, len(all_ports) + 1))
                all_ports = [Port(f"edge{next(count)}", True) if port.ragged else port for port in all_ports]
            return tuple(all_ports)
        case _:
            assert_never(topology)


def is_regular(topology: Topology) -> bool:
    """Whether gates are indexed by a node and a dense axis of ports rather than by edges."""
    return isinstance(topology, Regular)


def kind_of(topology: Topology) -> Literal["chain", "grid", "tree", "dag", "product"]:
    """The word for a topology in messages."""
    match topology:
        case Regular(axes=axes):
            return "chain" if len(axes) == 1 else "grid"
        case CompleteTree():
            return "tree"
        case Static(tree=tree) | FromFile(tree=tree) | Runtime(tree=tree):
            return "tree" if tree else "dag"
        case Product():
            return "product"
        case _:
            assert_never(topology)
