"""The report's pictures, as SVG text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from stmlang.draw.picture import ACCENT, INK, MARK, svg
from stmlang.experiments.digits.receptive import Fields
from stmlang.experiments.digits.testing import Mistake

ACROSS = 6
"""Images in a row of mistaken ones: as many as a phone shows."""


def learning_curve(curve: Sequence[Mapping[str, Any]], accuracy: float) -> str:
    """Loss and accuracy by line of the log, an epoch each, and the test accuracy as a line."""

    def draw(figure: Figure) -> None:
        epochs = range(1, len(curve) + 1)
        left, right = figure.subplots(1, 2)
        left.plot(epochs, [epoch["loss"] for epoch in curve], color=ACCENT)
        left.set(xlabel="epoch", ylabel="training loss", ylim=(0, None))
        right.plot(epochs, [100 * epoch["accuracy"] for epoch in curve], color=ACCENT, label="training, as augmented")
        right.axhline(100 * accuracy, color=INK, linewidth=0.8, linestyle="--", label="test, at the end")
        right.set(xlabel="epoch", ylabel="accuracy, %", ylim=(None, 100.5))
        right.legend(frameon=False, loc="lower right")

    return svg(draw, 7.2, 2.6)


def seen(fields: Fields) -> str:
    """The image whose fields are shown, the squares of its tokens, and the node that writes."""

    def draw(figure: Figure) -> None:
        axis = figure.subplots()
        rows, cols = fields.layers[0].before.shape[:2]
        side = fields.pixels.shape[0]
        axis.imshow(fields.pixels[..., 0], cmap="Greys", extent=(0, cols, rows, 0), vmin=0, vmax=1)
        axis.set(xticks=range(cols + 1), yticks=range(rows + 1), xticklabels=[], yticklabels=[])
        axis.grid(color=ACCENT, linewidth=0.6)
        axis.tick_params(length=0)
        row, col = fields.layers[0].source
        axis.plot(col + 0.5, row + 0.5, marker="s", color=MARK, markersize=5)
        axis.set_title(f"a {fields.label}, {side}x{side} pixels", fontsize=8)

    return svg(draw, 1.9, 2.1)


def receptive(reach: Float[np.ndarray, "rows cols head"], source: tuple[int, int]) -> str:
    """A picture for each head, with its scale: how much of what the marked node writes arrives where. The direct term of the
    node itself is left out."""
    heads = reach.shape[-1]
    others = reach.copy()
    others[source] = 0

    def draw(figure: Figure) -> None:
        for head, axis in enumerate(figure.subplots(1, heads, squeeze=False)[0]):
            most = float(np.abs(others[..., head]).max()) or 1.0
            image = axis.imshow(others[..., head], cmap="RdBu_r", vmin=-most, vmax=most)
            axis.plot(source[1], source[0], marker="s", color=MARK, markersize=5)
            axis.set_title(f"head {head + 1}", fontsize=8)
            axis.set(xticks=[], yticks=[])
            scale = figure.colorbar(image, ax=axis, orientation="horizontal", ticks=(-most, 0, most))
            scale.ax.set_xticklabels([f"{-most:.0e}", "0", f"{most:.0e}"], fontsize=7)

    return svg(draw, 1.7 * heads, 2.3)


def mistaken(mistakes: Sequence[Mistake]) -> str:
    """Images that were taken for another digit, in the order given."""

    def draw(figure: Figure) -> None:
        rows = -(-len(mistakes) // ACROSS)
        axes = figure.subplots(rows, ACROSS, squeeze=False).ravel()
        for axis in axes:
            axis.set_axis_off()
        for axis, mistake in zip(axes, mistakes, strict=False):
            axis.imshow(mistake.pixels[..., 0], cmap="Greys", vmin=0, vmax=1)
            axis.set_title(f"{mistake.digit} as {mistake.predicted}\n{mistake.share:.0%}", fontsize=8)

    return svg(draw, 1.1 * ACROSS, 1.45 * -(-len(mistakes) // ACROSS))
