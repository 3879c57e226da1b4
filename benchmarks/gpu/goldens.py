"""Vectors of the authors' implementations, by the tests that compare with them, on this device.

They need the data that does not travel with the package: without STMLANG_DATA every test is left out, and the table says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks.gpu.settings import Options

SHARE, TITLE = 0.2, "Goldens"
ENVIRONMENT: dict[str, str] = {}
HEADER = ("tests", "passed", "failed", "left out", "")
FOLDER = Path(__file__).parents[2] / "tests" / "golden"
DRY = "test_zoo"
"""Of a dry run one file, and of it one test."""
TIMEOUT = 900


def cases(options: Options) -> list[str]:
    names = sorted(path.stem for path in FOLDER.glob("test_*.py"))
    return [DRY] if options.dry else names


def measure(case: str, options: Options) -> dict[str, Any]:
    """What the tests of a file say, run in a process of their own."""
    report = options.out / f"{case}.xml"
    path = FOLDER / f"{case}.py"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"--junitxml={report}", str(path)]
    command += ["--collect-only"] if options.dry else ["-m", "not slow"]
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "1"}
    done = subprocess.run(
        command, cwd=FOLDER.parents[1], env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    counts = _counts(report)
    tail = "" if done.returncode == 0 else done.stdout[-2000:]
    return {**counts, "status": done.returncode, "said": tail, "ok": done.returncode == 0}


def _counts(report: Path) -> dict[str, int]:
    """What pytest wrote of a run."""
    if not report.exists():
        return {"passed": 0, "wrong": 0, "skipped": 0}
    suite = ElementTree.parse(report).getroot().find("testsuite")
    report.unlink()
    told = dict[str, str]() if suite is None else suite.attrib
    failed, skipped = int(told.get("failures", 0)) + int(told.get("errors", 0)), int(told.get("skipped", 0))
    return {"passed": int(told.get("tests", 0)) - failed - skipped, "wrong": failed, "skipped": skipped}


def row(case: str, found: dict[str, Any]) -> tuple[str, ...]:
    counts = (str(found[name]) for name in ("passed", "wrong", "skipped"))
    return case, *counts, "" if found["ok"] else "WRONG"
