"""Flow directions in a GeoTIFF, decoded by Pillow, which `pip install 'stmlang[graphs]'` brings.

One band of whole or floating point numbers of 8 bits or more. Bytes may be signed, and are where the file names a negative
value for cells without data. Overviews, which some files hold beside the raster, are smaller copies of it and are left aside;
any other further image is refused.
"""

from __future__ import annotations

import struct
import warnings
from dataclasses import dataclass
from io import BytesIO
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stmlang.graph.limits import refuse_above_memory
from stmlang.graph.readers.files import MOST_BYTES
from stmlang.graph.readers.flow import ESRI, WRONG, Convention, advice, coded
from stmlang.graph.readers.numerals import number
from stmlang.graph.readers.text import GraphFile

if TYPE_CHECKING:
    from jaxtyping import Shaped, UInt8

HELP = "take a file with one band of flow directions, as it was published"
MOST_CELLS = MOST_BYTES
"""As many as the largest file holds, a byte each: a compressed file can claim any number."""
BYTES_OF_A_CELL = 128
"""What is held for each cell while a graph is made: codes, numbers of nodes, places, ends of edges."""
MOST_IMAGES = 64
_KIND_OF_IMAGE, _BITS, _PHOTOMETRIC, _SAMPLES, _SIGNED, _NODATA = 254, 258, 262, 277, 339, 42113
_OVERVIEW, _WHITE_IS_ZERO, _TWO_COMPLEMENT = 1, 0, 2


@dataclass(frozen=True, eq=False)
class _Raster:
    """Values of cells, and the text that names the value of those without data."""

    values: Shaped[np.ndarray, "rows columns"]
    nodata: str | None


def codes(file: GraphFile, content: bytes, convention: Convention) -> UInt8[np.ndarray, "rows columns"]:
    """The codes in a GeoTIFF."""
    raster = _decoded(file, content)
    values = raster.values
    empty = convention.empty if raster.nodata is None else (number(file, raster.nodata, "value of cells without data", None),)
    if values.dtype == np.int8 and convention == ESRI:  # 128 and the values that stand for nothing do not fit
        values, empty = values.view(np.uint8), tuple(value % 256 if -128 <= value < 0 else value for value in empty)
    grid = coded(values, convention, empty)
    wrong = np.argwhere(grid == WRONG)
    if wrong.size:
        row, column = wrong[0]
        message = (
            f"row {row} column {column} holds {raster.values[row, column]}, which is no flow direction of {convention.name}"
        )
        others = np.unique(raster.values[grid != 247])
        file.refuse("STM3403", message, None, advice(convention, others.tolist()), (convention.rule,))
    return grid


def _decoded(file: GraphFile, content: bytes) -> _Raster:
    try:
        from PIL.TiffImagePlugin import TiffImageFile
    except ImportError:
        help = "`pip install 'stmlang[graphs]'` brings it; ESRI ASCII grids are read without"
        file.refuse("STM3415", "GeoTIFFs are decoded by Pillow, which is not installed", None, help)
    with warnings.catch_warnings():  # what the decoder has to say about tags
        warnings.simplefilter("ignore")
        try:
            image = TiffImageFile(BytesIO(content))
            tags = dict(image.tag_v2)
        except Exception as error:  # a decoder may stumble over wrong bytes in any way
            file.refuse("STM3403", f"this is no GeoTIFF: {_reason(error)}", None, HELP)
        _refuse_many_cells(file, image.height, image.width)
        try:
            further = _further_image(image)
            image.seek(0)
            values = np.asarray(image)
        except Exception as error:  # likewise
            file.refuse("STM3403", f"this raster cannot be decoded: {_reason(error)}", None, HELP)
    if further is not None:
        file.refuse("STM3403", f"this file holds a second image, which is {further}", None, HELP)
    if values.ndim != 2:
        file.refuse("STM3403", f"this raster has {values.shape[-1]} bands", None, HELP)
    bits = _first(tags.get(_BITS))
    if bits is None or bits < 8:
        message = f"this raster has {1 if bits is None else bits} bits a cell"
        file.refuse("STM3403", message, None, "write it with 8 bits a cell or more")
    if values.dtype == np.uint8:
        values = _bytes(values, tags)
    nodata = tags.get(_NODATA)
    return _Raster(values, None if nodata is None else str(nodata).strip("\0 "))


def _further_image(image: Any) -> str | None:
    """What the first image is that stands behind the raster and is no smaller copy of it, in words."""
    for place in range(1, MOST_IMAGES):
        try:
            image.seek(place)
        except EOFError:
            return None
        kind = _first(image.tag_v2.get(_KIND_OF_IMAGE)) or 0
        if not kind & _OVERVIEW:
            return "a mask" if kind & 4 else "no overview of the first"
    return f"one of {MOST_IMAGES} or more"


def _bytes(values: UInt8[np.ndarray, "rows columns"], tags: dict[int, Any]) -> Shaped[np.ndarray, "rows columns"]:
    """Bytes as they are stored: Pillow turns them around where 0 is white, and takes signed ones for unsigned."""
    if _first(tags.get(_PHOTOMETRIC)) == _WHITE_IS_ZERO:
        values = 255 - values
    try:
        nodata = float(str(tags.get(_NODATA, "")).strip("\0 "))
    except ValueError:
        nodata = 0.0
    signed = _first(tags.get(_SIGNED)) == _TWO_COMPLEMENT or (isfinite(nodata) and -128 <= nodata < 0)
    return values.view(np.int8) if signed else values


def _first(tag: object) -> int | None:
    """The number in a tag, or the first of several."""
    if isinstance(tag, tuple):
        tag = next(iter(cast(tuple[object, ...], tag)), None)
    return tag if isinstance(tag, int) else None


def _refuse_many_cells(file: GraphFile, rows: int, columns: int) -> None:
    """Refuses a raster before it is decoded."""
    cells = rows * columns
    if cells > MOST_CELLS:
        message = f"a raster of {rows:,} x {columns:,} cells, more than the {MOST_CELLS:,} that are read"
        file.refuse("STM3413", message, None, "cut out the basin that is meant")
    refuse_above_memory(f"the graph of {cells:,} cells", BYTES_OF_A_CELL * cells, file.named_at)


def _reason(error: Exception) -> str:
    """Why a decoder gave up. Only of bytes that it refuses itself does it speak so that a reader understands."""
    if isinstance(error, SyntaxError) and isinstance(error.__cause__, Exception):  # Pillow's wrapping of any of the others
        error = error.__cause__
    match error:
        case struct.error() | EOFError():
            return "it ends too early, or is damaged"
        case OSError() | SyntaxError() if str(error):
            return str(error).partition("\n")[0]
        case _:
            return "its tags are missing or damaged"
