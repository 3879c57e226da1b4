"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def run(command: str) -> str:
    words = shlex.split(command.removeprefix(".venv/bin/stmlang "))
    done = subprocess.run(
        [sys.executable, "-m", "stmlang", *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


@pytest.mark.parametrize("block", blocks("python"))
def test_python_runs(block: str) -> None:
    found: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), found)
    assert getattr(found["y"], "shape", None) == (8, 14, 14, 192)
    assert getattr(found["G"], "shape", None) == (14, 14, 14, 14, 3)


def test_python_of_the_document_on_graphs_runs() -> None:
    text = (ROOT / "docs" / "graphs.md").read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/graphs.md", "exec"), found)
    assert (found["first"].shape, found["second"].shape) == ((5, 16), (3, 16))
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(found["slope"]))
    assert any(bool(leaf.any()) for leaf in jax.tree.leaves(found["slope"]))


def test_python_of_the_document_on_blocks_runs() -> None:
    found: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "blocks.md").read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/blocks.md", "exec"), found)
    assert float(jnp.abs(found["stepped"] - found["y"]).max()) < 1e-5
    assert found["image"].shape == (6, 5, 32)
    assert found["logits"].shape == found["transformer"](found["text"]).shape == (40, 65)
    assert found["written"].shape == (30,)


def test_python_of_the_document_on_vision_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "vision.md").read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/vision.md", "exec"), found)
    assert found["logits"].shape == (5, 10)
    assert found["larger"].position.shape == (6, 4, 32)
    assert bool((found["again"].head.weight == found["model"].head.weight).all())
    assert float(jnp.abs(found["served"] - found["logits"]).max()) < 1e-5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.safetensors", "vis.stmx"]


def test_python_of_the_document_on_training_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "training.md").read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/training.md", "exec"), found)
    assert float(found["difference"]) < 1e-6
    assert found["low"].dtype == jnp.bfloat16
    assert found["logits"].shape == (5, 10)
    assert int(found["done"]) == 3
    assert float(jnp.abs(found["short"] - found["alone"]).max()) < 1e-6
    assert float(jnp.abs(found["written"] - found["again"]).max()) < 1e-5
    assert float(jnp.abs(found["together"][:50] - found["alone"]).max()) < 1e-6
    assert float(jnp.abs(found["served"] - found["logits"]).max()) < 1e-5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.eqx", "digits.stmx"]


@pytest.mark.parametrize("block", blocks("console"))
def test_console_shows_what_the_command_prints(block: str) -> None:
    """Word by word, except for the figures of candidates: they depend on the machine."""
    command, *lines = block.splitlines()
    printed = run(command.removeprefix("$ "))
    for line in lines:
        if line in ("...", ""):
            continue
        row = re.match(r">? *([a-z_]+(?: \w+=\S+)*) +\d", line)
        wanted = row[1] if row else line.split("  ")[0] if line.startswith(("plan:", "   candidate")) else line
        assert wanted in printed, line


def test_commands_in_the_table_exist() -> None:
    shown = set(re.findall(r"^\| `stmlang (\w+)", README, re.MULTILINE))
    listed = set(re.findall(r"^    (\w+)(?:  |$)", run("--help"), re.MULTILINE))
    assert shown == listed


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
