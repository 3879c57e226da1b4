"""STM4xxx: stability."""

from __future__ import annotations

STABILITY: dict[str, tuple[str, str]] = {
    "STM4001": (
        "P-mode inserted",
        "No proof was found that in every column the magnitudes of the transition sum to at most 1 over `out`, so each column "
        "is divided by that sum where it is larger; of a matrix the magnitude is its spectral norm. Columns that are small "
        "enough stay as they are. A warning where no mode was asked for, else a note. `stmlang explain` shows which bound was "
        "missing; a factor such as `split(...)`, or `softmax(..., over = out)`, together with one that lies in [-1, 1], is "
        "proved and costs nothing, and so is `eye[key, key'] - b * u[key] * u[key']` with `b` in [0, 2] and `u = "
        "l2norm(...)`.",
    ),
    "STM4002": (
        "D-mode inserted",
        "D-mode needs one path between any two edges, and entries of at most 1. Where there may be several paths, turns "
        "between ports (on grids) or pairs of edges (on graphs) are left out; where an entry may be larger than 1 it is "
        "divided by its magnitude, of a matrix its spectral norm. A warning where no mode was asked for, else a note. To "
        "choose which turn is left out, write it: `transition[out = cols, in = rows] = 0`.",
    ),
    "STM4003": (
        "unbounded by request",
        "The spec says `stabilize none`, and no mode could be proved: states may grow exponentially with the number of nodes. "
        "`stabilize auto` bounds them.",
    ),
}
