"""What can be written at a place: the words of the language, and the names that mean something there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stmlang.check.modules import Definition, Module, NamedTopology
from stmlang.check.search_path import (
    STANDARD,
    EscapeError,
    library,
    library_functions,
    library_specs,
    locate,
    place_of,
)
from stmlang.check.vocabulary import ALLOWED, CORE, INPUTS, TERM_INDICES, TERM_SIZES
from stmlang.lsp import words
from stmlang.lsp.cursor import Bracket, Cursor, cursor_at
from stmlang.lsp.document import Document
from stmlang.lsp.hover import signature
from stmlang.lsp.symbols import Kind, axes_of, gates_of, numbers_of
from stmlang.scan.expression import BOUND_INDICES, STEP, WRITTEN_INDICES
from stmlang.scan.graph_files import FORMATS
from stmlang.source.advice import Edit
from stmlang.source.diagnostic import SpecError
from stmlang.source.span import Span
from stmlang.syntax import tree
from stmlang.syntax.layout import NAME_KINDS
from stmlang.syntax.lexer import ITEM_WORDS, SETTING_WORDS
from stmlang.syntax.parser import parse_all
from stmlang.syntax.settings import SETTING_CHOICES

_MOST_FILES = 200

_ITEMS = {
    "topology": "topology ${1:name} = ${2:grid(rows, cols)}",
    "scan": "scan ${1:name} on ${2:chain(time)} {\n"
    "    source     = ${3:sigmoid(linear(x))}\n"
    "    transition = ${4:sigmoid(linear(x))}\n}",
    "def": "def ${1:name}(${2:a}) = ${3:a}",
    "use": "use ${1:std.gates} (${2:name})",
}


@dataclass(frozen=True)
class Item:
    """Something that can be written in place of `span`. `detail` stands beside it, `more` is shown for it; `snippet` is what is
    written where that is not the label, with places to fill in, and `edits` what is changed elsewhere besides."""

    label: str
    kind: Kind | None
    span: Span
    detail: str = ""
    more: str = ""
    snippet: str | None = None
    edits: tuple[Edit, ...] = ()
    late: bool = False
    """Whether it comes behind the others."""


@dataclass(frozen=True)
class _Here:
    """A place, with what is written from there on and the scan or definition around it."""

    document: Document
    cursor: Cursor
    span: Span
    scan: tree.ScanItem | None

    @property
    def module(self) -> Module:
        return self.document.module

    def item(self, label: str, kind: Kind | None, detail: str = "", more: str = "", **others: object) -> Item:
        return Item(label, kind, self.span, detail, more, **others)  # pyright: ignore[reportArgumentType]


def completion(document: Document, offset: int) -> list[Item]:
    """What can be written at an offset, or in place of the word that ends there."""
    cursor = cursor_at(document, offset)
    if cursor is None:
        return []
    span = Span(document.source, cursor.start, offset)
    items = [item for item in document.parsed.file.items if item.span.start <= cursor.start <= item.span.end + 1]
    scan = next((item for item in items if isinstance(item, tree.ScanItem)), None) or _begun(document, cursor)
    here = _Here(document, cursor, span, scan)
    seen: dict[str, Item] = {}
    for item in _all(here):
        seen.setdefault(item.label, item)
    return list(seen.values())


def _begun(document: Document, cursor: Cursor) -> tree.ScanItem | None:
    """The last scan before a place inside of braces, where its own braces cannot be read."""
    scans = [item for item in document.parsed.file.items if isinstance(item, tree.ScanItem)]
    return next((item for item in reversed(scans) if item.span.start <= cursor.offset), None) if cursor.braces else None


def _all(here: _Here) -> Iterator[Item]:
    cursor = here.cursor
    first = cursor.statement[0].kind if cursor.statement else None
    if cursor.graph:
        return
    if first is None:
        yield from _statements(here) if cursor.braces else _items(here)
    elif first == "USE":
        yield from _imports(here)
    elif first == "SETTING":
        yield from _setting(here)
    elif cursor.bracket is not None and cursor.bracket.kind == "LSQB":
        yield from _indices(here, cursor.bracket)
    elif first in ("TOPOLOGY", "SCAN") and cursor.bracket is None:
        yield from _topologies(here)
    elif first == "DEF" and cursor.equal is None:
        return
    elif cursor.equal is not None or cursor.bracket is not None:
        yield from _expression(here)


# --- statements


def _items(here: _Here) -> Iterator[Item]:
    for word in ITEM_WORDS:
        yield here.item(word, None, snippet=_ITEMS[word])


def _statements(here: _Here) -> Iterator[Item]:
    written = gates_of(here.scan) if here.scan is not None else {}
    for name in (*CORE, *INPUTS):
        yield here.item(name, Kind.GATE, "gate", words.GATES[name], late=name in written)
    for name in written:
        yield here.item(name, Kind.GATE, "gate", "Another equation, for some ports or positions.", late=True)
    for word in SETTING_WORDS:
        yield here.item(word, None, "setting", words.SETTINGS[word], snippet="read after" if word == "read" else None)


def _setting(here: _Here) -> Iterator[Item]:
    keyword, last = here.cursor.statement[0].text, here.cursor.last
    if last is not None and last.kind in ("PLUS", "MINUS"):
        yield from _ports(here)
        return
    for choice in SETTING_CHOICES[keyword]:
        if choice.isalpha():
            yield here.item(choice, None, keyword)
    if keyword == "directions" and len(here.cursor.statement) > 1:
        yield from (here.item(word, None, keyword) for word in ("own", "concat"))
        yield from (here.item(name, Kind.INPUT, "input", words.INPUTS[name]) for name in INPUTS)


def _topologies(here: _Here) -> Iterator[Item]:
    last = here.cursor.last
    if last is None or last.kind not in ("EQUAL", "ON", "STAR", "AS"):
        if here.cursor.statement[0].kind == "SCAN" and len(here.cursor.statement) > 1:
            yield here.item("on", None)
        return
    if last.kind == "AS":
        yield from (here.item(name, Kind.FORMAT, "format") for name in sorted(FORMATS))
        return
    for name in here.module.topologies():
        yield here.item(name, Kind.TOPOLOGY, "topology")
    for name, (form, meaning) in words.TOPOLOGIES.items():
        yield here.item(name, Kind.TOPOLOGY_KIND, form, meaning, snippet=form)


# --- imports


def _imports(here: _Here) -> Iterator[Item]:
    """Paths of files, and behind one, in brackets, what it declares."""
    tokens = here.cursor.statement[1:]
    if here.cursor.bracket is not None:
        path = "".join(token.text for token in tokens[: [token.kind for token in tokens].index("LPAR")])
        for item in _declared(here.document, path):
            kind = Kind.FUNCTION if isinstance(item, tree.DefinitionItem) else Kind.TOPOLOGY
            yield here.item(item.name.text, kind, " ".join(item.span.text.split()))
        return
    written = "".join(token.text for token in tokens)
    for path in _importable(here.document):
        if path.startswith(written):
            yield here.item(path.removeprefix(written), Kind.FILE, "file")


def _declared(document: Document, path: str) -> list[tree.DefinitionItem | tree.TopologyItem]:
    """What a file declares that is imported by a path; nothing where there is no such file."""
    standard = path.startswith(f"{STANDARD}.")
    places = [place_of(library())] if standard else [document.place, *map(place_of, document.folders)]
    try:
        file = locate(f"{path.removeprefix(f'{STANDARD}.').replace('.', '/')}.stm", places)
        parsed = None if file is None else parse_all(document.reader(file.path, file.shown))
    except (EscapeError, SpecError):
        return []
    items = () if parsed is None else parsed.file.items
    return [item for item in items if isinstance(item, tree.DefinitionItem | tree.TopologyItem)]


def _importable(document: Document) -> Iterator[str]:
    """How files are imported: those of the library, then those beside the text and on the search path."""
    yield from (f"{STANDARD}.{name.replace('/', '.')}" for name in library_specs())
    beside = () if document.path is None or document.path.is_relative_to(library()) else (document.path.parent,)
    for folder in (*beside, *document.folders):
        for path in _specs(folder):
            relative = path.relative_to(folder).with_suffix("")
            if path != document.path and all(part.isidentifier() for part in relative.parts):
                yield ".".join(relative.parts)


def _specs(folder: Path) -> list[Path]:
    try:
        return sorted([*folder.glob("*.stm"), *folder.glob("*/*.stm")])[:_MOST_FILES]
    except OSError:
        return []


# --- indices


def _indices(here: _Here, bracket: Bracket) -> Iterator[Item]:
    """Indices that are not there yet, or the ports that one is pinned to."""
    current = [token.kind for token in bracket.current]
    if current[-1:] == ["EQUAL"]:
        yield from _ports(here)
        return
    if bracket.head is None and here.cursor.equal is not None and here.cursor.last is not None:
        after_list = here.cursor.last.kind in ("LSQB", "COMMA") and _behind_list(here.cursor, bracket)
        if not after_list:
            yield from _expression(here)
            return
    gate = bracket.head.text if bracket.head is not None and here.cursor.equal is None else ""
    used = {token.text for token in bracket.inside}
    numbers = {parameter.name.text for parameter in here.scan.parameters} if here.scan is not None else set[str]()
    allowed = ALLOWED.get(gate, WRITTEN_INDICES) if here.cursor.equal is None else (*WRITTEN_INDICES, *BOUND_INDICES)
    for index in allowed:
        late = index in BOUND_INDICES or (index in (*TERM_INDICES, STEP) and TERM_SIZES[index] not in numbers)
        if index not in used:
            yield here.item(index, Kind.INDEX, "index", f"Ranges over {words.index_meaning(index)}.", late=late)


def _behind_list(cursor: Cursor, bracket: Bracket) -> bool:
    """Whether a square bracket stands behind a value, whose indices it names, and not where a list of values begins."""
    place = cursor.statement.index(bracket.opened)
    return place > 0 and cursor.statement[place - 1].kind in ("RSQB", "RPAR", "NAME", "ON", "FROM", "AS")


def _ports(here: _Here) -> Iterator[Item]:
    axes = [] if here.scan is None else list(axes_of(here.scan.topology, here.module))
    for axis in axes:
        yield here.item(axis.name.text, Kind.NUMBER, "port")
    if not axes:
        yield here.item("edge", Kind.PORT, "port")


# --- expressions


def _expression(here: _Here) -> Iterator[Item]:
    bracket = here.cursor.bracket
    if bracket is not None and bracket.kind == "LPAR" and bracket.head is not None:
        yield from _arguments(here, bracket)
        if [token.text for token in bracket.current] == ["over", "="]:
            yield from (here.item(index, Kind.INDEX, "index") for index in (*WRITTEN_INDICES, *BOUND_INDICES))
            return
        if bracket.head.text in ("degree", "neighbour"):
            yield from (
                here.item(index, Kind.INDEX, "index", f"Ranges over {words.INDICES[index]}.") for index in ("out", "in")
            )
            return
        if bracket.head.text == "linear":
            yield from (here.item(name, Kind.FEATURE, "features", words.OTHERS[name]) for name in ("x", "e"))
    yield from _values(here)
    for name, (arguments, meaning) in words.FUNCTIONS.items():
        yield here.item(name, Kind.BUILT_IN, f"({', '.join(arguments)})", meaning, snippet=f"{name}($1)")
    for name in here.module.functions():
        declared = here.module.names[name]
        assert not isinstance(declared, NamedTopology)
        yield _function(here, name, declared)
    for name, path in library_functions().items():
        line = Edit(Span(here.span.file, 0, 0), f"use {path} ({name})\n")
        yield here.item(name, Kind.FUNCTION, f"from {path}", snippet=f"{name}($1)", edits=(line,), late=True)


def _function(here: _Here, name: str, declared: Definition) -> Item:
    return here.item(name, Kind.FUNCTION, f"({', '.join(declared.parameters)})", declared.item.span.text, snippet=f"{name}($1)")


def _arguments(here: _Here, bracket: Bracket) -> Iterator[Item]:
    """The arguments of a call that can be given by name here."""
    if bracket.current or bracket.head is None:
        return
    name = bracket.head.text
    declared = here.module.names.get(name)
    names = declared.parameters if isinstance(declared, Definition) else words.FUNCTIONS.get(name, ((), ""))[0]
    for argument in names:
        if argument.isidentifier() and argument not in ("features", "index"):
            yield here.item(f"{argument} =", Kind.ARGUMENT, f"of {name}", snippet=f"{argument} = $1", late=True)


def _values(here: _Here) -> Iterator[Item]:
    statement = here.cursor.statement
    if statement[0].kind == "DEF":
        head = statement[2 : here.cursor.equal]
        yield from (here.item(token.text, Kind.PARAMETER, "parameter") for token in head if token.kind in NAME_KINDS)
        yield from (here.item(name, Kind.SIZE, "size", words.SIZES[name]) for name in ("heads", "key", "value", "track"))
    elif here.scan is not None:
        for name in gates_of(here.scan):
            yield here.item(name, Kind.GATE, signature(here.scan, name))
        for name in numbers_of(here.scan, here.module):
            yield here.item(name, Kind.NUMBER, "number")
        for parameter in here.scan.parameters:
            yield here.item(parameter.name.text, Kind.SIZE, "size")
    yield from (here.item(name, Kind.INPUT, "input", words.INPUTS[name]) for name in INPUTS)
    yield here.item("pi", Kind.CONSTANT, "number", words.OTHERS["pi"])
    yield here.item("eye", Kind.BUILT_IN, "[key, key']", words.OTHERS["eye"], snippet="eye[${1:key, key'}]")
