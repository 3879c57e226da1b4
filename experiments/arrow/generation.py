"""Scenes: an arrow, a circle, and whether the one points at the other. Nothing is drawn here.

Scene `i` of a seed is the same whatever was generated before it: its numbers are those of a counter (Philox) at `i`.

Coordinates are in pixels, `x` to the right and `y` down; directions are angles from `x` to `y`. An arrow points at a circle
where its ray, forward from its centre, meets it. With the distance `d` of the centres and the radius `r`, a pointing arrow is
off by at most `asin(r / (1.2 d))`, any other by at least `asin(1.2 r / d)`; nothing lies between.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, cast, get_args

import numpy as np
from jaxtyping import Bool, Float64, Int64
from typing_extensions import Doc

Form = Literal["debiased", "paper"]
FORMS: tuple[Form, ...] = get_args(Form)

CLEARANCE = 1.2
"""Between pointing and not pointing lies a band of angles from `r / CLEARANCE` to `CLEARANCE r`."""
APART = 2 * 2**0.5
"""Least distance of the centres in radii."""
DRAWN = 12
"""Numbers that are drawn for a scene in a round, three of the counter's steps of four."""

Uniform = Float64[np.ndarray, "scene number"]


@dataclass(frozen=True)
class Geometry:
    """An image of `size x size`, in whose margin of `padding` no centre lies; ranges that radii, lengths of arrows and widths
    of their lines are drawn from, evenly, the upper end left out. The defaults are those of the paper's configuration."""

    size: Annotated[int, Doc("side of images in training, in pixels; it is doubled for extrapolation")] = 192
    padding: Annotated[int, Doc("margin of images in which no centre lies")] = 30
    radius: Annotated[tuple[float, float], Doc("radii of circles, from and to")] = (15.0, 30.0)
    length: Annotated[tuple[int, int], Doc("lengths of arrows, from and to below")] = (15, 30)
    width: Annotated[tuple[int, int], Doc("widths of the lines of arrows, from and to below")] = (2, 4)


@dataclass(frozen=True, eq=False)
class Scenes:
    """Scenes side by side: centre of the arrow, its direction in radians, length and width of its lines, centre and radius of
    the circle, and whether the arrow points at it."""

    arrow: Float64[np.ndarray, "scene 2"]
    direction: Float64[np.ndarray, " scene"]
    length: Int64[np.ndarray, " scene"]
    width: Int64[np.ndarray, " scene"]
    circle: Float64[np.ndarray, "scene 2"]
    radius: Float64[np.ndarray, " scene"]
    pointing: Bool[np.ndarray, " scene"]

    def __len__(self) -> int:
        return len(self.pointing)

    def take(self, numbers: Int64[np.ndarray, " scene"] | slice) -> Scenes:
        """Some of the scenes."""
        return Scenes(*(getattr(self, field.name)[numbers] for field in fields(self)))


def scenes(form: Form, geometry: Geometry, seed: int, count: int, first: int = 0) -> Scenes:
    """The scenes `first`, `first + 1`, ... of a seed. `paper` has the geometry of the paper's data, in which the label can be
    told from the arrow alone; `debiased` has not: see `_debiased`."""
    match form:
        case "paper":
            return _paper(geometry, seed, count, first)
        case "debiased":
            return _debiased(geometry, seed, count, first)


def bearing(arrow: Float64[np.ndarray, "scene 2"], circle: Float64[np.ndarray, "scene 2"]) -> Float64[np.ndarray, " scene"]:
    """The angle at which a circle is seen from an arrow."""
    offset = circle - arrow
    return np.arctan2(offset[:, 1], offset[:, 0])


def turned_away(
    direction: Float64[np.ndarray, " scene"], bearing: Float64[np.ndarray, " scene"]
) -> Float64[np.ndarray, " scene"]:
    """By how much a direction misses a bearing, from 0 to pi."""
    return np.abs((direction - bearing + np.pi) % (2 * np.pi) - np.pi)


def _uniforms(seed: int, count: int, first: int, round: int) -> Uniform:
    """Numbers in [0, 1), `DRAWN` for each scene, of the counter at `first` and the round's own key."""
    counter = np.random.Philox(key=np.asarray([seed, round], np.uint64)).advance(first * (DRAWN // 4))
    return np.random.Generator(counter).random((count, DRAWN))


def _paper(geometry: Geometry, seed: int, count: int, first: int) -> Scenes:
    """The paper's data: with the side `s` of the square that centres lie in, the circle's coordinates are those of the arrow's
    plus `2 r + (s - 4 r) u`, less `s` where that is outside. So the circle lies inside, and far from the axes of the arrow;
    the larger it is beside `s`, the more exactly it lies opposite."""
    u = _uniforms(seed, count, first, 0)
    side = geometry.size - 2 * geometry.padding
    radius = _between(u[:, 1], geometry.radius)
    corner = side * u[:, 2:4]
    moved = corner + 2 * radius[:, None] + (side - 4 * radius)[:, None] * u[:, 4:6]
    circle = np.where(moved > side, moved - side, moved)
    pointing = u[:, 0] < 0.5
    arrow, circle = corner + geometry.padding, circle + geometry.padding
    direction = _direction(arrow, circle, radius, pointing, u[:, 6])
    return Scenes(arrow, direction, *_lines(geometry, u), circle, radius, pointing)


def _debiased(geometry: Geometry, seed: int, count: int, first: int) -> Scenes:
    """Neither the arrow alone tells anything, nor the circle alone. Two pointing scenes with uniform centres are drawn, anew
    until neither arrow points at the other's circle, or is too near to it. The scene is the first of them, or its arrow with
    the circle of the second. In either case its arrow is the first one's, and its circle is distributed alike, since the two
    scenes may be exchanged."""
    drawn, place, round = np.empty((2, count, DRAWN)), np.arange(count), 1
    while len(place):
        u = np.stack([_uniforms(seed, count, first, 2 * round + which)[place] for which in range(2)])
        fits = _exchangeable(_pointing(geometry, u[0]), _pointing(geometry, u[1]))
        drawn[:, place] = u
        place, round = place[~fits], round + 1
    own, other = (_pointing(geometry, u) for u in drawn)
    pointing = _uniforms(seed, count, first, 0)[:, 0] < 0.5
    circle = np.where(pointing[:, None], own.circle, other.circle)
    return replace(own, circle=circle, radius=np.where(pointing, own.radius, other.radius), pointing=pointing)


def _pointing(geometry: Geometry, u: Uniform) -> Scenes:
    """Pointing scenes whose centres are uniform, whatever their distance."""
    low, side = geometry.padding, geometry.size - 2 * geometry.padding
    arrow, circle = low + side * u[:, 2:4], low + side * u[:, 4:6]
    radius, pointing = _between(u[:, 1], geometry.radius), np.ones(len(u), bool)
    direction = _direction(arrow, circle, radius, pointing, u[:, 6])
    return Scenes(arrow, direction, *_lines(geometry, u), circle, radius, pointing)


def _exchangeable(first: Scenes, second: Scenes) -> Bool[np.ndarray, " scene"]:
    """Whether all four centres are far enough from each other, and neither arrow points at the other scene's circle."""
    fits = np.ones(len(first), bool)
    for a, b in ((first, first), (second, second), (first, second), (second, first)):
        offset = np.linalg.norm(b.circle - a.arrow, axis=1)
        fits &= offset > APART * b.radius
        if a is not b:
            off = turned_away(a.direction, bearing(a.arrow, b.circle))
            fits &= off > np.arcsin(np.minimum(1, CLEARANCE * b.radius / offset))
    return fits


def _direction(
    arrow: Float64[np.ndarray, "scene 2"],
    circle: Float64[np.ndarray, "scene 2"],
    radius: Float64[np.ndarray, " scene"],
    pointing: Bool[np.ndarray, " scene"],
    u: Float64[np.ndarray, " scene"],
) -> Float64[np.ndarray, " scene"]:
    """Uniform within the angles at which an arrow points, or within all at which it clearly does not."""
    ratio = np.minimum(radius / np.linalg.norm(circle - arrow, axis=1), 1 / CLEARANCE)
    within, beyond = np.arcsin(ratio / CLEARANCE), np.arcsin(ratio * CLEARANCE)
    off = cast(Any, np.where(pointing, (2 * u - 1) * within, beyond + 2 * (np.pi - beyond) * u))
    return (bearing(arrow, circle) + off) % (2 * np.pi)


def _lines(geometry: Geometry, u: Uniform) -> tuple[Int64[np.ndarray, " scene"], Int64[np.ndarray, " scene"]]:
    """Lengths of arrows and widths of their lines, whole numbers."""
    length, width = _between(u[:, 7], geometry.length), _between(u[:, 8], geometry.width)
    return np.floor(length).astype(np.int64), np.floor(width).astype(np.int64)


def _between(u: Float64[np.ndarray, " scene"], bounds: tuple[float, float]) -> Float64[np.ndarray, " scene"]:
    low, high = bounds
    return low + (high - low) * u
