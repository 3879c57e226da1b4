"""Numbers with indices: one for each site (see `sites`), head, and state index that a value has, and how indices are added,
renamed and pinned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from stmlang.graph.shapes import index_size
from stmlang.oracle.functions import Floats
from stmlang.oracle.sites import PortIndices, Sites
from stmlang.scan.expression import BOUND_INDICES, DENSE_INDICES, INDICES, PORT_INDICES, Bind, Index
from stmlang.scan.scan import Scan
from stmlang.scan.topology import is_regular

AXIS: dict[Index, str] = dict(zip((*INDICES, *BOUND_INDICES), "oiwrkKvVtTxy", strict=True))
"""A letter for each index in einsum subscripts; heads are `h`, sites `n`."""


def port_part(indices: Iterable[Index]) -> PortIndices:
    """The port indices among some, in order."""
    present = set(indices)
    return tuple(index for index in PORT_INDICES if index in present)


def state_part(indices: Iterable[Index]) -> tuple[Index, ...]:
    """The other indices among some, in order: those of the state, and of writes and reads."""
    present = set(indices)
    return tuple(index for index in (*DENSE_INDICES, *BOUND_INDICES) if index in present)


@dataclass(frozen=True, eq=False)
class Value:
    """Numbers of shape (sites of `ports`, head, *`states`); both in the order of `INDICES`. State axes may have length one."""

    ports: PortIndices
    states: tuple[Index, ...]
    array: Floats


@dataclass(frozen=True, eq=False)
class Frame:
    """What the indices of a value range over: the sites of a direction, and the sizes that the scan says."""

    scan: Scan
    sites: Sites

    def constant(self, number: float) -> Value:
        """The same number everywhere."""
        return self.at_sites(np.full(self.sites.count(()), number))

    def at_sites(self, numbers: Floats, *ports: Index) -> Value:
        """A number for each node, or site of `ports`, the same for all heads."""
        return Value(ports, (), np.broadcast_to(numbers[:, None], (len(numbers), self.scan.heads)))

    def over_heads(self, low: float, high: float) -> Value:
        """Numbers that grow evenly from the first head to the last one; the one in the middle where there is one head."""
        heads = self.scan.heads
        each = [low + (high - low) * (head / (heads - 1) if heads > 1 else 0.5) for head in range(heads)]
        return Value((), (), np.broadcast_to(np.asarray(each), (self.sites.count(()), heads)))

    def eye(self, first: Index, second: Index) -> Value:
        """One where two indices are equal, else zero."""
        matrix = np.eye(index_size(self.scan, first))
        return Value(
            (), state_part((first, second)), np.broadcast_to(matrix, (self.sites.count(()), self.scan.heads, *matrix.shape))
        )

    def lift(self, value: Value, ports: PortIndices, states: tuple[Index, ...]) -> Value:
        """A value with more indices, the same along those it lacked (state axes of length one there)."""
        array = value.array[self.sites.within(value.ports, ports)]
        lengths = dict(zip(value.states, array.shape[2:], strict=True))
        return Value(ports, states, array.reshape(*array.shape[:2], *(lengths.get(index, 1) for index in states)))

    def spread(self, value: Value, ports: PortIndices, states: tuple[Index, ...]) -> Value:
        """As `lift`, with every state axis at its full length."""
        lifted = self.lift(value, ports, states)
        sizes = tuple(index_size(self.scan, index) for index in states)
        return Value(ports, states, np.broadcast_to(lifted.array, (*lifted.array.shape[:2], *sizes)))

    def together(self, values: list[Value], *more: Index) -> tuple[PortIndices, tuple[Index, ...], list[Floats]]:
        """Values brought to the union of their indices and `more`, so that their arrays broadcast."""
        indices = set(more)
        for value in values:
            indices.update(value.ports, value.states)
        ports = port_part(indices)
        states = state_part(indices)
        return ports, states, [self.lift(value, ports, states).array for value in values]

    def at_place(self, value: Value, index: Index, place: int) -> Value:
        """One position of a state index, which a value may lack."""
        if index not in value.states:
            return value
        axis = value.states.index(index)
        whole = self.spread(value, value.ports, value.states).array
        return Value(
            value.ports, value.states[:axis] + value.states[axis + 1 :], np.take(whole, [place], 2 + axis).squeeze(2 + axis)
        )

    def renamed(self, value: Value, bind: tuple[Bind, ...]) -> Value:
        """A gate or an input as referred to: each declared index renamed, or pinned to a port."""
        for entry in bind:
            value = value if entry.place is None else self.at_place(value, entry.declared, entry.place)
        to: dict[Index, Index | None] = {index: index for index in value.states}
        to |= {entry.declared: entry.index for entry in bind}
        renamed: list[Index] = [new_index for index in value.states if (new_index := to[index]) is not None]
        states, letters = state_part(renamed), "".join(AXIS[index] for index in renamed)
        array = np.einsum(f"nh{letters}->nh{''.join(AXIS[index] for index in states)}", value.array)
        value = Value(value.ports, states, array)
        ports = [entry for entry in bind if entry.declared in value.ports]
        if all(entry.index == entry.declared for entry in ports):
            return value
        return self._renamed_on_axes(value, ports) if is_regular(self.scan.topology) else self._pinned(value, ports)

    def _renamed_on_axes(self, value: Value, bind: list[Bind]) -> Value:
        """Port indices on a regular topology, where each node has one edge of each port: axes can be swapped and picked."""
        array = value.array.reshape(
            self.sites.dag.node_count, *[len(self.sites.dag.ports)] * len(value.ports), *value.array.shape[1:]
        )
        renamed: list[Index] = []
        for entry in sorted(bind, key=lambda entry: value.ports.index(entry.declared)):
            if entry.index is None:
                array = np.take(array, self.sites.dag.ports.index(str(entry.port)), axis=1 + len(renamed))
            else:
                renamed.append(entry.index)
        ports, letters = port_part(renamed), "".join(AXIS[index] for index in renamed)
        array = np.einsum(f"n{letters}...->n{''.join(AXIS[index] for index in ports)}...", array)
        return Value(ports, value.states, array.reshape(self.sites.count(ports), *array.shape[1 + len(ports) :]))

    def _pinned(self, value: Value, bind: list[Bind]) -> Value:
        """Port indices elsewhere, where they can only be pinned, and only to a port of which each node has one edge."""
        pinned: dict[Index, str | None] = {entry.declared: entry.port for entry in bind if entry.index != entry.declared}
        ports = port_part(index for index in value.ports if index not in pinned)
        matches = np.ones(len(value.array), dtype=bool)
        for index, port in pinned.items():
            matches &= self.sites.port(value.ports, index) == self.sites.dag.ports.index(str(port))
        where = self.sites.within(ports, value.ports)[matches]
        if sorted(where) != list(range(self.sites.count(ports))):
            raise ValueError(f"a gate is pinned to ports {pinned} of which some node has none or several edges")
        array = np.empty((len(where), *value.array.shape[1:]), dtype=value.array.dtype)
        array[where] = value.array[matches]
        return Value(ports, value.states, array)
