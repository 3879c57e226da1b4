"""And-inverter graphs: what circuits are brought to, whatever their gates.

Numbers are those of AIGER: literal `2 n` is node `n`, `2 n + 1` its complement, node 0 the constant false. Inputs come next,
then gates, each behind its fanins. No two gates have the same fanins, and none has a constant or the same node twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stmlang.experiments.training.errors import TrainingError
from stmlang.graph.incidence import rows
from stmlang.graph.levels import topological_order
from stmlang.graph.readers import Netlist

Gate = tuple[int, int]
"""The literals of an AND gate's fanins, the smaller one first."""


@dataclass(frozen=True)
class AIG:
    """By node, the fanins of a gate, None for an input and for node 0."""

    gates: tuple[Gate | None, ...]


@dataclass
class Builder:
    """An and-inverter graph while it is built; every function returns a literal."""

    gates: list[Gate | None] = field(default_factory=lambda: [None])
    known: dict[Gate, int] = field(default_factory=dict[Gate, int])

    def input(self) -> int:
        self.gates.append(None)
        return 2 * (len(self.gates) - 1)

    def both(self, a: int, b: int) -> int:
        """`a and b`."""
        a, b = min(a, b), max(a, b)
        if a == 0 or a == b ^ 1:
            return 0
        if a in (1, b):
            return b
        if (a, b) not in self.known:
            self.gates.append((a, b))
            self.known[a, b] = 2 * (len(self.gates) - 1)
        return self.known[a, b]

    def differ(self, a: int, b: int) -> int:
        """`a xor b`: neither both of them nor none."""
        return self.both(self.both(a, b) ^ 1, self.both(a ^ 1, b ^ 1) ^ 1)

    def gate(self, kind: str, fanins: list[int]) -> int | None:
        """The gate of a netlist, None for a kind that is not known. Of many fanins a balanced tree is made."""
        match kind:
            case "FALSE":
                return 0
            case "AND" | "NAND":
                return self._tree("AND", fanins) ^ (kind == "NAND")
            case "OR" | "NOR":
                return self._tree("AND", [literal ^ 1 for literal in fanins]) ^ (kind == "OR")
            case "XOR" | "XNOR":
                return self._tree("XOR", fanins) ^ (kind == "XNOR")
            case "BUF" | "BUFF" | "NOT" | "INV" if len(fanins) == 1:
                return fanins[0] ^ (kind in ("NOT", "INV"))
            case _:
                return None

    def _tree(self, kind: str, literals: list[int]) -> int:
        if not literals:
            return int(kind == "AND")
        join = self.both if kind == "AND" else self.differ
        while len(literals) > 1:
            joined = [join(a, b) for a, b in zip(literals[::2], literals[1::2], strict=False)]
            literals = joined + literals[len(literals) & ~1 :]
        return literals[0]


def aig_of(netlist: Netlist, name: str) -> AIG:
    """The circuit `name` as an and-inverter graph; nodes of which no input of it says anything are left out.

    Raises TrainingError for a gate whose function is not known.
    """
    dag, builder = netlist.dag, Builder()
    entering = rows(dag.head, dag.node_count)
    edges = [incoming.tolist() for incoming in np.split(entering.item, entering.start[1:-1])]
    literal: dict[int, int] = {node: builder.input() for node, kind in enumerate(netlist.kinds) if kind == "INPUT"}
    ordered: list[int] = topological_order(dag).tolist()
    for node in ordered:
        if node in literal:
            continue
        kind = netlist.kinds[node]
        new_literal = builder.gate(kind, [literal[int(dag.tail[edge])] ^ int(netlist.inverted[edge]) for edge in edges[node]])
        if new_literal is None:
            help = "take AND, NAND, OR, NOR, XOR, XNOR, and NOT or BUF of one signal, or leave the circuit out"
            raise TrainingError(
                f"circuit {name} has a gate {kind} of {len(edges[node])} signals, which has no meaning here", help
            )
        literal[node] = new_literal
    return AIG(tuple(builder.gates))
