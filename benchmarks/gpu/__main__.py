"""One command for a machine with an NVIDIA GPU: what it computes is right, and how fast it is.

    make gpu                        everything, in forty minutes; goes on where it was interrupted
    make gpu ARGS=--quick           the most important of it, in ten
    make gpu ARGS=--dry             every section at the smallest sizes, on a CPU too: times mean nothing
    make gpu ARGS='--sets FOLDER'   with NCI1 of a folder of TUDataset folders instead of molecules drawn at random

Each section runs in a process of its own and has a share of the time. Writes build/gpu/report.json and build/gpu/gpu.md, after
every section. Exit status 1 where a number is wrong, or something could not be measured.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.gpu.report import gathered, write
from benchmarks.gpu.running import begin, left, run, work
from benchmarks.gpu.settings import SECTIONS, Options, section
from stmlang.ending import start


def main(arguments: list[str] | None = None) -> int:
    """Measure what is left, write the files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description="What a GPU does with stmlang.")
    parser.add_argument("--out", type=Path, default=Path("build/gpu"), help="folder to write to")
    parser.add_argument("--dry", action="store_true", help="the smallest sizes, on whatever is there")
    parser.add_argument("--quick", action="store_true", help="the most important, in ten minutes")
    parser.add_argument("--sets", type=Path, help="a folder of TUDataset folders, NCI1 among them")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="this section; may be given several times")
    parser.add_argument("--anew", action="store_true", help="measure again what was measured")
    parser.add_argument("--work", choices=SECTIONS, help=argparse.SUPPRESS)
    parser.add_argument("--skip", action="append", default=[], help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    options = Options(asked.out.absolute(), asked.dry, asked.quick, None if asked.sets is None else asked.sets.absolute())
    if asked.work:
        work(options, asked.work, tuple(asked.skip))
        return 0
    said = begin(options, anew=asked.anew)
    if said:
        print(said, file=sys.stderr)
    return measure_all(options, asked.only or SECTIONS)


def measure_all(options: Options, names: tuple[str, ...]) -> int:
    """Every section in its share of what is left of the time: what one does not need, the next ones have."""
    deadline, stopped = time.monotonic() + options.seconds, dict[str, str]()
    for number, name in enumerate(names):
        rest = sum(section(later).SHARE for later in names[number:])
        seconds = (deadline - time.monotonic()) * section(name).SHARE / rest
        print(f"{section(name).TITLE}: {len(left(options, name))} cases, {seconds:.0f} s", file=sys.stderr, flush=True)
        reason = run(options, name, seconds)
        if reason is not None:
            stopped[name] = reason
        report = gathered(options, stopped)
        write(options, report)
        if name == "device" and any(entry.startswith("device") for entry in report["bad"]):
            print(report["sections"]["device"]["machine"]["failed"], file=sys.stderr)
            return 1
    report = gathered(options, stopped)
    print(f"wrote {options.out / 'report.json'} and {options.out / 'gpu.md'}")
    for line in report["bad"]:
        print(f"wrong or failed: {line}")
    for name, cases in report["missing"].items():
        if name in names:
            print(f"not measured: {name}: {', '.join(cases)}")
    return 0 if not report["bad"] and not any(name in names for name in report["missing"]) else 1


if __name__ == "__main__":
    start(main, "benchmarks.gpu")
