"""The largest graphs that are numbered, and the refusal of larger ones before anything is allocated."""

from __future__ import annotations

import os

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


def refuse_above_memory(what: str, size: int, span: Span | None = None) -> None:
    """Raises SpecError (STM3305) if `size` bytes, a Python integer, are more than the machine has."""
    memory = host_memory()
    if memory is None or size <= memory:
        return
    raise SpecError(
        [
            Diagnostic(
                "STM3305",
                f"{what} take {size / 1e9:,.0f} GB; this machine has {memory / 1e9:,.0f} GB",
                span,
                help="make the topology smaller, or cut it and carry the state from one part to the next",
            )
        ]
    )


def host_memory() -> int | None:
    """Bytes of memory of this machine, None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
