"""D8 flow directions, as a GeoTIFF or an ESRI ASCII grid: an edge from each cell to the neighbour, one of eight, it drains to.

    ncols 3                      32  64 128
    nrows 2                      16   x   1
    NODATA_value 247              8   4   2
    1  1  4                    codes of the neighbours, east being 1; 0 and 255 are pits
    128 0 247

Nodes are the cells with data, row by row; edges come in the order of the cells that they leave. A pit has no edge, nor has a
cell that drains to a cell without data or beyond the border. Cells without data have the value that the file names as such, or,
where it names none, 247 or -9999. An ASCII grid may come without its header; then each line is a row. Complaints count rows and
columns from 0.

`read_flow` gives the cells' places in the raster along with the graph. GeoTIFFs are decoded by Pillow, which `pip install
'stmlang[graphs]'` brings.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from math import inf, isnan

import numpy as np
from jaxtyping import Int64, Shaped, UInt8

from stmlang.graph.dag import DAG
from stmlang.graph.limits import refuse_above_memory
from stmlang.graph.readers.files import MOST_BYTES, open_file
from stmlang.graph.readers.finish import checked
from stmlang.graph.readers.text import Found, GraphFile, Place

STEPS = {1: (0, 1), 2: (1, 1), 4: (1, 0), 8: (1, -1), 16: (0, -1), 32: (-1, -1), 64: (-1, 0), 128: (-1, 1)}
"""Rows down and columns to the right that each code leads."""
PITS = (0, 255)
EMPTY = (247, -9999)
"""What cells without data hold in files that do not say."""

HELP = "take a file with one band of flow directions, as it was published"
RULE = "flow directions are 1, 2, 4, 8, 16, 32, 64 and 128; pits are 0 or 255"

MOST_CELLS = MOST_BYTES
"""As many as the largest file holds, a byte each: a compressed file can claim any number."""
BYTES_OF_A_CELL = 128
"""What is held for each cell while a graph is made: codes, numbers of nodes, places, ends of edges."""
_NODATA_TAG = 42113
_NOTHING, _WRONG = 247, 254

_WORD = re.compile(r"\S+", re.ASCII)
_LINE = re.compile(r"[^\r\n]*\S[^\r\n]*")
_KEY = re.compile(
    r"\s*(ncols|nrows|[xy]llcorner|[xy]llcenter|cellsize|dx|dy|nodata_value)[ \t]+(\S+)[ \t]*$",
    re.ASCII | re.IGNORECASE | re.MULTILINE,
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan", re.ASCII | re.IGNORECASE)
_COUNT = re.compile(r"[0-9]{1,12}")

Codes = UInt8[np.ndarray, "rows columns"]


@dataclass(frozen=True, eq=False)
class FlowRaster:
    """The graph of a raster, and where its nodes lie: node `k` is the cell in row `cells[k, 0]` and column `cells[k, 1]`."""

    dag: DAG
    shape: tuple[int, int]
    cells: Int64[np.ndarray, "nodes 2"]

    def image(
        self, values: Shaped[np.ndarray, "nodes *features"], empty: float = np.nan
    ) -> Shaped[np.ndarray, "rows columns *features"]:
        """Values of the nodes as a raster, `empty` in the cells without data."""
        raster = np.full((*self.shape, *values.shape[1:]), empty, np.result_type(values.dtype, np.min_scalar_type(empty)))
        raster[self.cells[:, 0], self.cells[:, 1]] = values
        return raster


def read_flow(path: str) -> FlowRaster:
    """The graph of a file of flow directions. Raises SpecError (STM3305, STM3401, STM3403, STM3405, STM3411 ... STM3413),
    STM3415 where Pillow is missing."""
    file = open_file(path, "d8")
    codes = _codes(file)
    dag = checked(file, _flow(file, codes))
    return FlowRaster(dag, (codes.shape[0], codes.shape[1]), np.argwhere(codes != _NOTHING).astype(np.int64))


def read(file: GraphFile) -> Found:
    return _flow(file, _codes(file))


def _codes(file: GraphFile) -> Codes:
    """Codes of `STEPS`, 0 for pits and 247 for cells without data."""
    return _text(file) if file.content is None else _image(file, file.content)


def _flow(file: GraphFile, codes: Codes) -> Found:
    """The graph: nodes are the cells with data, in C order."""
    rows, columns = codes.shape
    cell = np.flatnonzero(codes != _NOTHING)
    node = np.full(codes.size + 1, -1, np.int64)
    node[cell] = np.arange(len(cell))
    down, right = np.zeros(256, np.int64), np.zeros(256, np.int64)
    for known, step in STEPS.items():
        down[known], right[known] = step
    code = codes.reshape(-1)[cell]
    row, column = cell // columns + down[code], cell % columns + right[code]
    inside = (code != 0) & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    # The last entry of `node` stands for what lies outside.
    head = node[np.where(inside, row * columns + column, codes.size)]
    tail = np.flatnonzero(head >= 0)
    return Found(
        node_count=len(cell),
        tail=tail,
        head=head[tail],
        names=None,
        called=lambda number: f"row {cell[number] // columns} column {cell[number] % columns}",
        edge_at=lambda edge: _value_at(file, int(cell[tail[edge]])),
    )


def _coded(values: Shaped[np.ndarray, "*cells"], empty: tuple[float, ...]) -> UInt8[np.ndarray, "*cells"]:
    """What values of cells mean: codes, or `_WRONG` where nothing."""
    codes = np.full(values.shape, _WRONG, np.uint8)
    for code in STEPS:
        codes[values == code] = code
    for pit in PITS:
        codes[values == pit] = 0
    for nothing in empty:
        codes[np.isnan(values) if isnan(nothing) else values == nothing] = _NOTHING
    return codes


# --- GeoTIFF


def _image(file: GraphFile, content: bytes) -> Codes:
    """The codes in a GeoTIFF."""
    try:
        from PIL.TiffImagePlugin import TiffImageFile
    except ImportError:
        help = "`pip install 'stmlang[graphs]'` brings it; ESRI ASCII grids are read without"
        file.refuse("STM3415", "GeoTIFFs are decoded by Pillow, which is not installed", None, help)
    with warnings.catch_warnings():  # what the decoder has to say about tags
        warnings.simplefilter("ignore")
        try:
            image = TiffImageFile(BytesIO(content))
            named = image.tag_v2.get(_NODATA_TAG)
        except Exception as error:  # a decoder may stumble over wrong bytes in any way
            file.refuse("STM3403", f"this is no GeoTIFF: {_reason(error)}", None, HELP)
        _refuse_many_cells(file, image.height, image.width)
        try:
            values = np.asarray(image)
        except Exception as error:  # likewise
            file.refuse("STM3403", f"this raster cannot be decoded: {_reason(error)}", None, HELP)
    if values.ndim != 2:
        file.refuse("STM3403", f"this raster has {values.shape[-1]} bands", None, HELP)
    codes = _coded(values, EMPTY if named is None else (_number(file, str(named).strip("\0 "), None),))
    wrong = np.argwhere(codes == _WRONG)
    if wrong.size:
        row, column = wrong[0]
        message = f"row {row} column {column} holds {values[row, column]}, which is no flow direction"
        file.refuse("STM3403", message, None, HELP, (RULE,))
    return codes


def _refuse_many_cells(file: GraphFile, rows: int, columns: int) -> None:
    """Refuses a raster before it is decoded."""
    cells = rows * columns
    if cells > MOST_CELLS:
        message = f"a raster of {rows:,} x {columns:,} cells, more than the {MOST_CELLS:,} that are read"
        file.refuse("STM3413", message, None, "cut out the basin that is meant")
    refuse_above_memory(f"the graph of {cells:,} cells", BYTES_OF_A_CELL * cells, file.named_at)


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


# --- ESRI ASCII grid


def _text(file: GraphFile) -> Codes:
    """The codes in an ASCII grid."""
    header, start = _header(file)
    words = file.text[start:].split()
    shape = _rows(file, start) if not header else _announced(file, header, len(words))
    empty = EMPTY
    if "nodata_value" in header:
        named = header["nodata_value"]
        empty = (_number(file, named.group(2), named.span(2)),)
    # Grids hold few different words. An infinite number means nothing.
    meant = {word: float(word) if _NUMBER.fullmatch(word) else inf for word in set(words)}
    codes = _coded(np.fromiter(map(meant.__getitem__, words), np.float64, len(words)), empty)
    wrong = np.flatnonzero(codes == _WRONG)
    if wrong.size:
        cell = int(wrong[0])
        file.refuse("STM3403", f"`{words[cell]}` is no flow direction", _value_at(file, cell), None, (RULE,))
    return codes.reshape(shape)


def _header(file: GraphFile) -> tuple[dict[str, re.Match[str]], int]:
    """The lines of the header by their keys, and where the values begin."""
    header: dict[str, re.Match[str]] = {}
    start = 0
    while (line := _KEY.match(file.text, start)) is not None:
        header[line.group(1).lower()], start = line, line.end()
    return header, start


def _announced(file: GraphFile, header: dict[str, re.Match[str]], found: int) -> tuple[int, int]:
    """The shape that a header announces. Refuses another number of values."""
    sizes: list[int] = []
    for key in ("nrows", "ncols"):
        line = header.get(key)
        if line is None:
            file.refuse("STM3403", f"this header has no `{key}`", file.line_at(1), f"write `{key} 3`")
        if _COUNT.fullmatch(line.group(2)) is None:
            file.refuse("STM3403", f"`{line.group(2)}` is no number of cells", line.span(2))
        sizes.append(int(line.group(2)))
    rows, columns = sizes
    if rows * columns != found:
        message = f"the header announces {rows:,} x {columns:,} cells, and there are {found:,}"
        file.refuse("STM3403", message, header["ncols"].span(2))
    return rows, columns


def _rows(file: GraphFile, start: int) -> tuple[int, int]:
    """The shape of a grid without a header. Refuses rows of different lengths."""
    sizes = [len(line.group().split()) for line in _LINE.finditer(file.text, start)]
    for number, size in enumerate(sizes):
        if size != sizes[0]:
            line = next(islice(_LINE.finditer(file.text, start), number, None))
            file.refuse("STM3403", f"a row of {size} cells where the first has {sizes[0]}", line.span())
    return len(sizes), sizes[0] if sizes else 0


def _number(file: GraphFile, text: str, at: Place | None) -> float:
    if _NUMBER.fullmatch(text) is None:
        file.refuse("STM3403", f"the value `{text}` of cells without data is no number", at)
    return float(text)


def _value_at(file: GraphFile, cell: int) -> Place | None:
    """The place of a value in an ASCII grid."""
    if file.content is not None:
        return None
    return next(islice(_WORD.finditer(file.text, _header(file)[1]), cell, None)).span()
