"""Build the documentation site into build/site: `make docs`.

    python -m docs.site.build                    all of it, and every warning is an error
    python -m docs.site.build --specs plstm/image_p --specs chain/mamba     with those alone in the gallery, for drafts

All pages are put into build/site-pages first: those of docs/site/pages, the documents of docs/, and those that are made of the
library, the error codes and the examples. mkdocs then checks every link and anchor. Nothing is fetched but the packages of
docs/site/package.json, by npm, and numpy for the playground, by pip (docs/site/playground/pack.py), each once. Without npm the
site has no playground that runs, without numpy one that checks alone, and either says so.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from docs.site.errors import error_pages
from docs.site.gallery import gallery_pages
from docs.site.links import relinked
from docs.site.notebooks import notebook
from docs.site.npm import fetched
from docs.site.playground.pack import pack
from stmlang.check import library_specs
from stmlang.cli.progress import progress_bar

ROOT = Path(__file__).parents[2]
HERE = ROOT / "docs" / "site"
PAGES, PACKAGE, SITE = (ROOT / "build" / name for name in ("site-pages", "site-package", "site"))
_FILE = re.compile(r"^<!-- file (\S+\.py) -->$", re.MULTILINE)
ELSEWHERE = {"SPEC.md": "language.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}


def main(words: Sequence[str] | None = None) -> int:
    """Exit status: that of mkdocs."""
    parser = argparse.ArgumentParser(prog="python -m docs.site.build", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--specs", action="append", metavar="NAME", help="in the gallery, instead of all of the library")
    parser.add_argument(
        "--wheels", type=Path, metavar="DIR", help="a folder with numpy for Pyodide, which is else fetched by pip"
    )
    parser.add_argument("--out", type=Path, default=SITE, help="where the site goes")
    arguments = parser.parse_args(words)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    assemble(PAGES, arguments.specs, arguments.wheels)
    package(PACKAGE)
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--clean"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        [*command, "-f", str(HERE / "mkdocs.yml"), "-d", str(arguments.out.resolve())], env=environment
    ).returncode


def documents() -> dict[Path, str]:
    """Every document and picture that the site takes over, and its name there."""
    pages = {ROOT / source: page for source, page in ELSEWHERE.items()}
    for folder in (ROOT / "docs", HERE / "pages"):
        for path in sorted(folder.rglob("*")):
            inside = folder == HERE / "pages" or not path.is_relative_to(HERE)
            if (
                inside
                and path.suffix in (".md", ".svg", ".png", ".json")
                and not path.is_relative_to(ROOT / "docs" / "editors")
            ):
                pages[path] = path.relative_to(folder).as_posix()
    pages[ROOT / "examples" / "README.md"] = "examples/index.md"
    pages |= {path: f"examples/{path.stem}.md" for path in sorted((ROOT / "examples").glob("*.py"))}
    return pages


def assemble(target: Path, specs: list[str] | None = None, wheels: Path | None = None) -> None:
    """All pages of the site, as mkdocs takes them, in a new folder."""
    shutil.rmtree(target, ignore_errors=True)
    pages = documents()
    for source, page in pages.items():
        match source.suffix:
            case ".md":
                text = _FILE.sub(_included, source.read_text(encoding="utf-8"))
                own = source.is_relative_to(HERE)  # whose links are those of the site
                _write(target / page, text if own else relinked(text, source, page, pages))
            case ".py":
                _write(target / page, _example(source))
                _write(target / page.replace(".md", ".ipynb"), notebook(source))
            case _:
                _write(target / page, source.read_bytes())
    _write(target / "results/index.md", _results(pages))
    _write(target / "assets/site.css", (HERE / "site.css").read_bytes())
    for name, text in error_pages():
        _write(target / name, text)
    with progress_bar("drawing the gallery", len(specs or library_specs())) as show:
        for name, content in gallery_pages(specs):
            _write(target / name, content)
            show(len(list((target / "gallery").rglob("*.md"))), f"drew {name}")
    shim = fetched("iframe-worker")  # lets a page that was opened from a folder search; without it, one from a server still can
    _write(target / "assets/iframe-worker.js", b"" if shim is None else (shim / "shim" / "index.js").read_bytes())
    pack(target / "assets" / "playground", wheels)


def package(target: Path) -> None:
    """The package as it is installed, by links, so that the reference finds `stmlang.models` too."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "stmlang").mkdir(parents=True)
    for path in [*(ROOT / "stmlang").iterdir(), ROOT / "models"]:
        if path.name != "__pycache__":
            (target / "stmlang" / path.name).symlink_to(path)


def _included(marker: re.Match[str]) -> str:
    """A file of the repository as a block."""
    return f'```python title="{marker[1]}"\n{(ROOT / marker[1]).read_text(encoding="utf-8").rstrip()}\n```'


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def _example(path: Path) -> str:
    """An example as a page: what it says of itself, and its text."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    said = ast.get_docstring(tree) or path.stem
    body = text.split('"""', 2)[2].strip()
    title, _, rest = said.partition("\n")
    links = f"[As a notebook]({path.stem}.ipynb) · [All examples](index.md)"
    return f"# {path.name}\n\n{title}\n{rest}\n\n```python\n{body}\n```\n\n{links}\n"


def _results(pages: dict[Path, str]) -> str:
    """A list of the studies, each by its own title."""
    lines = ["# Results", "", "Studies that were run for this library, with what they reached and what they missed.", ""]
    for source, page in pages.items():
        if page.startswith("results/") and page.endswith(".md"):
            title = source.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")
            lines.append(f"* [{title}]({page.removeprefix('results/')})")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
