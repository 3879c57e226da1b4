"""What models are shown of a scene: an image, or a grid of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Float32, UInt8

from stmlang.experiments.arrow.generation import Scenes

WHITE, BLACK = 255, 0
BARB = 0.5
"""Radians between an arrow's shaft and its barbs."""
CHANNELS = 9
"""Numbers of a token."""


def pixels(scenes: Scenes, size: int) -> UInt8[np.ndarray, "scene size size"]:
    """Images of `size x size`, black on white without shades: an arrow of a shaft and two barbs, and a filled circle. Objects
    are of the same size in pixels however large the image."""
    from PIL import Image, ImageDraw

    images = np.empty((len(scenes), size, size), np.uint8)
    for number in range(len(scenes)):
        image = Image.new("L", (size, size), WHITE)
        draw = ImageDraw.Draw(image)
        half, barb = scenes.length[number] // 2, int(scenes.length[number] / 2.5)
        centre, angle, width = scenes.arrow[number], scenes.direction[number], int(scenes.width[number])
        ahead = half * np.asarray([np.cos(angle), np.sin(angle)])
        tip = centre + ahead
        draw.line(_points(centre - ahead, tip), fill=BLACK, width=width)
        for side in (angle + np.pi - BARB, angle + np.pi + BARB):
            draw.line(_points(tip, tip + barb * np.asarray([np.cos(side), np.sin(side)])), fill=BLACK, width=width)
        middle, radius = scenes.circle[number], scenes.radius[number]
        draw.ellipse(_points(middle - radius, middle + radius), fill=BLACK)
        images[number] = np.asarray(image)
    return images


def tokens(scenes: Scenes, size: int, cell: int) -> Float32[np.ndarray, "scene rows cols channel"]:
    """Grids of squares of `cell x cell` pixels, nine numbers each, zero where nothing is: in the square that holds the arrow's
    centre 1, the cosine and sine of its direction, and where in the square it lies (x, y, from -1/2 to 1/2); in that of the
    circle's centre 1, the radius in squares, and where it lies."""
    side = size // cell
    grid = np.zeros((len(scenes), side, side, CHANNELS), np.float32)
    every = np.arange(len(scenes))
    for centre, start, about in (
        (scenes.arrow, 0, (np.ones(len(scenes)), np.cos(scenes.direction), np.sin(scenes.direction))),
        (scenes.circle, 5, (np.ones(len(scenes)), scenes.radius / cell)),
    ):
        place = np.minimum(np.floor(centre / cell).astype(np.int64), side - 1)
        inside = centre / cell - place - 0.5
        values = np.stack([*about, inside[:, 0], inside[:, 1]], axis=1)
        grid[every, place[:, 1], place[:, 0], start : start + values.shape[1]] = values
    return grid


def sheet(rows: Sequence[UInt8[np.ndarray, "image size size"]], gap: int = 4) -> UInt8[np.ndarray, "height width"]:
    """Images in rows, a grey gap between them."""

    def joined(arrays: Sequence[Any], axis: int) -> Any:
        wide = [(0, 0), (0, 0)]
        wide[axis] = (0, gap)
        *before, last = arrays
        filled = [np.pad(array, wide, constant_values=160) for array in before]
        return np.concatenate([*filled, last], axis=axis)

    return joined([joined(list(row), 1) for row in rows], 0)


def png(image: UInt8[np.ndarray, "height width"]) -> bytes:
    """A grey image as a PNG."""
    import io

    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image).quantize(4).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _points(first: np.ndarray, last: np.ndarray) -> list[tuple[float, float]]:
    return [cast(Any, tuple(float(value) for value in point)) for point in (first, last)]
