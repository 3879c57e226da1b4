"""The device's record for the cost model, measured, beside the one that comes from its data sheet."""

from __future__ import annotations

from typing import Any, cast

from benchmarks.gpu.settings import Options

SHARE, TITLE = 0.05, "The device's record"
ENVIRONMENT: dict[str, str] = {}
HEADER = ("rate", "measured", "of the record", "unit")
UNITS = {
    "matmul": "flop/s",
    "vector": "flop/s",
    "bandwidth": "bytes/s",
    "step_overhead": "s",
    "op_overhead": "s",
    "product_overhead": "s",
    "compile_seconds": "s per instruction",
    "memory": "bytes",
}


def cases(options: Options) -> list[str]:
    from stmlang.runtime.calibrate import GPU_SIZES, SMALLEST_SIZES, measurements

    return list(measurements(SMALLEST_SIZES if options.dry else GPU_SIZES))


def measure(case: str, options: Options) -> dict[str, Any]:
    """One measurement, with the fields of the record that it gives."""
    from stmlang.compiler import machine
    from stmlang.runtime.calibrate import GPU_SIZES, SMALLEST_SIZES, measurements

    found = measurements(SMALLEST_SIZES if options.dry else GPU_SIZES)[case]()
    record = machine("auto")
    known = {name: getattr(record, name) for name in found}
    known = {name: {kind: value[kind] for kind in found[name]} if name == "matmul" else value for name, value in known.items()}
    return {"measured": found, "record": record.name, "of_record": known}


def row(case: str, found: dict[str, Any]) -> tuple[str, ...]:
    measured, known = _shown(found["measured"]), _shown(found["of_record"])
    return case, measured, f"{known} ({found['record']})", ", ".join(UNITS[name] for name in found["measured"])


def _shown(fields: dict[str, Any]) -> str:
    values: list[Any] = []
    for value in fields.values():
        values += list(cast(dict[str, Any], value).values()) if isinstance(value, dict) else [value]
    return ", ".join(f"{value:.3g}" for value in values)
