"""What a drawn scan is to be: on what its transitions act, what its gates rest on, its settings and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st

from stmlang.fuzz.generators.expressions import Site
from stmlang.fuzz.generators.topologies import Layout

State = Literal["scalar", "elementwise", "matrix", "delta", "track", "complex"]
STATES: tuple[State, ...] = ("scalar", "elementwise", "matrix", "delta", "track", "complex")
MODES = ("auto", "none", "P", "D")
SPREADS: Mapping[State, Sequence[Site]] = {
    "scalar": ((),),
    "elementwise": (("key", "value"), ("key",), ("value",)),
    "matrix": (("key", "value"), (), ("key",), ("value",)),
    "delta": (("key", "value"), (), (), ("key",), ("value",)),
    "track": ((), ("value",)),
    "complex": (("key", "value"), ("key",), ("value",)),
}
"""The axes that gates may have; a gate need not have all of them."""
ELEMENTWISE: tuple[State, ...] = ("elementwise",)
SINGLE: Mapping[State, Sequence[Site]] = {"elementwise": (("key",), ("value",)), "delta": ((),)}
"""What is drawn, beside the delta rule, on grids of two axes in D-mode, and the axes: there are strategies for these."""
FEW_PATHS = 64
"""Up to so many paths between two nodes may all have entries of one: more are scaled, or the sums would say little."""
TERMS = (0, 0, 0, 0, 1, 2, 3)
"""How many writes and reads a node has; 0 stands for a head that says nothing of them."""


@dataclass(frozen=True)
class Style:
    """What a scan is to be: on what its transitions act, what its gates rest on, and its settings and sizes."""

    layout: Layout
    state: State
    spread: Site
    """The axes of the state that gates may have, but for those that make transitions matrices."""
    turning_once: bool
    """Whether it is one of the scans of `SINGLE`, of which each node writes and reads once, before what it passes on."""
    constant: bool
    normalize: str
    mode: str
    read_after: bool
    heads: int
    key: int
    value: int
    track: int
    writes: int
    reads: int
    steps: int
    """0 where the head says nothing of them."""

    @property
    def terms(self) -> Site:
        """Which of the indices of writes and reads there are."""
        return (*(("write",) if self.writes else ()), *(("read",) if self.reads else ()))

    @property
    def positive(self) -> bool:
        """Whether weights have to be: their sum is divided by."""
        return self.normalize == "sum"

    @property
    def scaled(self) -> bool:
        """Whether the spec itself has to keep states small."""
        return self.mode == "none" and self.layout.paths > FEW_PATHS

    @property
    def out(self) -> bool:
        """Whether sources and transitions may tell outgoing edges apart."""
        return not self.read_after or (self.layout.regular and len(self.layout.ports) == 1)

    @property
    def axes(self) -> Site:
        """State indices that gates may have."""
        spread = tuple(axis for axis in self.spread if axis == "key" or self.normalize == "none")
        match self.state:
            case "scalar":
                return ()
            case "track":
                return ("track", *spread)
            case "elementwise" | "complex":
                return spread or ("key",)
            case _:
                return spread

    @property
    def values(self) -> Site:
        """Of these, what may stand beside those of a matrix."""
        return tuple(axis for axis in self.axes if axis == "value")


@st.composite
def styles(draw: st.DrawFn, layout: Layout, scalar: bool | None) -> Style:
    """What a scan on a topology is to be, `scalar` as `specs` says."""
    states = STATES[:1] if scalar else STATES[1:] if scalar is False else (*STATES[:1] * 5, *STATES[1:])
    grid = layout.regular and len(layout.ports) == 2
    turning_once = not scalar and grid and draw(st.sampled_from((False, False, True)))
    states = ELEMENTWISE if turning_once else states
    state: State = draw(st.sampled_from((*states, *(() if scalar else ("delta",)))))
    chain = layout.regular and len(layout.ports) == 1
    normalizations = ("none", "none", "none", "mlstm", *(("sum",) if state in ("scalar", "elementwise") else ()))
    return Style(
        layout,
        state,
        constant=state == "scalar" and draw(st.sampled_from((False, False, True))),
        normalize=draw(st.sampled_from(normalizations)),
        mode="D" if turning_once else draw(st.sampled_from(MODES)),
        read_after=not turning_once and draw(st.sampled_from((False, False, True))),
        heads=draw(st.integers(1, 3)),
        key=draw(st.integers(1, 3)),
        value=draw(st.integers(1, 4)),
        track=draw(st.integers(2, 3)) if state == "track" else 1,
        writes=0 if scalar or turning_once else draw(st.sampled_from(TERMS)),
        reads=0 if scalar or turning_once else draw(st.sampled_from(TERMS)),
        steps=0 if scalar or not chain else draw(st.sampled_from(TERMS)),
        spread=draw(st.sampled_from(SINGLE[state] if turning_once else SPREADS[state])),
        turning_once=turning_once,
    )
