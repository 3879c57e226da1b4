"""The extension for VS Code is packed by the ordinary tools, which npm brings."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "editors" / "vscode"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_packs(tmp_path: Path) -> None:
    """As its README says, in a copy. Skips where npm is not, or cannot reach its registry."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm")
    folder = tmp_path / "vscode"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix"))
    if subprocess.run([npm, "install", "--silent"], cwd=folder, capture_output=True, timeout=400).returncode:
        pytest.skip("npm could not fetch what packs extensions")
    done = subprocess.run([npm, "run", "package"], cwd=folder, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    (packed,) = folder.glob("*.vsix")
    held = set(zipfile.ZipFile(packed).namelist())
    assert {f"extension/{name}" for name in ("package.json", "dist/extension.js", "syntaxes/stm.tmLanguage.json")} <= held
    assert not any("node_modules" in name for name in held)
