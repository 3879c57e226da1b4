"""How a scan is evaluated: predicted time, stage by stage, and memory, of the chosen way beside those that lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stmlang.cost import units
from stmlang.draw.picture import ACCENT, INK, MARK, PALE, Picture
from stmlang.draw.places import along
from stmlang.plan.plan import Plan, Ranked

MOST_CANDIDATES = 7
STAGES = ("#0b6e99", "#4fa3c7", "#d9822b", "#8a6fb0", "#5b8c5a", "#b5495b", "#7b8794", "#c2a83e")
BAR = 0.36
"""Inches of a bar and the space behind it."""
TOO_LONG = 4.0
"""A bar that is longer than the chosen one's by this factor is cut off, and said to be."""


def plan_picture(plan: Plan) -> Picture:
    """A bar for each candidate, its stages behind each other: a timeline of one call as the planner predicts it. On grids of
    two axes the tiles of the chosen way stand beside it."""
    entries = _shown(plan)
    limit = TOO_LONG * plan.chosen.seconds
    stages = list(dict.fromkeys(time.stage.name for time in plan.chosen.times if time.total > 0.01 * plan.chosen.seconds))
    colors = dict(zip(stages, STAGES, strict=False))
    tile, axes = plan.config.get("tile"), plan.circumstances.axes
    tiled = isinstance(tile, tuple) and axes is not None and len(axes) == 2

    def draw(figure: Any) -> None:
        parts = figure.subplots(1, 2, width_ratios=(4, 1)) if tiled else (figure.subplots(), None)
        _bars(parts[0], entries, plan, limit, colors)
        if parts[1] is not None and axes is not None and isinstance(tile, tuple):
            _tiles(parts[1], axes, tile)

    circumstances = plan.circumstances
    caption = (
        f"Predicted milliseconds of a call in {circumstances.mode} on {plan.target.name}, batch {circumstances.batch}, stage "
        f"by stage; at the top the chosen way, {plan.chosen.candidate.label}. Stages that only others have are grey."
    )
    hidden = len(plan.ranked) - len(entries)
    caption += f" {hidden} slower ones are not drawn." if hidden else ""
    return Picture("plan", caption, 9.0 if tiled else 8.0, BAR * len(entries) + 1.2, draw)


def memory_picture(plan: Plan) -> Picture:
    """Predicted peak memory of the same candidates, in training and in inference, beside the limit."""
    entries = _shown(plan)
    limit = plan.circumstances.memory_limit

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for place, entry in enumerate(entries):
            candidate = entry.estimate.candidate
            axis.barh(place - 0.18, candidate.memory_backward, 0.32, color=MARK, label="training" if place == 0 else None)
            axis.barh(place + 0.18, candidate.memory_forward, 0.32, color=ACCENT, label="inference" if place == 0 else None)
        axis.axvline(limit, color=INK, linewidth=1, linestyle="--", label=f"limit, {units.size(limit)}")
        axis.set(xscale="log", xlabel="bytes")
        _labels(axis, entries)
        axis.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 1.18), ncols=3)

    caption = "Predicted peak memory of a call, inputs and outputs included."
    return Picture("memory", caption, 8.0, BAR * len(entries) + 1.2, draw)


def _shown(plan: Plan) -> list[Ranked]:
    """The chosen candidate, then the fastest others."""
    chosen = [entry for entry in plan.ranked if entry.estimate.candidate == plan.chosen.candidate]
    others = [entry for entry in plan.ranked if entry.estimate.candidate != plan.chosen.candidate]
    return [*chosen, *others][:MOST_CANDIDATES]


def _bars(axis: Any, entries: Sequence[Ranked], plan: Plan, limit: float, colors: Mapping[str, str]) -> None:
    for place, entry in enumerate(entries):
        left = 0.0
        for time in entry.estimate.times:
            length = min(time.total, limit - left)
            if length <= 0:  # a stage that costs nothing, or one behind the cut
                continue
            name = time.stage.name
            axis.barh(place, 1e3 * length, 0.7, 1e3 * left, color=colors.get(name, PALE), edgecolor="white", linewidth=0.4)
            left += length
        cut = "..." if entry.estimate.seconds > limit else ""
        axis.text(1e3 * left, place, f" {cut} {units.seconds(entry.estimate.seconds)}", va="center", fontsize=7)
    for name, color in colors.items():
        axis.barh(0, 0, color=color, label=name)
    axis.set(xlabel="ms", xlim=(0, 1.18e3 * min(limit, max(entry.estimate.seconds for entry in entries))))
    _labels(axis, entries)
    if plan.target.coefficients.measured is False:
        axis.set_title("costs not measured on this platform", fontsize=8, loc="right")
    axis.legend(frameon=False, fontsize=7, ncols=4, loc="upper center", bbox_to_anchor=(0.45, -0.28 - 0.1 / len(entries)))


def _labels(axis: Any, entries: Sequence[Ranked]) -> None:
    names = [entry.estimate.candidate.label + ("" if entry.fits else " (too large)") for entry in entries]
    axis.set_yticks(range(len(entries)), names, fontsize=8)
    axis.invert_yaxis()
    axis.spines[["top", "right"]].set_visible(False)


def _tiles(axis: Any, axes: tuple[int, ...], tile: tuple[int, ...]) -> None:
    """The grid's nodes as dots, and the tiles around them."""
    rows, row_at = along(axes[0])
    cols, col_at = along(axes[1])
    axis.scatter(col_at * len(row_at), [place for place in row_at for _ in col_at], s=4, color=ACCENT)
    for index, at in zip(rows, row_at, strict=True):
        if index % tile[0] == 0:
            axis.axhline(at - 0.5, color=INK, linewidth=0.7)
    for index, at in zip(cols, col_at, strict=True):
        if index % tile[1] == 0:
            axis.axvline(at - 0.5, color=INK, linewidth=0.7)
    axis.set(aspect="equal", title=f"tiles of {tile[0]}x{tile[1]}")
    axis.title.set_fontsize(8)
    axis.invert_yaxis()
    axis.set_axis_off()
