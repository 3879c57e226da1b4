"""The CPU's measured record: a small JSON file in the user's cache, one for each machine and set of versions.

    {"schema": 1,
     "key": {"machine": ..., "processor": ..., "cores": 2, "python": "3.11", "jax": "0.10.2", "jaxlib": "0.10.2"},
     "target": {"matmul": {"float32": ..., "float64": ..., "bfloat16": ...}, "vector": ..., "bandwidth": ...,
                "step_overhead": ..., "op_overhead": ..., "product_overhead": ..., "compile_seconds": ..., "memory": ...}}

Rates per second and overheads in seconds, as in `Target`. Measuring needs jax, and so is done elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

from stmlang.cost.cache import cache_folder, installed, read_json, write_json
from stmlang.cost.target import CPU, Target
from stmlang.log import CACHE

SCHEMA = 1
RATES = ("vector", "bandwidth", "step_overhead", "op_overhead", "product_overhead", "compile_seconds")

LEAST, MOST = 1e-15, 1e24
"""Between them lie all rates and overheads that a machine can have."""
LEAST_MEMORY = 2**24
"""No machine that Python runs on has fewer bytes."""


def machine_key() -> dict[str, str | int]:
    """What a measurement depends on."""
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": usable_cores(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "jax": installed("jax"),
        "jaxlib": installed("jaxlib"),
    }


def usable_cores() -> int:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def path(key: dict[str, str | int] | None = None) -> Path:
    """Where the record of a machine lies."""
    text = json.dumps(machine_key() if key is None else key, sort_keys=True)
    return cache_folder() / f"cpu-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def save(target: Target) -> Path:
    """Write a measured CPU record, whole or not at all: other processes read either the old file or the new one."""
    key = machine_key()
    record: dict[str, Any] = {name: getattr(target, name) for name in RATES}
    record |= {"matmul": dict(target.matmul), "memory": target.memory}
    place = path(key)
    write_json(place, {"schema": SCHEMA, "key": key, "target": record})
    return place


def load() -> Target | None:
    """This machine's measured record, or None where there is none or it cannot be trusted (another schema, a broken file)."""
    key = machine_key()
    place = path(key)
    target = _read(place, key)
    CACHE.info("rates of this machine: %s, %s", "none measured" if target is None else "measured", place)
    return target


def _read(place: Path, key: dict[str, str | int]) -> Target | None:
    try:
        stored = read_json(place)
        if stored["schema"] != SCHEMA or stored["key"] != key:
            return None
        record = stored["target"]
        rates = {name: _positive(record[name]) for name in RATES}
        matmul = {name: _positive(record["matmul"][name]) for name in CPU.matmul}
        memory = int(_positive(record["memory"]))
        if memory < LEAST_MEMORY:
            return None
        return replace(CPU, matmul=matmul, memory=memory, measured=True, **rates)
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None


def _positive(value: Any) -> float:
    """A number that a machine can have; ValueError otherwise."""
    number = float(value)
    if not LEAST < number < MOST:
        raise ValueError(f"{value} is not a rate")
    return number


def _processor() -> str:
    """The processor's model name; Python's own answer is empty on Linux."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
