"""Sub-circuits: what lies before a gate, as far as there is room for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from stmlang.experiments.circuits.aig import AIG


@dataclass(frozen=True, eq=False)
class Cone:
    """A sub-circuit: `inputs` nodes, then gates, each behind its fanins, the last one the gate that it lies before.

    `fanins` are literals, twice a node's number, and 1 more for its complement.
    """

    inputs: int
    fanins: Int64[np.ndarray, "gates 2"]

    @property
    def size(self) -> int:
        return self.inputs + len(self.fanins)

    @property
    def pairs(self) -> list[list[int]]:
        """The fanins as numbers of Python."""
        return self.fanins.tolist()

    @property
    def levels(self) -> Int64[np.ndarray, " nodes"]:
        """The most gates on a way from an input to a node, itself included: 0 for inputs."""
        levels = [0] * self.inputs
        for a, b in self.pairs:
            levels.append(1 + max(levels[a >> 1], levels[b >> 1]))
        return np.asarray(levels, np.int64)


def cone(circuit: AIG, root: int, most: int) -> Cone:
    """The cone of gate `root`, breadth first from it: gates are taken in, the nearest first, while there are no more than
    `most` nodes with the inputs. A gate that is not taken in counts as an input, as if nothing were known of it."""
    inside: set[int] = set()
    members, waiting = {root}, deque([root])
    while waiting:
        node = waiting.popleft()
        gate = circuit.gates[node]
        if gate is None:
            continue
        new = {literal >> 1 for literal in gate} - members
        if len(members) + len(new) > most:
            break
        inside.add(node)
        members |= new
        waiting.extend(sorted(new))
    order = [*sorted(members - inside), *sorted(inside)]  # a circuit's gates stand behind their fanins
    number = {node: place for place, node in enumerate(order)}
    pairs = [circuit.gates[node] or () for node in sorted(inside)]
    fanins = [[2 * number[literal >> 1] + (literal & 1) for literal in pair] for pair in pairs]
    return Cone(len(members) - len(inside), np.asarray(fanins, np.int64).reshape(-1, 2))


def form(cone: Cone) -> int:
    """The same for all cones that differ in the numbers of nodes and the order of fanins only.

    Each node is known by what lies before it, then by what lies behind it as well. Two cones that are not the same but cannot
    be told apart like that are taken for the same: rather one cone too few than one twice.
    """
    before = [0] * cone.inputs
    pairs = cone.pairs
    for pair in pairs:
        before.append(hash(tuple(sorted((before[literal >> 1], literal & 1) for literal in pair))))
    readers: list[list[tuple[int, int]]] = [[] for _ in before]
    known = list(before)
    for gate in range(len(cone.fanins) - 1, -1, -1):
        node = cone.inputs + gate
        known[node] = hash((before[node], *sorted(readers[node])))
        for literal in pairs[gate]:
            readers[literal >> 1].append((known[node], literal & 1))
    for node in range(cone.inputs):
        known[node] = hash((before[node], *sorted(readers[node])))
    return hash(tuple(sorted(known)))


def cones(circuit: AIG, *, count: int, least: int, most: int, seen: set[int], random: np.random.Generator) -> Iterator[Cone]:
    """Up to `count` cones of gates drawn at random, with at least `least` gates and at most `most` nodes, whose form is not
    among those `seen`, which grow."""
    gates = np.asarray([node for node, gate in enumerate(circuit.gates) if gate is not None], np.int64)
    for root in random.permutation(gates).tolist():
        if not count:
            return
        candidate = cone(circuit, root, most)
        if len(candidate.fanins) >= least and (known := form(candidate)) not in seen:
            seen.add(known)
            count -= 1
            yield candidate
