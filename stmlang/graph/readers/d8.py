"""D8 flow directions, as a GeoTIFF or an ASCII grid: an edge from each cell to the neighbour, one of eight, it drains to.

    ncols 3                      32  64 128
    nrows 2                      16   x   1
    NODATA_value 247              8   4   2
    1  1  4                    ESRI's codes of the neighbours, east being 1; 0 and 255 are pits
    128 0 247

Nodes are the cells with data, row by row; edges come in the order of the cells that they leave. A pit has no edge, nor has a
cell that drains to a cell without data or beyond the border. Cells without data have the value that the file names as such, or,
where it names none, 247 or -9999. Complaints count rows and columns from 0.

The format `d8` means ESRI's codes, but in a grid with a header of GRASS, where it means those of r.watershed. `d8_grass` and
`d8_taudem` say these conventions: `flow`. The files: `asciigrid`, `geotiff`.

`read_flow` gives the cells' places in the raster along with the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.readers import asciigrid, geotiff
from stmlang.graph.readers.files import open_file, refusal
from stmlang.graph.readers.finish import checked
from stmlang.graph.readers.flow import EMPTY, ESRI, GRASS, PIT, STEPS, TAUDEM, Convention
from stmlang.graph.readers.text import GraphFile, ParsedGraph
from stmlang.source import short

if TYPE_CHECKING:
    from jaxtyping import Int64, Shaped, UInt8

    Codes = UInt8[np.ndarray, "rows columns"]

CONVENTIONS: dict[str, Convention | None] = {"d8": None, "d8_grass": GRASS, "d8_taudem": TAUDEM}
"""What the formats of rasters mean, None where the file's kind decides."""


@dataclass(frozen=True, eq=False)
class FlowRaster:
    """The graph of a raster, and where its nodes lie: node `k` is the cell in row `cells[k, 0]` and column `cells[k, 1]`."""

    dag: DAG
    shape: tuple[int, int]
    cells: Int64[np.ndarray, "nodes 2"]

    __repr__ = short.fields

    def image(
        self, values: Shaped[np.ndarray, "nodes *features"], empty: float = np.nan
    ) -> Shaped[np.ndarray, "rows columns *features"]:
        """Values of the nodes as a raster, `empty` in the cells without data."""
        raster = np.full((*self.shape, *values.shape[1:]), empty, np.result_type(values.dtype, np.min_scalar_type(empty)))
        raster[self.cells[:, 0], self.cells[:, 1]] = values
        return raster


def read_flow(path: str, format: str = "d8") -> FlowRaster:
    """The graph of a file of flow directions; `format` is `d8`, `d8_grass` or `d8_taudem`. Raises SpecError (STM3305, STM3401
    ... STM3403, STM3405, STM3411 ... STM3413), STM3415 where Pillow is missing."""
    if format not in CONVENTIONS:
        raise refusal("STM3402", f"`{format}` is no format of flow directions", None, f"there are {', '.join(CONVENTIONS)}")
    file = open_file(path, format)
    codes = _codes(file, CONVENTIONS[format])
    dag = checked(file, _flow(file, codes))
    return FlowRaster(dag, (codes.shape[0], codes.shape[1]), np.argwhere(codes != EMPTY).astype(np.int64))


def read(file: GraphFile, convention: Convention | None = None) -> ParsedGraph:
    return _flow(file, _codes(file, convention))


def _codes(file: GraphFile, convention: Convention | None) -> Codes:
    """Codes of `STEPS`, 0 for pits and 247 for cells without data."""
    if file.content is not None:
        return geotiff.codes(file, file.content, convention or ESRI)
    return asciigrid.codes(file, convention)


def _flow(file: GraphFile, codes: Codes) -> ParsedGraph:
    """The graph: nodes are the cells with data, in C order."""
    rows, columns = codes.shape
    cell = np.flatnonzero(codes != EMPTY)
    node = np.full(codes.size + 1, -1, np.int64)
    node[cell] = np.arange(len(cell))
    down, right = np.zeros(256, np.int64), np.zeros(256, np.int64)
    for known, step in STEPS.items():
        down[known], right[known] = step
    code = codes.reshape(-1)[cell]
    row, column = cell // columns + down[code], cell % columns + right[code]
    inside = (code != PIT) & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    # The last entry of `node` stands for what lies outside.
    head = node[np.where(inside, row * columns + column, codes.size)]
    tail = np.flatnonzero(head >= 0)
    return ParsedGraph(
        node_count=len(cell),
        tail=tail,
        head=head[tail],
        names=None,
        called=lambda number: f"row {cell[number] // columns} column {cell[number] % columns}",
        edge_at=lambda edge: None if file.content is not None else asciigrid.value_at(file, int(cell[tail[edge]])),
    )
