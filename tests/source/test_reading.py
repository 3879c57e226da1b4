from __future__ import annotations

import os
from pathlib import Path

import pytest

from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.reading import MAX_BYTES, decode, from_text, read


def fault(error: pytest.ExceptionInfo[SpecError]) -> Diagnostic:
    (found,) = error.value.diagnostics
    return found


def test_a_file_is_read_under_its_path_or_a_given_name(tmp_path: Path) -> None:
    path = tmp_path / "a.stm"
    path.write_bytes("\ufeffscan é\r\n".encode())
    assert read(path).text == "scan é\r\n"
    assert read(path).name == str(path)
    assert read(path, "std:a").name == "std:a"


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "image_p.stm").touch()
    with pytest.raises(SpecError) as caught:
        read(tmp_path / "imagep.stm")
    assert fault(caught).code == "STM0001"
    assert "image_p.stm" in (fault(caught).help or "")


def test_a_suffix_makes_no_likeness(tmp_path: Path) -> None:
    (tmp_path / "a.stm").touch()
    for name, help in (("b.stm", None), ("a.STM", "a.stm")):
        with pytest.raises(SpecError) as caught:
            read(tmp_path / name)
        found = fault(caught).help or ""
        assert f"{tmp_path / help}" in found if help else "did you mean" not in found
    (tmp_path / "a.CSV").write_text("a,b\n")
    with pytest.raises(SpecError) as caught:
        read(tmp_path / "a.CSV")
    assert "a graph file" in fault(caught).message


@pytest.mark.parametrize("path", ["no/such/folder/a.stm", "nul\0byte", ""])
def test_paths_that_lead_nowhere(path: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(path)
    assert fault(caught).code == "STM0001"


def test_folders_and_pipes_are_no_texts(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(SpecError) as caught:
            read(path)
        assert fault(caught).code == "STM0002"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "loop.stm").symlink_to(tmp_path / "loop.stm")
    with pytest.raises(SpecError) as caught:
        read(tmp_path / "loop.stm")
    assert fault(caught).code == "STM0003"


def test_size(tmp_path: Path) -> None:
    (tmp_path / "large.stm").write_bytes(b" " * (MAX_BYTES + 1))
    for attempt in (
        lambda: read(tmp_path / "large.stm"),
        lambda: from_text(" " * (MAX_BYTES + 1)),
        lambda: from_text("é" * (MAX_BYTES // 2 + 1)),
    ):
        with pytest.raises(SpecError) as caught:
            attempt()
        assert fault(caught).code == "STM0004"
    assert len(decode(b" " * MAX_BYTES, "x").text) == MAX_BYTES


@pytest.mark.parametrize(
    ("data", "code", "line", "column"),
    [
        (b"abc\ncaf\xe9", "STM0005", 2, 4),
        (b"\xef\xbb\xbf\xc3\xa9\xff", "STM0005", 1, 2),
        ("scan".encode("utf-16"), "STM0005", 1, 1),
        (b"a\n\x00", "STM0006", 2, 1),
        (b"a\x1bb", "STM0006", 1, 2),
    ],
)
def test_bytes_that_are_no_text_are_shown_where_they_are(data: bytes, code: str, line: int, column: int) -> None:
    with pytest.raises(SpecError) as caught:
        decode(data, "x.stm")
    found = fault(caught)
    assert found.code == code
    assert found.span is not None
    assert found.span.file.position(found.span.start) == (line, column)
    str(caught.value).encode("utf-8")


def test_half_a_character_in_a_string() -> None:
    with pytest.raises(SpecError) as caught:
        from_text("a\ud800")
    assert fault(caught).code == "STM0005"
    str(caught.value).encode("utf-8")
