"""Pictures of reports as SVG text, the same bytes for the same content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int
from matplotlib.figure import Figure

from stmlang.draw.picture import ACCENT, INK, MARK, svg

AXIS = 3.6, 2.6
"""Inches of one of several axes side by side."""
ACROSS = 2


def curves(records: Sequence[Mapping[str, Any]]) -> str:
    """Each measure of a log by step, those of validations over those of training where both have it."""
    training = [record for record in records if "validation" not in record]
    validations = [{"step": record["step"], **record["validation"]} for record in records if "validation" in record]
    names = [*dict.fromkeys(name for record in (*training, *validations) for name in record if name not in ("step", "rate"))]
    names.append("rate")

    def draw(figure: Figure) -> None:
        axes = figure.subplots(-(-len(names) // ACROSS), ACROSS, squeeze=False).ravel()
        for axis in axes[len(names) :]:
            axis.set_axis_off()
        for axis, name in zip(axes, names, strict=False):
            for source, color, label in ((training, ACCENT, "training"), (validations, MARK, "validation")):
                lines = [record for record in source if name in record]
                if lines:
                    axis.plot([line["step"] for line in lines], [line[name] for line in lines], color=color, label=label)
            axis.set(xlabel="step", ylabel="learning rate" if name == "rate" else name)
            if len(axis.lines) > 1:
                axis.legend(frameon=False)

    return svg(draw, AXIS[0] * ACROSS, AXIS[1] * -(-len(names) // ACROSS))


def confusion(matrix: Int[np.ndarray, "label label"], what: str) -> str:
    """How often each label was taken for each other; `what` they are."""

    def draw(figure: Figure) -> None:
        axis = figure.subplots()
        axis.imshow(matrix, cmap="Blues", vmin=0, vmax=float(matrix.max()))
        for (row, col), count in np.ndenumerate(matrix):
            if count:
                light = count > matrix.max() / 2
                axis.text(col, row, str(count), ha="center", va="center", fontsize=8, color="white" if light else INK)
        labels = range(len(matrix))
        axis.set(xlabel="predicted", ylabel=what, xticks=labels, yticks=labels)

    return svg(draw, 3.6, 3.6)
