"""Nodes and cycles in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, those that occur more than once followed by their node's number counted from one."""
    count = Counter(names)
    return tuple(name if count[name] == 1 else f"{name} #{node}" for node, name in enumerate(names, 1))


SHOWN = 12
"""A longer cycle is shown with its middle left out."""


def cycle_text(steps: Sequence[str]) -> str:
    """The names of the nodes along a cycle, back to the first: `a -> b -> a`."""
    names = list(steps)
    if len(names) > SHOWN:
        names[SHOWN // 2 : -SHOWN // 2] = [f"... ({len(names) - SHOWN} more) ..."]
    return " -> ".join([*names, names[0]])
