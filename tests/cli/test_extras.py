"""Without an extra, or a package that is needed, every entry point says what to install."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stmlang.ending import EXTRAS, NEEDED

ROOT = Path(__file__).parents[2]
BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
import runpy
sys.argv = {argv}
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


def run(module: str, words: list[str], blocked: set[str], folder: Path) -> subprocess.CompletedProcess[str]:
    code = BLOCK.format(blocked=sorted(blocked), argv=[module, *words], module=module)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", code]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


ENTRIES: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "stmlang.experiments.digits": (["--out", "out"], ("tyro", "optax", "sklearn", "matplotlib", "orbax")),
    "stmlang.experiments.arrow": (["--out", "out"], ("tyro", "optax", "sklearn", "matplotlib", "orbax")),
    "stmlang.experiments.charlm": (["--out", "out"], ("tyro", "optax", "matplotlib", "orbax")),
    "stmlang.experiments.statetracking": (["--out", "out"], ("tyro", "optax", "orbax")),
    "stmlang.experiments.tudataset": (["--out", "out"], ("tyro", "optax", "sklearn", "matplotlib", "orbax")),
    "stmlang.experiments.imagenet": (["--out", "out"], ("tyro", "optax", "matplotlib", "orbax", "grain", "PIL", "safetensors")),
    "stmlang.experiments.circuits": (["--out", "out", "--data", "."], ("tyro", "optax", "matplotlib", "orbax")),
    "benchmarks.strategies": ([], ("matplotlib",)),
}


@pytest.mark.parametrize(("module", "blocked"), [(module, name) for module in ENTRIES for name in ENTRIES[module][1]])
def test_entry_points_name_the_extra(module: str, blocked: str, tmp_path: Path) -> None:
    result = run(module, ENTRIES[module][0], {blocked}, tmp_path)
    words = f"{module}: this needs `{blocked}`, which is not installed: run `pip install 'stmlang[{EXTRAS[blocked]}]'`\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", [module for module in ENTRIES if "tyro" not in ENTRIES[module][1]])
def test_help_needs_no_extra(module: str, tmp_path: Path) -> None:
    result = run(module, ["--help"], set(EXTRAS), tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "usage: python -m " + module in result.stdout


def test_a_raster_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "flow.tif").write_bytes(b"II*\x00" + bytes(100))
    (tmp_path / "a.stm").write_text('scan s on dag from "flow.tif" { source = 1; transition = 0.5 }\n')
    result = run("stmlang", ["explain", "a.stm", "--target", "cpu"], {"PIL"}, tmp_path)
    assert result.returncode == 1
    assert "STM3415" in result.stderr
    assert "pip install 'stmlang[graphs]'" in result.stderr


@pytest.mark.parametrize("blocked", ["pygls", "lsprotocol"])
def test_the_language_server_names_the_extra(blocked: str, tmp_path: Path) -> None:
    result = run("stmlang", ["lsp"], {blocked}, tmp_path)
    words = f"stmlang: this needs `{blocked}`, which is not installed: run `pip install 'stmlang[lsp]'`\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", words)


@pytest.mark.parametrize(
    ("words", "blocked"),
    [(["explain", "std:plstm/image_p", "--set", "rows=3", "--set", "cols=3"], "jax"), (["check", "std:plstm/image_p"], "lark")],
)
def test_what_is_always_needed(words: list[str], blocked: str, tmp_path: Path) -> None:
    result = run("stmlang", words, {blocked}, tmp_path)
    if result.returncode == 0:  # the parser's table is stored: it needs no lark
        return
    said = f"stmlang: this needs `{blocked}`, which is not installed: run `pip install stmlang`\n"
    assert (result.returncode, result.stderr) == (1, said)


def test_every_module_that_is_imported_is_known() -> None:
    """What a new import needs has to be said too."""
    known = {*EXTRAS, *NEEDED, "stmlang", "benchmarks", "tests", *sys.stdlib_module_names}
    for folder in ("stmlang", "models", "experiments", "benchmarks", "stdlib"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module or ""]
                assert {name.partition(".")[0] for name in names} <= known, path


def test_the_module_is_the_command() -> None:
    for words in (["--help"], ["check"], ["check", "--help"], ["--version"]):
        module = subprocess.run([sys.executable, "-m", "stmlang", *words], capture_output=True, text=True, check=False)
        script = Path(sys.executable).with_name("stmlang")
        assert "__main__" not in module.stdout + module.stderr
        if script.exists():
            command = subprocess.run([script, *words], capture_output=True, text=True, check=False)
            assert (module.returncode, module.stdout, module.stderr) == (command.returncode, command.stdout, command.stderr)
