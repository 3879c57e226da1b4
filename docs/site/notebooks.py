"""Notebooks, made of the examples when the site is built: the scripts are the only text of them."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

jupytext: Any = import_module("jupytext")  # its own types are partly unknown


def notebook(path: Path) -> str:
    """The notebook of a script, as JSON: what it says of itself as words, and a cell for each paragraph of its code."""
    text = path.read_text(encoding="utf-8")
    made = jupytext.reads(text, fmt="py:light")
    said, made.cells[0].cell_type = ast.get_docstring(ast.parse(text)) or path.stem, "markdown"
    title, _, rest = said.partition("\n")
    made.cells[0].source = f"# {path.name}\n\n{title}\n{rest}"
    for name in ("outputs", "execution_count"):
        made.cells[0].pop(name, None)
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"  # the same script gives the same bytes
    made.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return jupytext.writes(made, fmt="ipynb")
