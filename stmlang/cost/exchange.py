"""What devices that hold the pieces of one scan tell each other, and what that costs on a target.

A scan is cut along one or several axes of its topology, each along an axis of a mesh. A piece is to the others how states pass
it, `C -> T C + W`, where `C` are the states of all edges that enter it across a cut. A state is laid out as `lanes` that do not
meet, in each of them `mixed` numbers that `T` mixes, the same way for `free` columns. There are four ways to find the states
that enter each piece, of which the first two know of one axis only:

* `gather`: every device is sent all `T` and `W` in one round and applies those before it.
* `rounds`: pairs of neighbours, then of pairs, merge what they know: a logarithm of rounds.
* `wavefront`: a device that knows all that enters its piece applies `T` and `W` and hands on what leaves. No `T` is sent, and
  every state once, which is the least possible.
* `ring`: states are handed on likewise, and each device passes its piece anew in every round. No `T` is made.

Along several axes a merged pair of pieces has a border as long as both together, and its `T` as many numbers as the square of
that: from round to round a merge would cost more and send more, where the wavefront reaches the last of `m` by `n` pieces after
`m + n - 2` rounds. So there nothing is merged and nothing gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, prod
from typing import Literal

from stmlang.cost import units
from stmlang.cost.target import Target

Way = Literal["gather", "rounds", "wavefront", "ring"]


@dataclass(frozen=True, slots=True)
class Side:
    """What crosses the cuts along one axis: into how many `pieces` they cut it, across how many `edges` states enter each of
    them there, and across how many they enter the `whole` scan."""

    pieces: int
    edges: int
    whole: int


@dataclass(frozen=True, slots=True)
class Border:
    """The states of one direction that enter a piece across cuts, laid out as lanes, numbers that are mixed and columns that
    are alike; `bytes` are those of a number. `sides` are the axes that are cut."""

    lanes: int
    mixed: int
    free: int
    bytes: int
    sides: tuple[Side, ...]

    @property
    def devices(self) -> int:
        return prod(side.pieces for side in self.sides)

    @property
    def hops(self) -> int:
        """From the first piece to the last one."""
        return sum(side.pieces - 1 for side in self.sides)

    @property
    def probes(self) -> int:
        """How many states have to pass a piece until its `T` is known: each has `free` columns of its own."""
        return ceil(self.mixed / self.free)

    @property
    def state(self) -> int:
        return self.bytes * prod((self.lanes, self.mixed, self.free))

    @property
    def transition(self) -> int:
        return self.bytes * self.lanes * self.mixed**2

    @property
    def handed(self) -> int:
        """The states that every piece hands on, once."""
        edges = sum(side.edges * (side.pieces - 1) * self.devices // side.pieces for side in self.sides)
        return edges * self._edge

    @property
    def least(self) -> int:
        """The states without which no piece but the first can begin: those that enter it across a cut."""
        return sum(side.whole * (side.pieces - 1) for side in self.sides) * self._edge

    @property
    def _edge(self) -> int:
        return self.state // sum(side.edges for side in self.sides)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A way, how many rounds it takes one after the other, how often every piece is passed by states before its evaluation
    begins, the bytes that all devices together are sent, and the seconds that are predicted for all of it."""

    way: Way
    rounds: int
    passes: int
    bytes: int
    seconds: float


def exchanges(border: Border, directions: int, passing: float, target: Target, scaled: bool) -> list[Exchange]:
    """The ways between devices, the fastest first. `passing` are the seconds in which states pass a piece. States that are
    held at a scale of their own are handed on: a `T` of numbers would leave the range of floats."""
    state, piece = border.state * directions, (border.state + border.transition) * directions
    handed, devices, hops, probes = border.handed * directions, border.devices, border.hops, border.probes

    def weighed(way: Way, rounds: int, passes: int, each: int, every: int, work: float) -> Exchange:
        sent = rounds * target.link_latency + each / target.link_bandwidth
        return Exchange(way, rounds, passes, every, passes * passing + sent + work)

    ring = weighed("ring", hops, hops, hops * state, hops * handed, 0.0)
    if scaled or devices == 1:
        return [ring]
    rate = target.matmul["float64" if border.bytes == 8 else "float32"]
    apply = 2 * border.lanes * border.mixed**2 * border.free * directions / rate
    found = [ring, weighed("wavefront", hops, 1 + probes, hops * state, handed, hops * apply)]
    if len(border.sides) == 1:
        merge = apply * (1 + border.mixed / border.free)
        doublings = ceil(log2(devices - 1)) if devices > 2 else 0
        reach = [1, *(2**k for k in range(doublings))]
        # What is learned last is applied and not merged: its `T` is not sent.
        spared = border.transition * directions
        every = sum(devices - by for by in reach) * piece - (devices - reach[-1]) * spared
        gathered = (devices - 1) * piece
        found += [
            weighed("gather", 1, 1 + probes, gathered, devices * gathered, devices * apply),
            weighed("rounds", len(reach), 1 + probes, len(reach) * piece - spared, every, doublings * merge),
        ]
    return sorted(found, key=lambda exchange: exchange.seconds)


def exchange_lines(ranked: Sequence[Exchange], chosen: Exchange, fewest: int, target: Target) -> list[str]:
    """The ways as `explain` lists them."""
    link = f"{units.size(target.link_bandwidth)}/s and {units.seconds(target.link_latency)} a round"
    lines = [f"states that cross cuts are told over links of {link}:"]
    for exchange in ranked:
        mark = "*" if exchange is chosen else " "
        ratio = f", {exchange.bytes / fewest:.3g}x of the least possible {units.size(fewest)}" if fewest else ""
        lines.append(
            f"  {mark} {exchange.way}: {exchange.rounds} rounds, {exchange.passes} passes of states, "
            f"{units.size(exchange.bytes)} between all devices{ratio}, {units.seconds(exchange.seconds)}"
        )
    return lines
