"""Figures as text, the same bytes for the same content."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from stmlang.draw.picture import saved

COLOURS = ("#0b6e99", "#b3541e", "#7a8b2f", "#8c3b6d", "#c9a227", "#5b6670")
"""One for each model, in their order."""


def svg(draw: Callable[[Figure], None], width: float, height: float) -> str:
    """What `draw` puts on a figure of so many inches."""
    return saved(draw, width, height, "svg", "white").decode()
