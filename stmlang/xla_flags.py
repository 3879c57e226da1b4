"""A flag that keeps XLA's CPU backend from giving wrong numbers.

jaxlib 0.10.2 and 0.11.0 hand sums and products on CPUs to a library that sums some reductions wrongly (jax issue 39103) and
crashes on others of seven axes (39257, 40412). An empty list of fusion types switches that off. XLA reads its flags when the
first array is made, so this one is set when `stmlang` is imported; only where it is needed, since XLA aborts on flags that it
does not know.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

FLAG = "--xla_cpu_experimental_ynn_fusion_type="
AFFECTED = ("0.10.2", "0.11.0")


def affected() -> bool:
    """Whether the installed jaxlib is one that needs the flag. Reads one small file: `importlib.metadata` takes 50 ms."""
    spec = find_spec("jaxlib")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "version.py"
        found = re.search(r'^_version = "([^"]+)"', path.read_text() if path.exists() else "", re.MULTILINE)
        if found:
            return found[1] in AFFECTED
    return False


def guard() -> None:
    """Append the flag to `XLA_FLAGS` where it is needed, unless it is there with whatever value."""
    flags = os.environ.get("XLA_FLAGS", "")
    if FLAG not in flags and affected():
        os.environ["XLA_FLAGS"] = f"{flags} {FLAG}".strip()
