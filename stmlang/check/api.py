"""What the checker is asked by: a text, a file or a name of the library in, a typed scan out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stmlang.check.definitions import check_definitions
from stmlang.check.inline_graphs import Graphs
from stmlang.check.modules import Loader, Module, Reader
from stmlang.check.opening import Spec, open_spec
from stmlang.check.problems import Problems, listed
from stmlang.check.scans import ScanChecker
from stmlang.check.search_path import place_of, search_folders
from stmlang.check.sizes import Settings
from stmlang.check.typing.scope import Budget
from stmlang.log import COMPILE, timed
from stmlang.scan.scan import Scan
from stmlang.scan.topology import FromFile, Product
from stmlang.source.diagnostic import Diagnostic, Severity, SpecError
from stmlang.source.reading import read
from stmlang.source.span import SourceFile
from stmlang.syntax import tree
from stmlang.syntax.parser import Parsed, parse_all

Values = Mapping[str, int | float]


@dataclass(frozen=True)
class Examined:
    """What a file says: its scan, None where it has none or an error, and everything found, warnings included."""

    scan: Scan | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def failed(self) -> bool:
        return any(diagnostic.severity is Severity.ERROR for diagnostic in self.diagnostics)


def load(
    spec: str | Path, settings: Values | None = None, *, scan: str | None = None, search_path: Sequence[Path] = ()
) -> Scan:
    """The scan of a spec given as a name of the library (`std:plstm/image_p`), a path, or the text itself.

    Raises SpecError with everything that is wrong, in the order of the text.
    """
    opened = open_spec(spec, scan)
    return _sound(examine(opened, settings, search_path=search_path, library_file=False))


def check(
    source: SourceFile,
    settings: Values | None = None,
    *,
    scan: str | None = None,
    search_path: Sequence[Path] = (),
    directory: Path | None = None,
) -> Scan:
    """The scan of a text: the last one, or that of a name.

    `settings` are sizes and parameters by name. Files are read from `directory` (by default the folder of the source's path, or
    the current one for a text without a path), the search path and the library. Raises SpecError with everything that is wrong.
    """
    path = Path(source.name)
    is_file = directory is None and path.is_file()
    folder = directory or (path.parent if is_file else Path())
    opened = Spec(source, scan, place_of(folder), path if is_file else None)
    return _sound(examine(opened, settings, search_path=search_path, library_file=False))


def _sound(examined: Examined) -> Scan:
    if examined.scan is None or examined.failed:
        raise SpecError([diagnostic for diagnostic in examined.diagnostics if diagnostic.severity is Severity.ERROR])
    return examined.scan


# --- all of it


def examine(
    spec: Spec, settings: Values | None = None, *, search_path: Sequence[Path] = (), library_file: bool = True
) -> Examined:
    """Everything there is to say about a spec, errors and warnings. Raises nothing.

    Imports and graph files are looked for beside the file that names them, then in the folders of `search_path`, then in those
    that the environment variable STMLANG_PATH names. A file without a scan is fine if it may be a `library_file`, one of
    definitions for others to import.
    """
    with timed(COMPILE, f"load {spec.source.name}"):
        return _examined(spec, settings, search_folders(search_path), library_file)


def _examined(spec: Spec, settings: Values | None, search_path: Sequence[Path], library_file: bool) -> Examined:
    parsed = parse_all(spec.source)
    if parsed.diagnostics:
        return Examined(None, parsed.diagnostics)
    surveyed = survey(spec, parsed, settings, search_path=search_path, library_file=library_file)
    return Examined(surveyed.scan, surveyed.diagnostics)


@dataclass(frozen=True, eq=False)
class Surveyed:
    """A file with all that an editor can tell of it: its names and those of the files that it imports, each scan as it was
    typed, None after an error, the one that is meant, and everything found.

    Of a file with syntax errors only these are reported: what else seems wrong may be so because of a statement that cannot be
    read. Its names, and the scans that are right without it, are there all the same.
    """

    module: Module
    scans: tuple[tuple[tree.ScanItem, Scan | None], ...]
    scan: Scan | None
    diagnostics: tuple[Diagnostic, ...]


Kept = dict[tuple[tuple[SourceFile | str, ...] | None, str, bool], Scan]
"""Scans without a finding, by all that they were made of: what the text and the files that it imports declare besides, the text
of the scan, and whether it is the one that is meant."""


def survey(
    spec: Spec,
    parsed: Parsed,
    settings: Values | None = None,
    *,
    search_path: Sequence[Path] = (),
    library_file: bool = True,
    reader: Reader = read,
    kept: Kept | None = None,
) -> Surveyed:
    """Everything there is to say about a spec that was parsed, right or wrong. Raises nothing.

    `search_path` is the whole of it. Texts of files that it imports come from `reader`. Scans that were found to be right in
    an earlier version of the same text, with everything that they see unchanged, are taken from `kept`, which keeps those of
    this version; places in them are those of the version that they were checked in.
    """
    problems = Problems(spec.source)
    resolved = None if spec.path is None else spec.path.resolve()
    loader = Loader(problems, search_path, resolved, reader)
    module = loader.module(spec.source, parsed.file, spec.place, resolved)
    for each_module in (*loader.modules, module):
        check_definitions(problems, each_module)
    chosen_settings = Settings(problems, settings or {})
    chosen = _chosen(problems, module, spec.scan, library_file)
    budget, graphs = Budget(), Graphs(problems)
    places = [place_of(folder) for folder in search_path]
    scans: list[tuple[tree.ScanItem, Scan | None]] = []
    surroundings = _surroundings(module, loader) if kept is not None and not settings else None
    right: Kept = {}
    for item in module.scans:
        key = surroundings, item.span.text, item is chosen
        if kept is not None and key in kept:
            right[key] = kept[key]
            scans.append((item, kept[key]))
            continue
        own, before = chosen_settings if item is chosen else Settings(problems, {}), problems.count
        checked = ScanChecker(problems, budget, graphs, own, item, module, places, chosen=item is chosen).run()
        scans.append((item, checked))
        if checked is not None and problems.count == before and surroundings is not None and not _reads_a_file(checked):
            right[key] = checked
    if kept is not None and surroundings is not None:
        kept.clear()
        kept.update(right)
    if chosen is not None:
        chosen_settings.refuse_unknown()
    if parsed.diagnostics:
        return Surveyed(module, tuple(scans), None, parsed.diagnostics)
    scan = None if problems.failed else next((checked for item, checked in scans if item is chosen), None)
    return Surveyed(module, tuple(scans), scan, problems.in_order())


def _surroundings(module: Module, loader: Loader) -> tuple[SourceFile | str, ...]:
    """What scans of a file see besides their own text."""
    own = (declared.item.span.text for declared in module.own.values())
    others = {name: declared.item.span for name, declared in module.names.items() if name not in module.own}
    imported = (f"{name} {span.file.name} {span.start}" for name, span in sorted(others.items(), key=lambda pair: pair[0]))
    return (*own, *(each.source for each in loader.modules), *imported, *sorted(module.missing))


def _reads_a_file(scan: Scan) -> bool:
    """Whether a scan's topology is, or has as a factor, a graph in a file, which may change by itself."""
    match scan.topology:
        case Product(factors=factors):
            return any(isinstance(factor, FromFile) for factor in factors)
        case _:
            return isinstance(scan.topology, FromFile)


def _chosen(problems: Problems, module: Module, name: str | None, library_file: bool) -> tree.ScanItem | None:
    """The scan item that is asked for."""
    scans = {item.name.text: item for item in module.scans}
    if name is not None and name not in scans:
        note = f"its scans are {listed(scans)}"
        problems.error("STM1013", f"`{module.source.name}` has no scan `{name}`", None, note, help=problems.near(name, scans))
        return None
    if name is None and not scans and not library_file:
        note = "a spec is compiled from a `scan`; a file of definitions and topologies is there for other files to use"
        help = "write `scan name on chain(time) { ... }`"
        problems.error("STM1012", f"`{module.source.name}` holds no scan", None, note, help=help)
    return scans[name] if name is not None else module.scans[-1] if module.scans else None
