"""Rasters of flow directions: forty odd grids, GeoTIFFs as GDAL writes them, and the three conventions."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from stmlang.graph.readers import read_flow, read_graph
from stmlang.source.diagnostic import SpecError
from tests.graph.corpus import Bad, Good, accepted, refused_at

HEAD = "ncols 2\nnrows 1\n"
FULL = "ncols 2\nnrows 2\nxllcorner 500000.5\nyllcorner -3e5\ncellsize 30\nNODATA_value -9999\n"
GRID: dict[str, Good] = {
    "one cell": ("0", 1, ""),
    "no header": ("1 4\n0 16\n", 4, "0>1 1>3 3>2"),
    "no header, blank lines": ("\n1\t4\r\n\r\n0 16\n\n", 4, "0>1 1>3 3>2"),
    "full header": (FULL + "1 4\n-9999 0\n", 3, "0>1 1>2"),
    "capitals": (FULL.upper() + "1 4\n-9999 0\n", 3, "0>1 1>2"),
    "blanks and tabulators": ("  ncols\t 2  \r\n\tNROWS   1\t\r\n1 0\r\n", 2, "0>1"),
    "another order": ("nodata_value -1\ncellsize 1\nnrows 1\nncols 2\n1 -1", 1, ""),
    "centers": (HEAD + "xllcenter 0\nyllcenter 0\ncellsize 1\n1 0", 2, "0>1"),
    "two sides of a cell": (HEAD + "dx 0.5\ndy .25\n1 0", 2, "0>1"),
    "values in one line": ("ncols 2\nnrows 2\n1 4 0 16", 4, "0>1 1>3 3>2"),
    "a value a line": ("ncols 2\nnrows 2\n1\n4\n0\n16\n", 4, "0>1 1>3 3>2"),
    "decimals": (FULL + "1.0 4.000\n0 16.0", 4, "0>1 1>3 3>2"),
    "exponents": (FULL + "1e0 4E+0\n0. +16", 4, "0>1 1>3 3>2"),
    "nodata in decimals": (HEAD + "NODATA_value -9.99900000e+03\n1 -9999", 1, ""),
    "nodata of words": (HEAD + "NODATA_value nan\n1 NaN", 1, ""),
    "nodata that is not named": ("247 -9999 0\n", 1, ""),
    "nodata that is a direction": (HEAD + "NODATA_value 1\n1 0", 1, ""),
    "nodata -9": (HEAD + "NODATA_value -9\n-9 1", 1, ""),
    "pits": (HEAD + "0 255", 2, ""),
    "out of the raster": (HEAD + "64 1", 2, ""),
    "into no data": (HEAD + "NODATA_value -9\n1 -9", 1, ""),
    "header of GRASS": ("north: 2\nsouth: 0\neast: 2\nwest: 0\nrows: 2\ncols: 2\n8 6\n-4 4\n", 4, "0>1 1>3 3>2"),
    "header of GRASS with nulls": ("NORTH:2\nsouth:0\neast:2\nwest:0\nrows:1\ncols:3\n8 * 0\n", 2, ""),
    "header of GRASS with a null": ("rows: 1\ncols: 3\nnull: -9999\ntype: int\n8 0 -9999\n", 2, "0>1"),
    "degrees": ("north: 42:30:15.5N\nsouth: 42N\neast: 10:05W\nwest: 11W\nrows: 1\ncols: 2\n8 0\n", 2, "0>1"),
}
BROKEN_GRID: dict[str, Bad] = {
    "empty": ("", "STM3411", ""),
    "no data": (HEAD + "247 -9999\n", "STM3411", ""),
    "header only": (HEAD, "STM3403", "2:8"),
    "word": (HEAD + "1 x", "STM3403", "3:3"),
    "no direction": (HEAD + "3 1", "STM3403", "3:1"),
    "sum of directions": (HEAD + "1 129", "STM3403", "3:3"),
    "negative": (HEAD + "1 -1", "STM3403", "3:3"),
    "decimal comma": (HEAD + "1,0 1", "STM3403", "3:1"),
    "cut short": (FULL + "1 4\n0", "STM3403", "8:1"),
    "a value too many": (FULL + "1 4\n0 16 1", "STM3403", "8:1"),
    "a line too many": (FULL + "1 4\n0 16\n1 1", "STM3403", "9:1"),
    "text behind": (FULL + "1 4\n0 16\nend of grid\n", "STM3403", "9:1"),
    "lines of other lengths": (FULL + "1\n4 0 16 0\n", "STM3403", "7:1"),
    "rows of other lengths": ("1 4\n0 16\n1", "STM3403", "3:1"),
    "no ncols": ("nrows 1\n1 0", "STM3403", "1:1"),
    "half a row": ("ncols 2\nnrows 1.5\n1 0", "STM3403", "2:7"),
    "negative rows": ("ncols 2\nnrows -1\n1 0", "STM3403", "2:7"),
    "keyword twice": (HEAD + "ncols 3\n1 0", "STM3403", "3:1"),
    "keyword that is not known": (HEAD + "cell_size 3\n1 0", "STM3403", "3:1"),
    "keyword without a value": ("ncols\nnrows 1\n1 0", "STM3403", "1:1"),
    "two entries in a line": ("ncols 2 nrows 1\n1 0", "STM3403", "1:1"),
    "text ahead": ("flow of the Rhine\n1 0", "STM3403", "1:1"),
    "corner and center": (HEAD + "xllcorner 0\nxllcenter 0\n1 0", "STM3403", "4:11"),
    "cellsize and dx": (HEAD + "dx 1\ncellsize 0\n1 0", "STM3403", "3:4"),
    "decimal comma in the header": (HEAD + "cellsize 30,5\n1 0", "STM3403", "3:10"),
    "word in the header": (HEAD + "xllcorner west\n1 0", "STM3403", "3:11"),
    "nodata of words": (HEAD + "NODATA_value none\n1 0", "STM3403", "3:14"),
    "ESRI's codes under GRASS's header": ("rows: 1\ncols: 2\n128 0", "STM3403", "3:1"),
    "keyword of ESRI in GRASS's header": ("rows: 1\ncols: 2\nnodata_value: 3\n1 0", "STM3403", "3:1"),
    "keyword of GRASS in ESRI's header": (HEAD + "null: 3\n1 0", "STM3403", "3:1"),
    "null of GRASS in ESRI's grid": (HEAD + "1 *", "STM3403", "3:3"),
    "type of GRASS": ("rows: 1\ncols: 2\ntype: words\n8 0", "STM3403", "3:7"),
    "no cols": ("rows: 1\n8 0", "STM3403", "1:1"),
    "two cells": (HEAD + "1 16", "STM3405", "3:1"),
    "round": (FULL + "1 4\n64 16", "STM3405", "7:1"),
}


@pytest.mark.parametrize("name", GRID)
def test_grids(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.asc", *GRID[name])


@pytest.mark.parametrize("name", BROKEN_GRID)
def test_broken_grids(tmp_path: Path, name: str) -> None:
    refused_at(tmp_path, "g.asc", *BROKEN_GRID[name])


# East, and so on counterclockwise.
AROUND = [(0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0), (1, 1)]
CONVENTIONS = {
    "d8": (1, 128, 64, 32, 16, 8, 4, 2),
    "d8_grass": (8, 1, 2, 3, 4, 5, 6, 7),
    "d8_taudem": (1, 2, 3, 4, 5, 6, 7, 8),
}


@pytest.mark.parametrize("format", CONVENTIONS)
@pytest.mark.parametrize("place", range(8))
def test_each_direction_of_each_convention(tmp_path: Path, format: str, place: int) -> None:
    cells = np.zeros((3, 3), np.int16)
    cells[1, 1] = CONVENTIONS[format][place]
    path = tmp_path / "g.asc"
    path.write_text("\n".join(" ".join(map(str, row)) for row in cells.tolist()))
    flow = read_flow(str(path), format)
    down, right = AROUND[place]
    assert flow.cells[flow.dag.tail].tolist() == [[1, 1]]
    assert flow.cells[flow.dag.head].tolist() == [[1 + down, 1 + right]]
    assert read_graph(str(path), format).edge_count == 1


def test_negative_codes_of_grass_lead_nowhere(tmp_path: Path) -> None:
    accepted(tmp_path, "g.asc", "8 -8 0\n-1 -3 2", 6, "0>1 5>2", "d8_grass")
    refused_at(tmp_path, "g.asc", "8 -8 0", "STM3403", "1:3", "d8_taudem")


@pytest.mark.parametrize(
    ("text", "format", "advice"),
    [
        ("1 3", "d8", "say `as d8_grass` if the codes are those of GRASS or `as d8_taudem` if the codes are those of TauDEM"),
        ("1 -3", "d8", "say `as d8_grass` if the codes are those of GRASS"),
        ("1 32", "d8_grass", "say `as d8` if the codes are those of ESRI"),
        ("3 32", "d8_grass", "take a file of flow directions, as it was published, and name the value of cells without data"),
    ],
)
def test_advice_names_the_conventions_that_fit(tmp_path: Path, text: str, format: str, advice: str) -> None:
    (tmp_path / "g.asc").write_text(text)
    with pytest.raises(SpecError) as error:
        read_graph(str(tmp_path / "g.asc"), format)
    assert error.value.diagnostics[0].help == advice
    for other in CONVENTIONS:
        if f"`as {other}`" in advice:
            assert read_graph(str(tmp_path / "g.asc"), other).node_count == 2


def test_no_other_convention(tmp_path: Path) -> None:
    (tmp_path / "g.asc").write_text("1 0")
    with pytest.raises(SpecError, match="STM3402"):
        read_flow(str(tmp_path / "g.asc"), "d8_agnps")


def tiff(cells: np.ndarray, tags: dict[int, Any] | None = None, *further: tuple[np.ndarray, dict[int, Any]]) -> bytes:
    """A TIFF of one image, or of several with tags of their own."""
    frames: list[Image.Image] = []
    for values, entries in ((cells, tags or {}), *further):
        frame = Image.fromarray(values)
        info = ImageFileDirectory_v2()
        for tag, value in entries.items():
            info[tag] = value
        frame.encoderinfo = {"tiffinfo": info}
        frames.append(frame)
    stream = BytesIO()
    first = frames[0].encoderinfo["tiffinfo"]
    frames[0].save(stream, "TIFF", tiffinfo=first, save_all=bool(further), append_images=frames[1:])
    return stream.getvalue()


SIGNED, NODATA, KIND = 339, 42113, 254
CELLS = np.asarray([[1, 128, -9], [-128, 0, 16]])
BYTES = (CELLS % 256).astype(np.uint8)
"""The same with 128 and -9 as signed bytes have them: 0x80 and 0xF7."""
TIFFS: dict[str, tuple[bytes, int, str]] = {
    "signed bytes": (tiff(BYTES, {SIGNED: 2, NODATA: "-9"}), 5, "0>1 2>1 4>3"),
    "signed bytes by their nodata": (tiff(BYTES, {NODATA: "-9"}), 5, "0>1 2>1 4>3"),
    "signed bytes, nodata not named": (tiff(BYTES, {SIGNED: 2}), 5, "0>1 2>1 4>3"),
    "signed bytes, nodata in decimals": (tiff(BYTES, {SIGNED: 2, NODATA: "-9.0 \0"}), 5, "0>1 2>1 4>3"),
    "signed bytes, pits of -1": (tiff(np.asarray([[1, 255, 247]], np.uint8), {SIGNED: 2, NODATA: "-9"}), 2, "0>1"),
    "unsigned bytes": (tiff(BYTES, {NODATA: "247"}), 5, "0>1 2>1 4>3"),
    "integers": (tiff(CELLS.astype(np.int32) % 256, {NODATA: "247"}), 5, "0>1 2>1 4>3"),
    "nodata that no byte has": (tiff(np.asarray([[1, 0]], np.uint8), {NODATA: "-9999"}), 2, "0>1"),
    "floats with a large nodata": (
        tiff(np.asarray([[1, np.finfo(np.float32).min]], np.float32), {NODATA: "-3.4028234663852886e+38"}), 1, "",
    ),
    "zero is white": (tiff(np.asarray([[254, 255]], np.uint8), {262: 0}), 2, "0>1"),
    "overview": (tiff(np.asarray([[1, 0]], np.uint8), None, (np.asarray([[1]], np.uint8), {KIND: 1})), 2, "0>1"),
}  # fmt: skip
BROKEN_TIFFS: dict[str, tuple[bytes, str, str]] = {
    "no direction in signed bytes": (tiff(np.asarray([[1, 200]], np.uint8), {SIGNED: 2}), "STM3403", "holds -56"),
    "one bit": (tiff(np.asarray([[True, False]])), "STM3403", "1 bits a cell"),
    "second image": (
        tiff(np.asarray([[1, 0]], np.uint8), None, (np.asarray([[1, 0]], np.uint8), {})), "STM3403", "no overview of the first",
    ),
    "mask": (
        tiff(np.asarray([[1, 0]], np.uint8), None, (np.asarray([[255, 0]], np.uint8), {KIND: 4})), "STM3403", "a mask",
    ),
    "codes of GRASS": (tiff(np.asarray([[1, 3]], np.uint8)), "STM3403", "row 0 column 1 holds 3"),
    "two bands": (tiff(np.zeros((2, 2, 2), np.uint8)), "STM3403", "2 bands"),
    "decimal comma": (tiff(np.asarray([[1, 0]], np.uint8), {NODATA: "0,5"}), "STM3403", "`0,5`, is no number"),
    "cycle": (tiff(np.asarray([[1, 16]], np.uint8)), "STM3405", "row 0 column 0 -> row 0 column 1 -> row 0 column 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", TIFFS)
def test_geotiffs(tmp_path: Path, name: str) -> None:
    accepted(tmp_path, "g.tif", *TIFFS[name])


@pytest.mark.parametrize("name", BROKEN_TIFFS)
def test_broken_geotiffs(tmp_path: Path, name: str) -> None:
    content, code, words = BROKEN_TIFFS[name]
    assert words in refused_at(tmp_path, "g.tif", content, code, "").message


def test_signed_bytes_of_grass(tmp_path: Path) -> None:
    cells = np.asarray([[8, -8, -128]])
    accepted(tmp_path, "g.tif", tiff((cells % 256).astype(np.uint8), {SIGNED: 2, NODATA: "-128"}), 2, "0>1", "d8_grass")


@settings(max_examples=100, deadline=None)
@given(draw=st.data())
def test_rasters_written_and_read(tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject) -> None:
    """Cells that flow to lower heights, in each convention, as a grid with either header and as a GeoTIFF."""
    rows, columns = draw.draw(st.integers(1, 4)), draw.draw(st.integers(1, 4))
    format = draw.draw(st.sampled_from(sorted(CONVENTIONS)))
    height = np.asarray(draw.draw(st.permutations(range(rows * columns)))).reshape(rows, columns)
    empty = np.asarray(draw.draw(st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns))).reshape(
        rows, columns
    )
    empty[np.unravel_index(height.argmax(), height.shape)] = False
    cells, ways = np.zeros((rows, columns), np.int32), dict[tuple[int, int], tuple[int, int]]()
    for row, column in np.ndindex(rows, columns):
        place = draw.draw(st.integers(0, 7))
        to = row + AROUND[place][0], column + AROUND[place][1]
        inside = 0 <= to[0] < rows and 0 <= to[1] < columns
        if not inside or height[to] < height[row, column]:
            cells[row, column] = CONVENTIONS[format][place]
            if inside and not empty[to] and not empty[row, column]:
                ways[row, column] = to
    nodata = draw.draw(st.sampled_from([-9999, -128, 77]))
    cells[empty] = nodata
    header = f"NCOLS {columns}\nnrows {rows}\ncellsize 1\nnodata_value {nodata}\n"
    if format == "d8_grass" and draw.draw(st.booleans()):
        header = f"rows: {rows}\ncols: {columns}\nnull: {nodata}\n"
    folder = tmp_path_factory.mktemp("flow")
    (folder / "g.asc").write_text(header + "\n".join(" ".join(map(str, row)) for row in cells.tolist()))
    (folder / "g.tif").write_bytes(tiff(cells, {NODATA: str(nodata)}))
    for name in ("g.asc", "g.tif"):
        flow = read_flow(str(folder / name), format)
        places = [tuple(cell) for cell in flow.cells.tolist()]
        assert places == [tuple(cell) for cell in np.argwhere(~empty).tolist()]
        found = {places[tail]: places[head] for tail, head in zip(flow.dag.tail.tolist(), flow.dag.head.tolist(), strict=True)}
        assert found == ways
