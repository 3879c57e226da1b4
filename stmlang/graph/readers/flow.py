"""What the numbers of a raster of flow directions mean, in the conventions of the programs that write them.

    ESRI, from the east clockwise     GRASS and TauDEM, counterclockwise
      32  64 128                        3 2 1          4 3 2
      16   x   1                        4 x 8          5 x 1
       8   4   2                        5 6 7          6 7 8

The numbers overlap, and nothing in a raster says which convention it follows, so that the name of the format does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from stmlang.source.wording import listing

if TYPE_CHECKING:
    from jaxtyping import Shaped, UInt8

Step = tuple[int, int]
"""Rows down and columns to the right."""

STEPS: dict[int, Step] = {
    1: (0, 1), 2: (1, 1), 4: (1, 0), 8: (1, -1), 16: (0, -1), 32: (-1, -1), 64: (-1, 0), 128: (-1, 1),
}  # fmt: skip
"""Where ESRI's codes lead, which cells have once they are read. A pit has the code 0."""
PIT, EMPTY, WRONG = 0, 247, 254
"""Further codes of cells: those without data, and those whose value means nothing."""

_COUNTERCLOCKWISE = (1, 128, 64, 32, 16, 8, 4, 2)
"""ESRI's codes from the east over the north on."""


@dataclass(frozen=True)
class Convention:
    """The codes that values stand for. `empty` are the values of cells without data in files that do not say."""

    name: str
    codes: dict[int, int]
    empty: tuple[float, ...]
    rule: str


ESRI = Convention(
    "ESRI",
    {**{code: code for code in STEPS}, 0: PIT, 255: PIT},
    (247, -9999),
    "flow directions are 1, 2, 4, 8, 16, 32, 64 and 128; pits are 0 or 255",
)
GRASS = Convention(
    "GRASS",
    {
        **{number % 8 or 8: code for number, code in enumerate(_COUNTERCLOCKWISE)},
        **dict.fromkeys(range(-8, 1), PIT),
    },
    (-9999,),
    "flow directions of r.watershed are 1 to 8, negative where they lead out of the region; depressions are 0",
)
TAUDEM = Convention(
    "TauDEM",
    {**{number + 1: code for number, code in enumerate(_COUNTERCLOCKWISE)}, 0: PIT},
    (-9999,),
    "flow directions of TauDEM are 1 to 8; cells that are not resolved are 0",
)

FORMATS = {"ESRI": "d8", "GRASS": "d8_grass", "TauDEM": "d8_taudem"}
"""How a spec says the convention."""


def coded(
    values: Shaped[np.ndarray, "*cells"], convention: Convention, empty: tuple[float, ...]
) -> UInt8[np.ndarray, "*cells"]:
    """What values of cells mean, as codes; `empty` are the values of cells without data, whatever else they could mean."""
    codes = np.full(values.shape, WRONG, np.uint8)
    for value, code in convention.codes.items():
        codes[values == value] = code
    for nothing in empty:
        codes[np.isnan(values) if isnan(nothing) else values == nothing] = EMPTY
    return codes


def advice(convention: Convention, values: list[float]) -> str:
    """What to do about values of which some mean nothing: the other conventions in which all that are given mean something."""
    fitting = [
        other for other in (ESRI, GRASS, TAUDEM) if other != convention and all(value in other.codes for value in values)
    ]
    if not fitting:
        return "take a file of flow directions, as it was published, and name the value of cells without data"
    return f"say {listing([f'`as {FORMATS[other.name]}` if the codes are those of {other.name}' for other in fitting])}"
