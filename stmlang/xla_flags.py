"""Flags for XLA's CPU backend: one that keeps it from giving wrong numbers, and two that make it compile faster.

jaxlib 0.10.2 and 0.11.0 hand sums and products on CPUs to a library that sums some reductions wrongly (jax issue 39103) and
crashes on others of seven axes (39257, 40412). An empty list of fusion types switches that off. XLA reads its flags when the
first array is made, so this one is set when `stmlang` is imported, and who imports it later is told; only where it is needed,
since XLA aborts on flags that it does not know.

Without its fusion emitters XLA compiles a small scan in half the time, to a slower program, and a tenth faster in one piece
than in several at once: that is for processes that run each program once, and is never set for a user's.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

FLAG = "--xla_cpu_experimental_ynn_fusion_type="
AFFECTED = ("0.10.2", "0.11.0")
HASTE = {"--xla_cpu_use_fusion_emitters=": "false", "--xla_cpu_parallel_codegen_split_count=": "1"}
HASTENED = ("0.10.2",)
"""Versions that are known to know the flags of `HASTE`."""


def affected() -> bool:
    """Whether the installed jaxlib is one that needs the flag."""
    return _jaxlib() in AFFECTED


def _jaxlib() -> str | None:
    """The installed version of jaxlib. Reads one small file: `importlib.metadata` takes 50 ms."""
    spec = find_spec("jaxlib")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "version.py"
        found = re.search(r'^_version = "([^"]+)"', path.read_text() if path.exists() else "", re.MULTILINE)
        if found:
            return found[1]
    return None


def guard() -> None:
    """Append the flag to `XLA_FLAGS` where it is needed, unless it is there with whatever value; warn if that is too late."""
    flags = os.environ.get("XLA_FLAGS", "")
    if FLAG not in flags and affected():
        os.environ["XLA_FLAGS"] = f"{flags} {FLAG}".strip()
        if _reads_no_more():
            message = (
                f"jaxlib {_jaxlib()} sums some arrays wrongly on CPUs, and JAX has begun to compute before stmlang could "
                f"switch that off: import stmlang before the first array is made, or start Python with {FLAG} in XLA_FLAGS"
            )
            warnings.warn(message, RuntimeWarning, stacklevel=3)


def _reads_no_more() -> bool:
    """Whether JAX computes on CPUs already, with the flags that it has read."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    initialized = getattr(bridge, "backends_are_initialized", None)  # JAX does not tell in public
    return initialized is not None and initialized() and sys.modules["jax"].default_backend() == "cpu"


def hasten() -> None:
    """Have this process compile faster, where its XLA can; before the first array is made."""
    flags = os.environ.get("XLA_FLAGS", "")
    if _jaxlib() in HASTENED:
        new = [flag + value for flag, value in HASTE.items() if flag not in flags]
        os.environ["XLA_FLAGS"] = " ".join([*flags.split(), *new])
