"""Where names are declared and used, across files; other names for them; outlines, folds, colours, fixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from stmlang.check import library
from stmlang.lsp.colours import painted
from stmlang.lsp.desk import Desk, path_of, uri_of
from stmlang.lsp.document import Document
from stmlang.lsp.findings import findings, quick_fixes
from stmlang.lsp.navigation import Refused, definition, references, renamable, rename
from stmlang.lsp.structure import folds, outline
from stmlang.source.advice import apply
from tests.lsp.helpers import document, marked

SHARED = "# Gates for all.\ndef opened(start) = sigmoid(linear(x, bias = start))\ntopology image = grid(rows, cols = rows)\n"
MAIN = """use shared (opened, image)
use std.gates (forget)

scan first(rows = 3) on image {
    pace   = opened(start = 2)
    source = pace * rows
    transition[out, in] = 0.5
    transition[out = rows, in] = forget(1, 2) / 2
    directions +rows -cols
}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Two files on a desk, of which neither is open."""
    (tmp_path / "shared.stm").write_text(SHARED, encoding="utf-8")
    (tmp_path / "main.stm").write_text(MAIN, encoding="utf-8")
    desk = Desk()
    desk.roots = [tmp_path]
    return desk


def opened(desk: Desk, tmp_path: Path, name: str, text: str) -> Document:
    return desk.put(uri_of(tmp_path / name), text)


def places(document: Document, place: str, desk: Desk) -> list[tuple[str, int]]:
    offset = document.source.text.index(place)
    return sorted(
        (Path(text.text.name).name, text.source.position(entry.span.start)[0])
        for text, entry in references(document, offset, desk.others(document))
    )


def test_definitions_lie_in_this_file_another_one_and_the_library(desk: Desk, tmp_path: Path) -> None:
    text = opened(desk, tmp_path, "main.stm", MAIN)
    place = definition(text, MAIN.index("opened(start = 2)"))
    assert place is not None
    assert (Path(text.paths[place.file.name]), place.text) == (tmp_path / "shared.stm", "opened")
    inside = definition(text, MAIN.index("start = 2"))
    assert inside is not None
    assert (inside.file.name, inside.text) == (place.file.name, "start")
    gate = definition(text, MAIN.index("pace * rows"))
    assert gate is not None
    assert text.source.position(gate.start) == (5, 5)
    of_library = definition(text, MAIN.index("forget(1"))
    assert of_library is not None
    assert text.paths[of_library.file.name] == library() / "gates.stm"
    file = definition(text, MAIN.index("shared"))
    assert file is not None
    assert file.start == 0
    assert definition(text, MAIN.index("sigmoid") if "sigmoid" in MAIN else 0) is None


def test_references_across_files(desk: Desk, tmp_path: Path) -> None:
    main = opened(desk, tmp_path, "main.stm", MAIN)
    assert places(main, "opened(start", desk) == [("main.stm", 1), ("main.stm", 5), ("shared.stm", 2)]
    shared = desk.get(uri_of(tmp_path / "shared.stm"))
    assert shared is not None
    assert places(shared, "opened(start", desk) == places(main, "opened(start", desk)
    rows = [("main.stm", 4), ("main.stm", 6), ("main.stm", 8), ("main.stm", 9), ("shared.stm", 3), ("shared.stm", 3)]
    assert places(shared, "rows", desk) == rows
    assert places(main, "pace", desk) == [("main.stm", 5), ("main.stm", 6)]
    gates = places(main, "forget(1", desk)
    assert ("std:gates", 0) not in gates
    assert {name for name, _ in gates} >= {"main.stm", "std:gates"}


def test_what_is_open_counts_before_what_is_saved(desk: Desk, tmp_path: Path) -> None:
    main = opened(desk, tmp_path, "main.stm", MAIN)
    assert not [entry for entry in findings(main) if entry.severity.value == "error"]
    opened(desk, tmp_path, "shared.stm", SHARED.replace("opened", "closed"))
    again = desk.get(main.uri)
    assert again is not None
    assert "STM1023" in {entry.code for entry in findings(again)}
    desk.drop(uri_of(tmp_path / "shared.stm"))
    last = desk.get(main.uri)
    assert last is not None
    assert "STM1023" not in {entry.code for entry in findings(last)}


def test_a_fault_of_an_imported_file_stands_at_its_import(desk: Desk, tmp_path: Path) -> None:
    opened(desk, tmp_path, "shared.stm", SHARED + "def broken(a = 3\n")
    main = opened(desk, tmp_path, "main.stm", MAIN)
    first = findings(main)[0]
    assert first.span is not None
    assert first.span.text == "shared"
    assert first.labels[0].span.file.name == str(tmp_path / "shared.stm")


# --- renaming


def renamed(document: Document, place: str, name: str, desk: Desk) -> dict[str, str] | str:
    answer = rename(document, document.source.text.index(place), name, desk.others(document))
    if isinstance(answer, Refused):
        return answer.reason
    return {Path(text.text.name).name: apply(rewrite).text for text, rewrite in answer.items()}


def test_a_definition_is_renamed_everywhere(desk: Desk, tmp_path: Path) -> None:
    main = opened(desk, tmp_path, "main.stm", MAIN)
    after = renamed(main, "opened(start", "wide", desk)
    assert after == {"main.stm": MAIN.replace("opened", "wide"), "shared.stm": SHARED.replace("opened", "wide")}
    after = renamed(main, "start = 2", "begin", desk)
    assert after == {"main.stm": MAIN.replace("start", "begin"), "shared.stm": SHARED.replace("start", "begin")}
    after = renamed(main, "rows)", "lines", desk) if "rows)" in MAIN else renamed(main, "rows = 3", "lines", desk)
    assert after == {"main.stm": MAIN.replace("rows", "lines"), "shared.stm": SHARED.replace("rows", "lines")}


@pytest.mark.parametrize(
    ("place", "name", "why"),
    [
        ("pace", "a b", "`a b` is not a name"),
        ("pace", "1a", "`1a` is not a name"),
        ("pace", "scan", "`scan` is not a name"),
        ("pace", "", "`` is not a name"),
        ("pace", "sigmoid", "`sigmoid` is a built-in function"),
        ("pace", "mark", "`mark` has a meaning of its own"),
        ("pace", "rows", "then something would be wrong: `rows` is a number already"),
        ("opened(start", "image", "then something would be wrong: `image` is declared twice"),
        ("source", "other", "`source` is a word of the language"),
        ("forget(1", "other", "`forget` is declared in the installed library, std:gates"),
        ("+rows", "cols", "then something would be wrong"),
    ],
)
def test_what_cannot_be_renamed(desk: Desk, tmp_path: Path, place: str, name: str, why: str) -> None:
    main = opened(desk, tmp_path, "main.stm", MAIN)
    answer = renamed(main, place, name, desk)
    offset = MAIN.index(place) + place.startswith("+")
    if place.startswith("+"):
        refused = rename(main, offset, name, desk.others(main))
        answer = refused.reason if isinstance(refused, Refused) else "renamed"
    assert isinstance(answer, str)
    assert answer.startswith(why)


def test_where_there_is_no_name_nothing_is_renamed() -> None:
    text, offset = marked("scan s on chain(time) { source = 1 |; transition = 1 }")
    assert renamable(text, offset) == Refused("there is no name here")


def test_nodes_of_a_graph_are_renamed() -> None:
    text, offset = marked("scan s on dag { a -> b; |b -> c } { source = 1; transition = 0.5 }")
    answer = rename(text, offset, "middle", ())
    assert not isinstance(answer, Refused)
    assert "a -> middle; middle -> c" in apply(answer[text]).text


# --- a text as a whole


def test_the_outline() -> None:
    entries = outline(document(MAIN + SHARED))
    assert [(entry.name, entry.detail) for entry in entries] == [
        ("first", "on image"),
        ("opened", "(start)"),
        ("image", "grid(rows, cols = rows)"),
    ]
    assert [entry.name for entry in entries[0].inside] == ["pace", "source", "transition[out, in]"]


def test_what_can_be_read_of_a_broken_text_is_in_its_outline() -> None:
    entries = outline(document("scan a on chain(t) { source = ; mark = 1 }\ndef f(a = \ntopology t = chain(x)\n"))
    assert [(entry.name, [inner.name for inner in entry.inside]) for entry in entries] == [("a", ["mark"]), ("t", [])]


def test_folds() -> None:
    text = "# a\n# b\n\nuse std.gates (keep)\nuse std.gates (forget)\n" + "scan s on dag {\n a -> b\n} {\n source = 1\n}\n"
    assert [(fold.first, fold.last, fold.kind) for fold in folds(document(text))] == [
        (1, 2, "comment"),
        (4, 5, "imports"),
        (6, 8, "region"),
        (8, 10, "region"),
    ]


def test_colours() -> None:
    text = document(MAIN.replace("use shared (opened, image)", SHARED.strip()))
    shown = [(piece.span.text, piece.colour, piece.modifiers) for piece in painted(text)]
    for expected in (
        ("use", "keyword", ()),
        ("std.gates", "namespace", ()),
        ("first", "class", ("declaration",)),
        ("image", "type", ()),
        ("pace", "variable", ("declaration",)),
        ("pace", "variable", ()),
        ("source", "variable", ("declaration", "defaultLibrary")),
        ("rows", "parameter", ("readonly",)),
        ("start", "parameter", ()),
        ("out", "property", ()),
        ("2", "number", ()),
        ("=", "operator", ()),
        ("directions", "keyword", ()),
    ):
        assert expected in shown


# --- fixes


@pytest.mark.parametrize(
    ("text", "title", "after"),
    [
        ("source = sigmod(linear(x))", "did you mean sigmoid?", "source = sigmoid(linear(x))"),
        ("source = 2 ** 3", "a power is written ^", "source = 2 ^ 3"),
    ],
)
def test_fixes(text: str, title: str, after: str) -> None:
    whole = "scan s on chain(time) {\n" + text + "\ntransition = 0.5\n}\n"
    shown = document(whole)
    fixes = quick_fixes(shown, 0, len(whole))
    assert [fix.title for fix in fixes] == [title]
    assert apply(fixes[0].rewrite).text == whole.replace(text, after)
    assert quick_fixes(shown, len(whole) - 1, len(whole)) == []


def test_uris_of_files_and_of_others() -> None:
    path = Path("/a b/ü.stm")
    assert path_of(uri_of(path)) == path
    assert path_of("untitled:Untitled-1") is None
    assert path_of("file:///a%00b") is None
    assert path_of("http://[broken") is None
