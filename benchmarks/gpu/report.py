"""What was found, for programs and for people: `report.json` and `gpu.md`."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.gpu.running import found
from benchmarks.gpu.settings import SECTIONS, Options, section
from stmlang.source.writing import written_whole

INTRODUCTION = """# What a GPU does with stmlang

Made by `make gpu`. Errors are relative to the largest number; times are medians of turns in one process, and so are ratios.
"""
DRY = """
**A dry run**: the smallest sizes, on whatever is there. It shows that every section runs; its times mean nothing.
"""


def gathered(options: Options, stopped: dict[str, str]) -> dict[str, Any]:
    """All results, and whether all that were judged are right and none is missing."""
    sections = {name: found(options, name) for name in SECTIONS}
    bad = [
        f"{name}: {case}"
        for name, cases in sections.items()
        for case, entry in cases.items()
        if "failed" in entry or entry.get("ok") is False
    ]
    missing = {
        name: [case for case in section(name).cases(options) if case not in cases]
        for name, cases in sections.items()
        if len(cases) < len(section(name).cases(options))
    }
    good = not bad and not missing
    return {"ok": good, "dry": options.dry, "bad": bad, "missing": missing, "stopped": stopped, "sections": sections}


def page(report: dict[str, Any]) -> str:
    """The report as Markdown, a table for each section."""
    parts = [INTRODUCTION + (DRY if report["dry"] else "")]
    for name, cases in report["sections"].items():
        module = section(name)
        lines = [f"## {module.TITLE}", ""]
        rows = [module.row(case, entry) for case, entry in cases.items() if "failed" not in entry]
        if rows:
            table = [module.HEADER, tuple("---" for _ in module.HEADER), *rows]
            lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in table]
            lines.append("")
        lines += [f"* {case} failed: {entry['failed']}" for case, entry in cases.items() if "failed" in entry]
        if name in report["missing"]:
            lines.append(f"* not measured: {', '.join(report['missing'][name])}")
        if name in report["stopped"]:
            lines.append(f"* {report['stopped'][name]}")
        parts.append("\n".join(lines).rstrip() + "\n")
    return "\n".join(parts)


def write(options: Options, report: dict[str, Any]) -> None:
    """Both files."""
    for name, text in (("report.json", json.dumps(report, indent=1)), ("gpu.md", page(report))):
        with written_whole(options.out / name) as file:
            file.write(text.encode())
