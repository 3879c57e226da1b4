"""Scans put together by hand, each gate an array that the caller gives: they need no parser and no checker."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import key_shape, leaf_shape, query_shape, state_shapes, value_shape
from stmlang.scan.expression import Index, LeafRef, Number
from stmlang.scan.scan import Clause, Direction, Gate, Leaf, Mode, Scan
from stmlang.scan.topology import Axis, Regular, Static, Topology, ports
from stmlang.source.span import SourceFile, Span

NOWHERE = Span(SourceFile("<test>", ""), 0, 0)

PLAIN: dict[str, tuple[Index, ...]] = {"source": ("out",), "transition": ("out", "in"), "mark": ("in",), "direct": ()}
"""The gates of a scan without state indices."""


def grid(*sizes: int) -> Regular:
    """A chain or grid with axes called a, b, c, ..."""
    return Regular(tuple(Axis("abcdefg"[number], size) for number, size in enumerate(sizes)), NOWHERE)


def dag(nodes: int, edges: list[tuple[int, int]]) -> Static:
    """A DAG of numbered nodes."""
    return Static(tuple(f"n{number}" for number in range(nodes)), tuple(edges), False, NOWHERE)


def arrows(nodes: int, edges: list[tuple[int, int]]) -> str:
    """The same DAG as a text."""
    names = [f"n{number}" for number in range(nodes)]
    lines = [f"{names[tail] if tail >= 0 else ''} -> {names[head] if head >= 0 else ''}".strip() for tail, head in edges]
    return f"dag {{ {'; '.join((*names, *lines))} }}"


def orientations(axes: int) -> tuple[Direction, ...]:
    """`directions all`: direction i flips axis a exactly if bit a of i is set."""
    return tuple(Direction(tuple(-1 if number >> axis & 1 else 1 for axis in range(axes))) for number in range(2**axes))


def given_scan(
    topology: Topology,
    indices: Mapping[str, tuple[Index, ...]] = PLAIN,
    *,
    zero: tuple[tuple[str, str], ...] = (),
    directions: tuple[Direction, ...] | None = None,
    heads: int = 1,
    key: int = 2,
    value: int = 3,
    track: int = 1,
    writes: int = 1,
    reads: int = 1,
    combine: str = "sum",
    normalize: str = "none",
    directional_direct: bool = False,
) -> Scan:
    """A scan all of whose gates are given, `zero` naming the (out, in) pairs of ports whose transition is structurally zero."""
    directions = directions or (Direction((1,) * len(ports(topology))),)
    gates: list[Gate] = []
    leaves: list[Leaf] = []
    for name, wanted in indices.items():
        directional = (name != "direct" or directional_direct) and name not in "qkv"
        leaves.append(Leaf(name, "given", wanted, directional))
        clauses = [Clause((), LeafRef(name, wanted, NOWHERE))]
        if name == "transition":
            clauses += [Clause((("out", out), ("in", into)), Number(0.0, NOWHERE)) for out, into in zero]
        gates.append(Gate(name, wanted, tuple(clauses), directional, NOWHERE))
    return Scan(
        "test",
        topology,
        heads,
        key,
        value,
        track,
        tuple(gates),
        tuple(leaves),
        directions,
        combine,
        Mode.NONE,
        normalize,
        NOWHERE,
        writes,
        reads,
    )


def random_inputs(scan: Scan, graph: DAG, seed: int, scale: float = 0.6) -> dict:
    """Arguments `q, k, v, gates, initial` for a scan: normal numbers, gates uniform between -scale and scale."""
    rng = np.random.default_rng(seed)
    gates = {leaf.name: rng.uniform(-scale, scale, leaf_shape(scan, graph, leaf)) for leaf in scan.leaves}
    initial = tuple({name: rng.normal(size=shape) for name, shape in ports.items()} for ports in state_shapes(scan, graph))
    return {
        "q": rng.normal(size=query_shape(scan, graph)),
        "k": rng.normal(size=key_shape(scan, graph)),
        "v": rng.normal(size=value_shape(scan, graph)),
        "gates": gates,
        "initial": initial,
    }
