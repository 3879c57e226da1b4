"""Flow rasters: against a walk over the cells, the Rhine with its published counts, and what is refused where."""

from __future__ import annotations

import re
import struct
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from stmlang.graph.levels import node_levels
from stmlang.graph.readers import d8, read_flow, read_graph
from stmlang.graph.readers.text import GraphFile
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import SpecError
from stmlang.source.span import SourceFile
from tests.graph.files import data, read, refused
from tests.helpers.work import peak_bytes

EAST, SOUTH_EAST, SOUTH, SOUTH_WEST, WEST, NORTH_WEST, NORTH, NORTH_EAST = 1, 2, 4, 8, 16, 32, 64, 128
COMPASS = {
    EAST: (0, 1), SOUTH_EAST: (1, 1), SOUTH: (1, 0), SOUTH_WEST: (1, -1),
    WEST: (0, -1), NORTH_WEST: (-1, -1), NORTH: (-1, 0), NORTH_EAST: (-1, 1),
}  # fmt: skip


def tiff(codes: np.ndarray, nodata: str | None = None, **options: str) -> bytes:
    tags = ImageFileDirectory_v2()
    if nodata is not None:
        tags[42113] = nodata
    stream = BytesIO()
    Image.fromarray(codes).save(stream, "TIFF", tiffinfo=tags, **options)
    return stream.getvalue()


def grid(codes: np.ndarray, nodata: str | None = None) -> str:
    header = f"ncols {codes.shape[1]}\nnrows {codes.shape[0]}\nxllcorner 0.5\nyllcorner -3\ncellsize 30\n"
    named = "" if nodata is None else f"NODATA_value {nodata}\n"
    return header + named + "\n".join(" ".join(map(str, row)) for row in codes.tolist()) + "\n"


@pytest.mark.parametrize("code", COMPASS)
def test_each_direction(tmp_path: Path, code: int) -> None:
    """The middle cell drains to the neighbour that its code means, and all the others are pits."""
    codes = np.zeros((3, 3), np.uint8)
    codes[1, 1] = code
    path = tmp_path / "g.asc"
    path.write_text(grid(codes))
    flow = read_flow(str(path))
    down, right = COMPASS[code]
    assert flow.cells[flow.dag.tail].tolist() == [[1, 1]]
    assert flow.cells[flow.dag.head].tolist() == [[1 + down, 1 + right]]


CODES_3 = np.asarray([[1, 2, 247], [255, 4, 64], [64, 16, 1]], np.uint8)
FILES: dict[str, str | bytes] = {
    "grid": grid(CODES_3),
    "grid with nodata": grid(np.where(CODES_3 == 247, -1, CODES_3.astype(int)), "-1"),
    "grid of decimals": grid(np.where(CODES_3 == 247, -9999, CODES_3.astype(float))),
    "grid of whole decimals": grid(CODES_3.astype(float), "247.0"),
    "capitals and tabs": grid(CODES_3).upper().replace(" ", "\t"),
    "lines of any length": "ncols 3\nnrows 3\n1 2\n247 255 4 64 64\n16 1",
    "no header": "1 2 247\n255  4 64\r\n\n 64 16 1 ",
    "bytes": tiff(CODES_3),
    "compressed": tiff(CODES_3, compression="tiff_lzw"),
    "deflated": tiff(CODES_3, compression="tiff_adobe_deflate"),
    "two bytes": tiff(CODES_3.astype(np.uint16)),
    "four bytes": tiff(np.where(CODES_3 == 247, -9999, CODES_3.astype(np.int32))),
    "floats": tiff(CODES_3.astype(np.float32)),
    "floats with nan": tiff(np.where(CODES_3 == 247, np.nan, CODES_3.astype(np.float32)).astype(np.float32), "nan"),
    "nodata by tag": tiff(np.where(CODES_3 == 247, 77, CODES_3).astype(np.uint8), "77"),
}


@pytest.mark.parametrize("name", FILES)
def test_one_raster_in_every_spelling(tmp_path: Path, name: str) -> None:
    """Codes out of the raster or into cells without data end there."""
    content = FILES[name]
    dag = read(tmp_path, "g.asc" if isinstance(content, str) else "g.tif", content)
    found = list(zip(dag.tail.tolist(), dag.head.tolist(), strict=True))
    # The third cell is no node. The fifth node drains to it, and the last one beyond the border.
    assert dag.node_count == 8
    assert found == [(0, 1), (1, 4), (3, 6), (5, 2), (6, 5)]


def test_pits_by_tag_are_cells_without_data(tmp_path: Path) -> None:
    codes = np.asarray([[1, 0, 1]], np.uint8)
    assert read(tmp_path, "g.tif", tiff(codes)).edge_count == 1
    dag = read(tmp_path, "g.tif", tiff(codes, "0"))
    assert (dag.node_count, dag.edge_count) == (2, 0)


def test_one_cell(tmp_path: Path) -> None:
    for name, content in (("g.asc", "0"), ("g.asc", "1"), ("g.tif", tiff(np.asarray([[64]], np.uint8)))):
        dag = read(tmp_path, name, content, tree=True)
        assert (dag.node_count, dag.edge_count) == (1, 0)


def test_images_of_values(tmp_path: Path) -> None:
    path = tmp_path / "g.asc"
    path.write_text(grid(np.asarray([[1, 0], [247, 247], [64, 64]], np.uint8)))
    flow = read_flow(str(path))
    assert flow.shape == (3, 2)
    assert flow.cells.tolist() == [[0, 0], [0, 1], [2, 0], [2, 1]]
    numbers = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(flow.image(numbers), [[0, 1], [np.nan, np.nan], [2, 3]])
    assert flow.image(numbers).dtype == np.float32
    np.testing.assert_array_equal(flow.image(np.arange(4), -1), [[0, 1], [-1, -1], [2, 3]])
    assert flow.image(np.ones((4, 5, 2)), 0.0).shape == (3, 2, 5, 2)


@settings(max_examples=100, deadline=None)
@given(
    codes=st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
        lambda shape: st.lists(
            st.lists(st.sampled_from([0, 255, 247, *COMPASS]), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        )
    ),
    binary=st.booleans(),
)
def test_random_rasters(codes: list[list[int]], binary: bool) -> None:
    """The edges of a walk over the cells, one by one."""
    array = np.asarray(codes, np.uint8)
    content = tiff(array) if binary else None
    found = d8.read(GraphFile(SourceFile("g", "" if binary else grid(array)), None, content))
    places = [(row, column) for row, line in enumerate(codes) for column, code in enumerate(line) if code != 247]
    edges: list[tuple[int, int]] = []
    for node, (row, column) in enumerate(places):
        down, right = COMPASS.get(codes[row][column], (9, 9))
        if (row + down, column + right) in places:
            edges.append((node, places.index((row + down, column + right))))
    assert found.node_count == len(places)
    assert list(zip(found.tail.tolist(), found.head.tolist(), strict=True)) == edges


HEAD = "ncols 2\nnrows 1\n"
BAD: dict[str, tuple[str | bytes, str, int | None]] = {
    "empty": ("", "STM3411", None),
    "no data": ("247 247", "STM3411", None),
    "no cell": ("ncols 0\nnrows 0\n", "STM3411", None),
    "word": (HEAD + "1 x\n", "STM3403", 3),
    "no direction": (HEAD + "1\n3\n", "STM3403", 4),
    "half a direction": (HEAD + "1 1.5\n", "STM3403", 3),
    "negative direction": (HEAD + "1 -1\n", "STM3403", 3),
    "nan": (HEAD + "1 nan\n", "STM3403", 3),
    "infinite": (HEAD + "1 inf\n", "STM3403", 3),
    "too large": (HEAD + "1 1e999\n", "STM3403", 3),
    "default nodata where another is named": ("ncols 2\nnrows 1\nNODATA_value 0\n1 247\n", "STM3403", 4),
    "nodata of words": ("ncols 2\nnrows 1\nNODATA_value none\n1 1\n", "STM3403", 3),
    "no ncols": ("nrows 1\n1 1\n", "STM3403", 1),
    "no nrows": ("ncols 2\n1 1\n", "STM3403", 1),
    "half a column": ("ncols 2.5\nnrows 1\n1 1\n", "STM3403", 1),
    "many cells": ("ncols 999999999999\nnrows 999999999999\n1 1\n", "STM3403", 3),
    "too few": ("ncols 2\nnrows 2\n1 1 1\n", "STM3403", 3),
    "too many": ("ncols 2\nnrows 1\n1 1 1\n", "STM3403", 3),
    "ragged": ("1 1\n1 1\n1\n", "STM3403", 3),
    "two cells into one another": (HEAD + "1\n 16", "STM3405", 3),
    "round": ("1 4\n64 16", "STM3405", 1),
    "a picture": (tiff(np.zeros((2, 2, 3), np.uint8)), "STM3403", None),
    "no direction in a tiff": (tiff(np.asarray([[1, 3]], np.uint8)), "STM3403", None),
    "nodata of words in a tiff": (tiff(np.asarray([[1, 1]], np.uint8), "none"), "STM3403", None),
    "half a direction in a tiff": (tiff(np.asarray([[1, 1.5]], np.float32)), "STM3403", None),
    "nan in a tiff": (tiff(np.asarray([[1, np.nan]], np.float32)), "STM3403", None),
    "no data in a tiff": (tiff(np.full((2, 2), 247, np.uint8)), "STM3411", None),
    "cycle in a tiff": (tiff(np.asarray([[0, 1, 16]], np.uint8)), "STM3405", None),
    "header only": (b"II*\0", "STM3403", None),
    "garbage": (b"MM\0*" + bytes(range(256)), "STM3403", None),
    "large header only": (b"II+\0\x08\0\0\0", "STM3403", None),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(tmp_path: Path, name: str) -> None:
    content, code, line = BAD[name]
    assert peak_bytes(lambda: refused(tmp_path, "g.asc", content, code, line)) < 8_000_000


def test_messages_name_the_cells(tmp_path: Path) -> None:
    cycle = refused(tmp_path, "g.tif", tiff(np.asarray([[247, 0, 0], [0, 1, 16]], np.uint8)), "STM3405", None)
    assert cycle.message == "the graph has a cycle: row 1 column 1 -> row 1 column 2 -> row 1 column 1"
    wrong = refused(tmp_path, "g.tif", tiff(np.asarray([[1, 1], [1, 3]], np.uint8)), "STM3403", None)
    assert wrong.message == "row 1 column 1 holds 3, which is no flow direction of ESRI"
    place = refused(tmp_path, "g.asc", grid(np.asarray([[1, 1], [1, 3]], np.uint8)), "STM3403", 7)
    assert place.span is not None
    assert place.span.text == "3"


def claiming(width: int, height: int) -> bytes:
    """A TIFF of one strip with one byte that claims so many cells."""
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, height), (279, 1)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return b"II*\0" + struct.pack("<I", 12) + b"\0" * 4 + struct.pack("<H", len(tags)) + entries + b"\0" * 4


@pytest.mark.parametrize(("width", "height"), [(1 << 16, 1 << 16), (1 << 30, 1 << 30), (20_000, 20_000)])
def test_claims_are_refused_before_memory_is_asked_for(tmp_path: Path, width: int, height: int) -> None:
    content = claiming(width, height)
    assert peak_bytes(lambda: refused(tmp_path, "g.tif", content, "STM3413", None)) < 8_000_000


def test_more_than_the_machine_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stmlang.graph.limits.host_memory", lambda: 1 << 20)
    with pytest.raises(SpecError) as error:
        read(tmp_path, "g.tif", claiming(1 << 13, 1 << 13))
    assert error.value.diagnostics[0].code == "STM3305"


def test_pillow_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "PIL", None)
    found = refused(tmp_path, "g.tif", FILES["bytes"], "STM3415", None)
    assert found.help is not None
    assert "stmlang[graphs]" in found.help
    assert read(tmp_path, "g.asc", "1 0").edge_count == 1


@pytest.mark.parametrize("name", [name for name, content in FILES.items() if isinstance(content, bytes)])
def test_every_cut_of_a_tiff_is_refused(tmp_path: Path, name: str) -> None:
    content = FILES[name]
    assert isinstance(content, bytes)
    for size in range(len(content) // 2):
        with pytest.raises(SpecError) as error:
            read(tmp_path, "g.tif", content[:size])
        (found,) = error.value.diagnostics
        assert not re.search(r"unpack|buffer|object|: [0-9]+$", found.message)  # what Python says of its own


@settings(max_examples=100, deadline=None)
@given(
    name=st.sampled_from(sorted(FILES)),
    cuts=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 3), st.binary(max_size=3)), max_size=3),
)
def test_mutated_rasters_raise_nothing_else(name: str, cuts: list[tuple[int, int, bytes]]) -> None:
    made = FILES[name]
    content = made if isinstance(made, bytes) else made.encode()
    for start, length, put in cuts:
        content = content[:start] + put + content[start + length :]
    text, binary = ("", content) if isinstance(made, bytes) else (content.decode("latin-1"), None)
    codes = set[str]()
    try:
        found = d8.read(GraphFile(SourceFile("g", text), None, binary))
    except SpecError as refusal:
        codes = {diagnostic.code for diagnostic in refusal.diagnostics}
    else:
        assert (np.diff(found.tail) > 0).all()
        assert ((found.head >= 0) & (found.head < found.node_count)).all()
    assert codes <= set(CODES)


def test_rhine() -> None:
    """One tree, and every edge of it leads downhill but for what the elevation model smooths over."""
    flow = read_flow(data("river/rhine_d8.tif"))
    dag = flow.dag
    assert (dag.node_count, dag.edge_count, flow.shape) == (349_847, 349_846, (682, 997))
    assert int(np.bincount(dag.tail).max()) == 1
    assert int(np.bincount(dag.head).max()) == 7
    assert int(node_levels(dag).max()) == 1674
    heights = np.asarray(Image.open(data("river/rhine_elv0.tif")))
    height = heights[flow.cells[:, 0], flow.cells[:, 1]]
    assert float(np.mean(height[dag.tail] >= height[dag.head])) > 0.999
    np.testing.assert_array_equal(flow.image(height, -9999.0) == -9999.0, heights == -9999.0)
    assert read_graph(data("river/rhine_d8.tif"), tree=True).edge_count == 349_846


def test_small_real_grid() -> None:
    flow = read_flow(data("river/flwdir.asc"))
    text = Path(data("river/flwdir.asc")).read_text().split()
    assert flow.shape == (20, 25)
    assert flow.dag.node_count == sum(word != "247" for word in text)
    assert int(np.bincount(flow.dag.tail).max()) == 1
