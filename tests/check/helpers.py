"""Short ways to check a text."""

from __future__ import annotations

from typing import Any

from stmlang.check import load
from stmlang.scan.scan import Scan
from stmlang.source.diagnostic import SpecError


def scan_of(body: str, *, on: str = "chain(time)", head: str = "", before: str = "", **settings: Any) -> Scan:
    """The scan with a body, on a topology, with a source and a transition unless the body has its own."""
    for name in ("source", "transition"):
        if not any(line.strip().startswith(name) for line in body.split("\n")):
            body += f"\n{name} = 0.5"
    return load(f"{before}\nscan s{head} on {on} {{\n{body}\n}}\n", settings)


def codes(body: str, **more: Any) -> list[str]:
    """The codes of what is wrong with such a scan."""
    try:
        scan_of(body, **more)
    except SpecError as error:
        return [one.code for one in error.diagnostics]
    return []
