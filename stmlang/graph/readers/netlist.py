"""Circuits with their gates. `read_graph` reads the same files, and says nothing of what the nodes are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.readers import aiger, bench
from stmlang.graph.readers.files import open_file, path_text, refusal
from stmlang.graph.readers.finish import checked
from stmlang.scan import graph_files
from stmlang.source import short

if TYPE_CHECKING:
    from jaxtyping import Bool

SUFFIXES = {suffix: format for suffix, format in graph_files.SUFFIXES.items() if format in ("bench", "aiger")}
"""Those of netlists, with the format that each stands for."""


@dataclass(frozen=True, eq=False)
class Netlist:
    """A circuit. `kinds` says of each node that it is an `INPUT`, or which gate, in upper case: `NAND`. The fanins of a gate
    are the tails of its edges, in order, each inverted where `inverted` says so, which happens in AIGER only; of a gate that is
    `FALSE` they do not matter."""

    dag: DAG
    kinds: tuple[str, ...] = field(repr=False)
    inverted: Bool[np.ndarray, " edges"]

    __repr__ = short.fields


def read_netlist(path: str) -> Netlist:
    """The circuit in a BENCH or AIGER file, nodes and edges as `read_graph` numbers them. Raises SpecError as it does, and
    STM3402 for any other format."""
    path = path_text(path)
    suffix = graph_files.suffix_of(path)
    if suffix not in SUFFIXES:
        raise refusal("STM3402", f"`{path}` is no netlist by its suffix", None, f"netlists end in {', '.join(SUFFIXES)}")
    file = open_file(path, SUFFIXES[suffix])
    if SUFFIXES[suffix] == "bench":
        graph, kinds = bench.gates(file)
        circuit = graph.parsed()
        inverted = np.zeros(len(circuit.tail), bool)
    else:
        circuit, kinds, inverted = aiger.gates(file)
    return Netlist(checked(file, circuit), tuple(kinds), inverted)
