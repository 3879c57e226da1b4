"""Files and what they declare: definitions, topologies and scans, their own and imported ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from stmlang.check.problems import Problems, arrows, listed
from stmlang.check.search_path import STANDARD, EscapeError, LocatedFile, Place, library, locate, looked_in, place_of
from stmlang.check.vocabulary import KINDS_OF_TOPOLOGY, RESERVED
from stmlang.source.advice import Advice, replaced
from stmlang.source.diagnostic import Diagnostic, Label, SpecError
from stmlang.source.reading import read
from stmlang.source.span import SourceFile, Span
from stmlang.syntax import tree
from stmlang.syntax.parser import parse

Reader = Callable[[Path, str], SourceFile]
"""The text of a path under a name; raises SpecError. An editor has texts that are not saved yet."""

MOST_FILES = 100
DEEPEST_IMPORT = 30


@dataclass(eq=False)
class Definition:
    """A `def` and the file whose names its body sees. `sound` is False where an error was reported about it."""

    item: tree.DefinitionItem
    module: Module
    sound: bool = True

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters, gathered once and not for each call."""
        return tuple(name.text for name in self.item.parameters)


@dataclass(eq=False)
class NamedTopology:
    """A `topology` item and the file whose names it sees."""

    item: tree.TopologyItem
    module: Module


Declared = Definition | NamedTopology


@dataclass(eq=False)
class Module:
    """A file. `names` holds what its items can refer to, `own` what other files can import from it, `imports` the files that
    its `use` items name, by the place of their paths."""

    source: SourceFile
    place: Place
    path: Path | None = None
    own: dict[str, Declared] = field(default_factory=dict[str, Declared])
    names: dict[str, Declared] = field(default_factory=dict[str, Declared])
    missing: set[str] = field(default_factory=set[str])
    scans: list[tree.ScanItem] = field(default_factory=list[tree.ScanItem])
    open_import: bool = False
    imports: dict[Span, Module] = field(default_factory=dict[Span, "Module"])

    def functions(self) -> Iterator[str]:
        """The names of the definitions that can be called here."""
        return (name for name, declared in self.names.items() if isinstance(declared, Definition))

    def topologies(self) -> Iterator[str]:
        """The names of the topologies that can be referred to here."""
        return (name for name, declared in self.names.items() if isinstance(declared, NamedTopology))

    def unknown(self, name: str) -> bool:
        """Whether a name that is not found here may be one that a failed import was to bring: then nothing more is said."""
        return self.open_import or name in self.missing


class Loader:
    """Reads a file and, through its `use` items, the files it needs, each once."""

    def __init__(self, problems: Problems, search_path: Sequence[Path], main: Path | None, reader: Reader = read) -> None:
        self._problems = problems
        self._read = reader
        self._search = [place_of(folder) for folder in search_path]
        self._loaded: dict[Path, Module | None] = {}
        self._chain: list[tuple[Path, Span | None]] = [] if main is None else [(main, None)]

    def module(self, source: SourceFile, file: tree.File, place: Place, path: Path | None = None) -> Module:
        """A parsed file with its names. Items that clash are reported and the first one kept."""
        module = Module(source, place, path)
        for item in file.items:
            match item:
                case tree.UseItem():
                    self._use(module, item)
                case tree.ScanItem():
                    self._scan(module, item)
                case tree.DefinitionItem():
                    self._declare(module, item.name, Definition(item, module))
                case tree.TopologyItem():
                    self._declare(module, item.name, NamedTopology(item, module))
        return module

    @property
    def modules(self) -> list[Module]:
        """The files that were imported."""
        return [module for module in self._loaded.values() if module is not None]

    def _scan(self, module: Module, item: tree.ScanItem) -> None:
        for other in module.scans:
            if other.name.text == item.name.text:
                self._twice(item.name, other.name.span)
                return
        module.scans.append(item)

    def _declare(self, module: Module, name: tree.Name, declared: Declared) -> None:
        what, taken = ("definition", RESERVED) if isinstance(declared, Definition) else ("topology", KINDS_OF_TOPOLOGY)
        if name.text in taken:
            message = f"`{name.text}` {taken[name.text]} and cannot name a {what}"
            self._problems.error("STM1005", message, name.span)
            module.missing.add(name.text)
        elif name.text in module.names:
            self._twice(name, module.names[name.text].item.name.span)
        else:
            module.names[name.text] = module.own[name.text] = declared

    def _twice(self, name: tree.Name, first: Span) -> None:
        labels = [Label(first, "first declared here")]
        self._problems.error("STM1004", f"`{name.text}` is declared twice", name.span, labels=labels)

    # --- imports

    def _use(self, module: Module, item: tree.UseItem) -> None:
        target = self._target(module, item)
        if target is None:
            module.open_import |= not item.names
            module.missing.update(name.text for name in item.names)
            return
        module.imports[path_of(item)] = target
        names = item.names or tuple(tree.Name(name, item.span) for name in target.own)
        for name in names:
            declared = target.own.get(name.text)
            if declared is None:
                self._absent(target, item, name)
                module.missing.add(name.text)
            elif name.text not in module.names:
                module.names[name.text] = declared
            elif module.names[name.text] is not declared:
                self._twice(name, module.names[name.text].item.name.span)

    def _absent(self, target: Module, item: tree.UseItem, name: tree.Name) -> None:
        if target.unknown(name.text):
            return
        where = ".".join(word.text for word in item.path)
        if any(scan.name.text == name.text for scan in target.scans):
            message, note = f"`{name.text}` is a scan of `{where}`", "definitions and topologies are imported, scans are not"
        elif name.text in target.names:
            message, note = f"`{where}` only imports `{name.text}` itself", "a name is imported from the file that declares it"
        else:
            message, note = f"`{where}` declares no `{name.text}`", f"it declares {listed(target.own)}"
        self._problems.error("STM1023", message, name.span, note, help=self._problems.near(name.text, target.own, at=name.span))

    def _target(self, module: Module, item: tree.UseItem) -> Module | None:
        """The file a `use` names, loaded; None if there is an error, which has been reported."""
        words = [name.text for name in item.path]
        span = path_of(item)
        standard = words[0] == STANDARD
        places = [place_of(library())] if standard else [module.place, *self._search]
        relative = "/".join(words[1:] if standard else words) + ".stm"
        try:
            file = locate(relative, places)
        except EscapeError:
            rule = "files are read from the folder of the importing file and the search path; links may not lead out of them"
            self._problems.error("STM1021", f"`{relative}` lies outside of where a spec may read", span, rule)
            return None
        if file is None:
            where = "looked for in the installed library" if standard else looked_in(places)
            note = f"`{'.'.join(words)}` is the file `{relative}`, {where}"
            near = self._name_of(words, places, span) or self._problems.near(".".join(words), _beside(words, places), at=span)
            self._problems.error("STM1020", f"there is no file `{relative}`", span, note, help=near)
            return None
        return self._load(file, span)

    def _name_of(self, words: Sequence[str], places: Sequence[Place], span: Span) -> Advice | None:
        """`use a.b.f` as `use a.b (f)`, where there is a file `a/b.stm`."""
        inner = words[1:-1] if words[0] == STANDARD else words[:-1]
        if not inner or locate("/".join(inner) + ".stm", places) is None:
            return None
        path = f"{'.'.join(words[:-1])} ({words[-1]})"
        return replaced(f"write `use {path}` if `{words[-1]}` is a name of that file", span, path)

    def _load(self, file: LocatedFile, span: Span) -> Module | None:
        path = file.resolved
        if path in [loading for loading, _ in self._chain]:
            self._cycle(path, span)
            return None
        if path in self._loaded:
            return self._loaded[path]
        if len(self._chain) >= DEEPEST_IMPORT or len(self._loaded) >= MOST_FILES:
            rule = f"a spec may import {MOST_FILES} files, {DEEPEST_IMPORT} deep"
            self._problems.error("STM1024", "too many files are imported", span, rule)
            return None
        self._chain.append((path, span))
        try:
            source = self._read(file.path, file.shown)
            self._loaded[path] = self.module(source, parse(source), Place(file.path.parent, file.root), path)
        except SpecError as problem:
            self._loaded[path] = None
            for diagnostic in problem.diagnostics:
                self._problems.add(_imported(diagnostic, span))
        finally:
            self._chain.pop()
        return self._loaded[path]

    def _cycle(self, path: Path, span: Span) -> None:
        start = [loading for loading, _ in self._chain].index(path)
        cycle = self._chain[start:]
        names = [loading.stem for loading, _ in cycle]
        labels = [Label(use, f"`{loading.stem}` is imported here") for loading, use in cycle if use is not None]
        rule = "files may not import each other in a circle; move what both need into a third file"
        self._problems.error("STM1022", f"imports run in a circle: `{arrows([*names, names[0]])}`", span, rule, labels=labels)


def path_of(item: tree.UseItem) -> Span:
    """Where the path of an import stands."""
    return item.path[0].span.to(item.path[-1].span)


def _beside(words: Sequence[str], places: Sequence[Place]) -> list[str]:
    """How the files would be imported that lie beside one that is missing."""
    prefix = [STANDARD] if words[0] == STANDARD else []
    inner = words[len(prefix) : -1]
    beside: list[str] = []
    for place in places:
        folder = place.directory.joinpath(*inner)
        try:
            beside += [".".join([*prefix, *inner, path.stem]) for path in sorted(folder.glob("*.stm"))[:1000]]
        except OSError:
            continue
    return beside


def _imported(diagnostic: Diagnostic, span: Span) -> Diagnostic:
    labels = (*diagnostic.labels, Label(span, "imported here"))
    place = diagnostic.span if diagnostic.span is not None else span
    return Diagnostic(
        diagnostic.code, diagnostic.message, place, diagnostic.notes, diagnostic.help, labels, diagnostic.severity
    )
