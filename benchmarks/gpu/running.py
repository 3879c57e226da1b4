"""Sections in processes of their own, case by case, each kept when it is done: what is interrupted goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu.settings import Options, section
from stmlang.source.writing import written_whole

STARTS = 4
"""A process that ends without having said why is started anew so often, with the case that it was at left out."""
GRACE = 10.0
"""Seconds in which a process that is told to stop has to."""


def kept(options: Options, name: str, case: str) -> Path:
    """Where what a case gave is kept."""
    return options.out / "cases" / name / f"{case.replace(' ', '_')}.json"


def found(options: Options, name: str) -> dict[str, dict[str, Any]]:
    """What is there of a section, by case."""
    paths = {case: kept(options, name, case) for case in section(name).cases(options)}
    return {case: json.loads(path.read_text()) for case, path in paths.items() if path.exists()}


def left(options: Options, name: str) -> list[str]:
    """The cases of a section that have no result yet; those that failed are tried again."""
    known = found(options, name)
    return [case for case in section(name).cases(options) if case not in known or "failed" in known[case]]


def work(options: Options, name: str, skip: tuple[str, ...] = ()) -> None:
    """Measure what is left of a section, in this process."""
    module = section(name)
    for case in left(options, name):
        if case in skip:
            continue
        _write(options.out / "now", case)
        try:
            result = module.measure(case, options)
        except Exception as error:  # one case that a device cannot do keeps no other from being measured
            reason = str(error).strip() or type(error).__name__
            result = {"failed": f"{type(error).__name__}: {reason.splitlines()[0]:.300}"}
        _write(kept(options, name, case), json.dumps(result, indent=1))


def run(options: Options, name: str, seconds: float) -> str | None:
    """Measure what is left of a section in processes that may take so long together. What kept it from an end, or None."""
    deadline, lost = time.monotonic() + seconds, list[str]()
    for _ in range(STARTS):
        cases = [case for case in left(options, name) if case not in lost]
        if not cases:
            return None
        status = _process(options, name, lost, deadline - time.monotonic())
        if status is None:
            return f"{len(left(options, name))} cases left when its {seconds:.0f} s were over"
        if status == 0:
            return None
        lost.append((options.out / "now").read_text() if (options.out / "now").exists() else cases[0])
        _write(kept(options, name, lost[-1]), json.dumps({"failed": f"its process ended with status {status}"}))
    return f"its process ended {STARTS} times"


def _process(options: Options, name: str, lost: list[str], seconds: float) -> int | None:
    """The status of a process that measures, None where it had to be stopped."""
    if seconds <= 0:
        return None
    command = [sys.executable, "-m", "benchmarks.gpu", "--work", name, *arguments(options)]
    command += [word for case in lost for word in ("--skip", case)]
    child = subprocess.Popen(command, env=environment(options, name), cwd=Path(__file__).parents[2])
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _stop(child)


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def environment(options: Options, name: str) -> dict[str, str]:
    """What the process of a section is given: JAX on the GPU, in a dry run on what it finds, and no memory taken ahead, since
    some sections start processes beside theirs."""
    wanted = {} if options.dry else {"JAX_PLATFORMS": "cuda,cpu"}
    return {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **wanted, **section(name).ENVIRONMENT}


def arguments(options: Options) -> Iterator[str]:
    """The options as a command line."""
    yield from ("--out", str(options.out))
    yield from ("--dry",) if options.dry else ()
    yield from ("--quick",) if options.quick else ()
    yield from () if options.sets is None else ("--sets", str(options.sets))


def begin(options: Options, *, anew: bool) -> str | None:
    """Make the folder. Results of a run of another kind are taken away, which is said."""
    about = options.out / "about.json"
    wanted = {"dry": options.dry, "quick": options.quick, "sets": None if options.sets is None else str(options.sets)}
    before = json.loads(about.read_text()) if about.exists() else wanted
    said = None
    if anew or before != wanted:
        shutil.rmtree(options.out / "cases", ignore_errors=True)
        said = None if anew else "what was there is of a run with other options, and is measured anew"
    _write(about, json.dumps(wanted))
    return said


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(text.encode())
