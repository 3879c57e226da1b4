"""The largest graphs that are numbered, and the refusal of larger ones before anything is allocated."""

from __future__ import annotations

from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import Span

LARGEST = 2**31 - 1
"""Nodes, edges, line edges and table entries are numbered in 32 bits on the device, so no count may pass this."""


def refuse_above_largest(what: str, count: int, span: Span | None = None) -> None:
    """Raises SpecError (STM3303) if `count`, a Python integer of any size, passes `LARGEST`."""
    if count <= LARGEST:
        return
    shown = f"{count:,}" if count < 10**18 else "more than 10^18"
    raise SpecError(
        [
            Diagnostic(
                "STM3303",
                f"this topology has {shown} {what}, more than the {LARGEST:,} that can be numbered",
                span,
                help="make it smaller, or cut it and carry the state from one part to the next",
            )
        ]
    )
