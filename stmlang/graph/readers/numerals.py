"""Numbers as texts write them."""

from __future__ import annotations

import re

from stmlang.graph.readers.text import GraphFile, Place

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan", re.ASCII | re.IGNORECASE)


def number(file: GraphFile, text: str, what: str, at: Place | None) -> float:
    """A number. Refuses anything else (STM3403)."""
    if NUMBER.fullmatch(text) is None:
        help = "write it with a decimal point" if NUMBER.fullmatch(text.replace(",", ".")) else None
        file.refuse("STM3403", f"the {what}, `{text}`, is no number", at, help)
    return float(text)
