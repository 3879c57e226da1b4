"""No files of the package import each other in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

PACKAGE = Path(__file__).parents[1] / "stmlang"


def module_of(file: Path, package: Path) -> str:
    """The dotted name of a file, that of its folder for an `__init__.py`."""
    words = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


def imported(tree: ast.AST, inside: str) -> Iterator[tuple[str, ...]]:
    """What the imports of a file of the package `inside` may refer to, of each the likeliest first: of `from a import b` the
    module `a.b`, or else `a`.

    Every import counts: those of a function, which only put a circle off until it is called, and those for the type checker,
    which a reader follows all the same.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name,) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = inside.split(".")[: len(inside.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((f"{base}.{alias.name}", base) for alias in node.names)


def graph_of(package: Path) -> nx.DiGraph:
    """The files of a package by their modules' names, with an edge from each to every file that it imports from.

    That a module's import runs the `__init__.py` of the folders around it is no edge: it is not written in the file.
    """
    files = {module_of(file, package): file for file in sorted(package.rglob("*.py"))}
    graph = nx.DiGraph()
    graph.add_nodes_from(files)
    for name, file in files.items():
        inside = name if file.name == "__init__.py" else name.rpartition(".")[0]
        for candidates in imported(ast.parse(file.read_text(encoding="utf-8")), inside):
            module = next((candidate for candidate in candidates if candidate in files), None)
            if module is not None and module != name:
                graph.add_edge(name, module)
    return graph


def circles(package: Path) -> list[set[str]]:
    """The sets of files each of which leads to all others of its set, by one import after the other."""
    return [component for component in nx.strongly_connected_components(graph_of(package)) if len(component) > 1]


def test_no_files_import_each_other() -> None:
    graph = graph_of(PACKAGE)
    assert graph.number_of_edges() > graph.number_of_nodes() > 200, "the imports are seen"
    found = [sorted(circle) for circle in circles(PACKAGE)]
    assert not found, f"files import each other in circles: {found}"


def test_every_kind_of_import_counts(tmp_path: Path) -> None:
    """A circle through a folder, a function, a relative import and an import for the type checker."""
    package = tmp_path / "pack"
    texts = {
        "__init__.py": "",
        "a.py": "from pack.room import b\n",
        "room/__init__.py": "",
        "room/b.py": "def lazy() -> None:\n    from . import c\n",
        "room/c.py": "from ..room.d import D\n",
        "room/d.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import pack.a\n",
        "room/alone.py": "import pack.a\nimport os\n",
    }
    for name, text in texts.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    assert circles(package) == [{"pack.a", "pack.room.b", "pack.room.c", "pack.room.d"}]
    (package / "room" / "d.py").write_text("", encoding="utf-8")
    assert circles(package) == []
