"""`stmlang new --project`: a project for every topology and architecture, each of which is right and learns."""

from __future__ import annotations

import math
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import pytest

from stmlang.check import library_specs
from stmlang.cli.new import KINDS
from stmlang.cli.project import BLOCKS
from stmlang.models import blocks
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]

SPECS = [name for name in library_specs() if name != "gates"]
FILES = ["model.py", "test_model.py", "train.py"]
QUICK = {"chain", "dag", "graphs", "chain/deltaproduct", "chain/v2m", "chain/vil"}
"""One of each form of the texts: nothing more, features of edges, graphs at run time, something given, two scans, a block with
its own norms."""
Made = Callable[[str], Path]


@pytest.fixture
def made(stmlang: Any, tmp_path: Path) -> Made:
    """A new project of a kind, or of a spec of the library."""

    def make(what: str) -> Path:
        folder = tmp_path / "mine"
        result = stmlang("new", folder, "--project", "--kind" if what in KINDS else "--from", what)
        assert result.status == 0, result.err
        assert result.out.splitlines()[0] == f"wrote {folder}: mine.stm, model.py, train.py, test_model.py"
        return folder

    return make


@pytest.mark.parametrize("what", [*KINDS, *SPECS])
def test_every_project_is_written_whole(stmlang: Any, made: Made, what: str) -> None:
    folder = made(what)
    assert sorted(path.name for path in folder.iterdir()) == ["mine.stm", *FILES]
    assert stmlang("check", folder / "mine.stm").status == 0
    for name in FILES:
        text = (folder / name).read_text(encoding="utf-8")
        compile(text, name, "exec")
        assert not re.search(r"<[a-z ]+>", text)
        assert max(map(len, text.splitlines())) <= 128


def test_every_block_has_its_architecture() -> None:
    parts = {"Mixer", "Reversed", "Transposed", "Summed", "Raster", "EachRow", "RWKV6", "ChannelMixing"}
    assert {block.name for block in BLOCKS.values()} == set(blocks.__all__) - parts - {"Vim"}
    assert set(BLOCKS) <= set(SPECS)


@pytest.mark.parametrize(
    "what", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in [*KINDS, *SPECS]]
)
def test_its_model_learns(made: Made, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A step on few examples, which changes every parameter to finite values."""
    monkeypatch.syspath_prepend(made(what))
    for name in ("model", "train"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import model  # pyright: ignore[reportMissingImports]

    monkeypatch.setattr(model, "DEPTH", 1)
    train = runpy.run_path(str(Path(model.__file__).with_name("train.py")))
    monkeypatch.setitem(train["inputs"].__globals__, "BATCH", 2)
    trained, losses = train["train"](1)
    assert all(map(math.isfinite, losses))
    new = jax.tree.leaves(eqx.filter(trained, eqx.is_inexact_array))
    old = jax.tree.leaves(eqx.filter(model.Model(jax.random.key(0)), eqx.is_inexact_array))
    assert all(bool(jax.numpy.isfinite(one).all()) for one in new)
    assert any(bool((one != other).any()) for one, other in zip(new, old, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("what", ["chain", "graphs", "chain/mamba"])
def test_its_own_tests_pass(made: Made, what: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(made(what))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_nothing_is_written_over(stmlang: Any, made: Made) -> None:
    folder = made("chain")
    (folder / "model.py").write_text("mine")
    result = stmlang("new", folder, "--project")
    assert (result.status, "STM5102" in result.err) == (1, True)
    assert (folder / "model.py").read_text() == "mine"


def test_what_cannot_be_written_leaves_nothing(stmlang: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "STM5101" in stmlang("new", tmp_path / "no" / "mine", "--project").err
    from stmlang.cli import files

    def full(path: Path, _: str) -> None:
        if path.name == "train.py":
            raise files.cannot_write(path, OSError(28, "No space left on device"))

    monkeypatch.setattr(files, "create_text", full)
    assert "no space left" in stmlang("new", tmp_path / "mine", "--project").err
    assert not list(tmp_path.iterdir())
