"""Imports: where files are found, what they bring, where they may not lead."""

from __future__ import annotations

from pathlib import Path

import pytest

from stmlang.check import load
from stmlang.source.diagnostic import SpecError

SCAN = "scan s on chain(time) {\n    source = half(1)\n    transition = 0.5\n}\n"


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.stm"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def codes(path: Path, *search: Path) -> list[str]:
    try:
        load(path, search_path=search)
    except SpecError as error:
        return [one.code for one in error.diagnostics]
    return []


def test_beside_the_file_first_then_along_the_search_path(tmp_path: Path) -> None:
    write(
        tmp_path, here__main=f"use lib (half)\n{SCAN}", there__lib="def half(a) = a / 2\n", other__lib="def half(a) = a / 4\n"
    )
    assert codes(tmp_path / "here/main.stm") == ["STM1020"]
    scan = load(tmp_path / "here/main.stm", search_path=[tmp_path / "there", tmp_path / "other"])
    assert scan.gate("source").clauses[0].value.value == 0.5
    scan = load(tmp_path / "here/main.stm", search_path=[tmp_path / "other", tmp_path / "there"])
    assert scan.gate("source").clauses[0].value.value == 0.25


def test_imports_of_an_import_are_relative_to_it(tmp_path: Path) -> None:
    write(tmp_path, main=f"use a.b (half)\n{SCAN}", a__b="use c (two)\ndef half(a) = a / two()\n", a__c="def two() = 2\n")
    assert codes(tmp_path / "main.stm") == []


def test_imported_names_are_not_passed_on(tmp_path: Path) -> None:
    write(tmp_path, main=f"use b (half)\n{SCAN}", b="use c (half)\n", c="def half(a) = a / 2\n")
    assert codes(tmp_path / "main.stm") == ["STM1023"]


def test_the_same_definition_by_two_ways_is_one(tmp_path: Path) -> None:
    write(tmp_path, main=f"use c\nuse c (half)\n{SCAN}", c="def half(a) = a / 2\n")
    assert codes(tmp_path / "main.stm") == []


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, here__main=f"use lib (half)\n{SCAN}", secret="def half(a) = a / 2\n")
    (tmp_path / "here/lib.stm").symlink_to(tmp_path / "secret.stm")
    assert codes(tmp_path / "here/main.stm") == ["STM1021"]


def test_a_link_that_stays_inside_is_followed(tmp_path: Path) -> None:
    write(tmp_path, here__main=f"use lib (half)\n{SCAN}", here__real="def half(a) = a / 2\n")
    (tmp_path / "here/lib.stm").symlink_to(tmp_path / "here/real.stm")
    assert codes(tmp_path / "here/main.stm") == []


@pytest.mark.parametrize("path", ["../graph.txt", "/etc/hostname", "a/../../graph.txt", "a\\b"])
def test_graph_files_outside_are_refused(tmp_path: Path, path: str) -> None:
    write(tmp_path, here__main=f'scan s on dag from "{path}" {{\n    source = 1\n    transition = 0.5\n}}\n')
    (tmp_path / "graph.txt").write_text("a b\n")
    assert codes(tmp_path / "here/main.stm") == ["STM3011"]


def test_a_graph_file_behind_a_link_out_is_refused(tmp_path: Path) -> None:
    write(tmp_path, here__main='scan s on dag from "g.txt" {\n    source = 1\n    transition = 0.5\n}\n')
    (tmp_path / "graph.txt").write_text("a b\n")
    (tmp_path / "here/g.txt").symlink_to(tmp_path / "graph.txt")
    assert codes(tmp_path / "here/main.stm") == ["STM3011"]


@pytest.mark.parametrize("path", ["x" * 300, "", ".", "loop"])
def test_strange_paths_are_no_files(tmp_path: Path, path: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    write(tmp_path, main=f'scan s on dag from "{path}" {{\n    source = 1\n    transition = 0.5\n}}\n')
    assert codes(tmp_path / "main.stm") == ["STM3010"]


def test_deep_imports_come_to_an_end(tmp_path: Path) -> None:
    write(tmp_path, main=f"use f0 (half)\n{SCAN}", **{f"f{k}": f"use f{k + 1} (half)\n" for k in range(40)})
    assert "STM1024" in codes(tmp_path / "main.stm")


def test_many_imports_come_to_an_end(tmp_path: Path) -> None:
    uses = "".join(f"use f{k}\n" for k in range(120))
    write(tmp_path, main=uses + SCAN, **{f"f{k}": f"def d{k}(a) = a\n" for k in range(120)})
    assert "STM1024" in codes(tmp_path / "main.stm")


def test_an_import_that_failed_is_reported_once(tmp_path: Path) -> None:
    write(tmp_path, main="use nothing\nscan s on there {\n    source = half(third(1)) + gone\n    transition = 0.5\n}\n")
    assert codes(tmp_path / "main.stm") == ["STM1020", "STM1001"]
