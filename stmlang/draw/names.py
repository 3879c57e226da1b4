"""What pictures are called, and in which files they come: for those who only ask for them."""

from __future__ import annotations

from typing import Literal, get_args

What = Literal["topology", "gates", "receptive", "plan", "memory", "all"]
WHAT: tuple[What, ...] = get_args(What)
SUFFIXES = (".svg", ".png", ".html")
