"""A newcomer's path in a fresh environment that has the wheel, and besides it only what the wheel asks for."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.test_package import tree, wheel

__all__ = ["tree", "wheel"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_newcomers_path(wheel, tmp_path: Path) -> None:
    """The environment is new; what the wheel depends on is looked up in the one that runs the tests: nothing is fetched."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "fresh")], check=True, timeout=300)
    python = tmp_path / "fresh" / "bin" / "python"
    asked = "import site; print(site.getsitepackages()[0])"
    place = Path(subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.strip())
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(place)]
    subprocess.run([*install, str(wheel.filename)], check=True, timeout=300)
    (place / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(Path(__file__).parent / "newcomer.py", home)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "STMLANG", "JAX"))}
    where = subprocess.run(
        [python, "-c", "import stmlang; print(stmlang.__file__)"], cwd=home, env=kept, capture_output=True, text=True
    )
    assert Path(where.stdout.strip()).parent == place / "stmlang", where.stderr
    done = subprocess.run([python, "newcomer.py"], cwd=home, env=kept, capture_output=True, text=True, timeout=1700)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert said[:3] == [
        "wrote mine.stm",
        "mended mine.stm: ok (mine on a chain)",
        "mine.html: topology, gates, receptive field, plan, memory",
    ]
    assert {"mine.stm", "mine.html", "mine.stmx", "run.eqx"} <= {path.name for path in home.iterdir()}
