"""The table of `benchmarks.strategies` as a figure: each row's ratio, and where its target is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

MET, MISSED, INK = "#2a7f62", "#c0392b", "#333333"


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Bars of ratios on a logarithmic axis, red where the target (a black mark) is missed."""
    figure = Figure(figsize=(8, 0.6 + 0.34 * max(1, len(rows))), layout="constrained")
    axis = figure.subplots()
    places = range(len(rows))
    colors = [MET if row["met"] else MISSED for row in rows]
    axis.barh(places, [row["ratio"] for row in rows], color=colors, height=0.6)
    axis.scatter([row["target"] for row in rows], places, marker="|", s=220, color=INK, label="target", zorder=3)
    for place, row in zip(places, rows, strict=True):
        axis.annotate(f" {row['ratio']:.2f}", (row["ratio"], place), va="center", fontsize=8, color=INK)
    axis.set_yticks(places, [f"{row['name']}, {row['passes']}" for row in rows], fontsize=8)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel("time over that of softmax attention (flat rows: time per node over that of the smaller grid)", fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="lower right", fontsize=8, frameon=False)
    figure.savefig(path)
