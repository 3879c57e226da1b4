"""The report's pictures, as SVG text."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from stmlang.experiments.digits.receptive import Field
from stmlang.experiments.digits.training import Epoch

INK, ACCENT, PALE = "#1f2933", "#0b6e99", "#c9d3dc"
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "stmlang",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def learning_curve(curve: Sequence[Epoch], accuracy: float) -> str:
    """Loss and accuracy by epoch, and the test accuracy as a line."""

    def draw(figure: Figure) -> None:
        epochs = range(1, len(curve) + 1)
        left, right = figure.subplots(1, 2)
        left.plot(epochs, [epoch.loss for epoch in curve], color=ACCENT)
        left.set(xlabel="epoch", ylabel="training loss", ylim=(0, None))
        right.plot(epochs, [100 * epoch.accuracy for epoch in curve], color=ACCENT, label="training, as augmented")
        right.axhline(100 * accuracy, color=INK, linewidth=0.8, linestyle="--", label="test, at the end")
        right.set(xlabel="epoch", ylabel="accuracy, %", ylim=(None, 100.5))
        right.legend(frameon=False, loc="lower right")

    return _svg(draw, 7.2, 2.6)


def receptive(field: Field) -> str:
    """A picture for each head: how much of what the marked node writes arrives where. Each head has a scale of its own."""

    def draw(figure: Figure) -> None:
        heads = field.reach.shape[-1]
        for head, axis in enumerate(figure.subplots(1, heads, squeeze=False)[0]):
            reach = _without_source(field, head)
            most = float(np.abs(reach).max()) or 1.0
            axis.imshow(reach, cmap="RdBu_r", vmin=-most, vmax=most)
            axis.plot(field.source[1], field.source[0], marker="s", color=INK, markersize=3)
            axis.set_title(f"head {head + 1}, up to {most:.1e}", fontsize=8)
            axis.set(xticks=[], yticks=[])

    return _svg(draw, 1.8 * field.reach.shape[-1], 2.1)


def _without_source(field: Field, head: int) -> Float[np.ndarray, "rows cols"]:
    """One head's field, without the direct term at the source itself."""
    reach = field.reach[..., head].copy()
    reach[field.source] = 0
    return reach


def confusion(matrix: Int[np.ndarray, "digit digit"]) -> str:
    """How often each digit was taken for each other."""

    def draw(figure: Figure) -> None:
        axis = figure.subplots()
        axis.imshow(matrix, cmap="Blues", vmin=0, vmax=float(matrix.max()))
        for (row, col), count in np.ndenumerate(matrix):
            if count:
                light = count > matrix.max() / 2
                axis.text(col, row, str(count), ha="center", va="center", fontsize=8, color="white" if light else INK)
        digits = range(len(matrix))
        axis.set(xlabel="predicted", ylabel="digit", xticks=digits, yticks=digits)

    return _svg(draw, 3.6, 3.6)


def _svg(draw: Callable[[Any], None], width: float, height: float) -> str:
    """A picture as SVG text, the same bytes for the same content."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    text = buffer.getvalue()
    return text[text.index("<svg") :]
