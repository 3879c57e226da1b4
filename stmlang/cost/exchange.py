"""What devices that hold the pieces of one scan tell each other, and what that costs on a target.

A piece is to the others how states pass it, `C -> T C + W`. A state is laid out as `lanes` that do not meet, in each of them
`mixed` numbers that `T` mixes, the same way for `free` columns. There are three ways to find the state that enters each piece:

* `gather`: every device is sent all `T` and `W` in one round and applies those before it.
* `rounds`: pairs of neighbours, then of pairs, merge what they know: a logarithm of rounds.
* `ring`: states are handed on from piece to piece, and each device passes its piece anew in every round. No `T` is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, prod
from typing import Literal

from stmlang.cost import units
from stmlang.cost.target import Target

Way = Literal["gather", "rounds", "ring"]


@dataclass(frozen=True, slots=True)
class Border:
    """The states of one direction that cross from piece to piece, laid out as lanes, numbers that are mixed and columns that
    are alike; `bytes` are those of a number."""

    lanes: int
    mixed: int
    free: int
    bytes: int

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


@dataclass(frozen=True, slots=True)
class Exchange:
    """A way, how many rounds it takes one after the other, how often every piece is passed by states before its evaluation
    begins, the bytes that all devices together are sent, and the seconds that are predicted for all of it."""

    way: Way
    rounds: int
    passes: int
    bytes: int
    seconds: float


def exchanges(border: Border, directions: int, devices: int, passing: float, target: Target, scaled: bool) -> list[Exchange]:
    """The ways between so many devices, the fastest first. `passing` are the seconds in which states pass a piece. States that
    are held at a scale of their own are handed on: a `T` of numbers would leave the range of floats."""
    state, piece = border.state * directions, (border.state + border.transition) * directions
    rate = target.matmul["float64" if border.bytes == 8 else "float32"]
    apply = 2 * border.lanes * border.mixed**2 * border.free * directions / rate
    merge = apply * (1 + border.mixed / border.free)
    doublings = ceil(log2(devices - 1)) if devices > 2 else 0
    reach = [1, *(2**k for k in range(doublings))]

    def weighed(way: Way, rounds: int, passes: int, each: int, every: int, work: float) -> Exchange:
        sent = rounds * target.link_latency + each / target.link_bandwidth
        return Exchange(way, rounds, passes, every, passes * passing + sent + work)

    last, probes = devices - 1, border.probes
    ring = weighed("ring", last, last, last * state, last * last * state, 0.0)
    if scaled or devices == 1:
        return [ring]
    # What is learned last is applied and not merged: its `T` is not sent.
    spared = border.transition * directions
    every = sum(devices - by for by in reach) * piece - (devices - reach[-1]) * spared
    gather = weighed("gather", 1, 1 + probes, last * piece, devices * last * piece, devices * apply)
    rounds = weighed("rounds", len(reach), 1 + probes, len(reach) * piece - spared, every, doublings * merge)
    return sorted([gather, rounds, ring], key=lambda exchange: exchange.seconds)


def least(border: Border, directions: int, devices: int) -> int:
    """The bytes without which no piece but the first can begin: each is sent the state that enters it."""
    return (devices - 1) * border.state * directions


def exchange_lines(ranked: Sequence[Exchange], chosen: Exchange, fewest: int) -> list[str]:
    """The ways as `explain` lists them."""
    lines: list[str] = []
    for exchange in ranked:
        mark = "*" if exchange is chosen else " "
        ratio = f", {exchange.bytes / fewest:.3g}x of the least possible {units.size(fewest)}" if fewest else ""
        lines.append(
            f"  {mark} {exchange.way}: {exchange.rounds} rounds, {exchange.passes} passes of states, "
            f"{units.size(exchange.bytes)} between all devices{ratio}, {units.seconds(exchange.seconds)}"
        )
    return lines
