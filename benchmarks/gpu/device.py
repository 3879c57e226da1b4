"""The machine that the figures are of."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from typing import Any, cast

from benchmarks.compile_time import machine
from benchmarks.gpu.settings import Options

SHARE, TITLE = 0.02, "The machine"
ENVIRONMENT: dict[str, str] = {}
HEADER = ("what", "is")


def cases(options: Options) -> list[str]:
    del options
    return ["machine"]


def measure(case: str, options: Options) -> dict[str, Any]:
    """What JAX and the driver say of the device. Raises RuntimeError where a GPU was asked for and JAX has none."""
    del case
    import jax

    backend, devices = jax.default_backend(), cast(list[Any], jax.devices())
    if not options.dry and backend != "gpu":
        raise RuntimeError(f"JAX runs on {backend} here, and finds no GPU: check `nvidia-smi`, or try `make gpu ARGS=--dry`")
    return {
        **machine(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "platform": backend,
        "device": str(devices[0].device_kind),
        "devices": len(devices),
        "driver": _driver(),
        "dry": options.dry,
    }


def row(case: str, found: dict[str, Any]) -> tuple[str, ...]:
    del case
    return ("device", ", ".join(f"{name} {value}" for name, value in found.items() if value not in (None, False)))


def _driver() -> str | None:
    """Names and versions as the driver's own tool has them, None without one."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip().replace("\n", "; ") or None
