"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from stmlang.experiments.digits import figures
from stmlang.experiments.digits.receptive import Field, Fields
from stmlang.experiments.digits.settings import Settings
from stmlang.experiments.digits.testing import Mistake
from stmlang.experiments.training.figures import confusion
from stmlang.experiments.training.report import Choice, plan, settings_and_versions, table

TITLE = "Handwritten digits with pLSTM layers"
MISTAKES_SHOWN = 36


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the study came to: `plans` by spec, `artifacts` by file, `seconds` by stage, `digest` of the trained parameters."""

    settings: Settings
    accuracy: float
    right: int
    images: int
    parameters: int
    digest: str
    curve: Sequence[Mapping[str, Any]]
    confusion: Int[np.ndarray, "digit digit"]
    mistakes: Sequence[Mistake]
    fields: Fields
    plans: Mapping[str, Choice]
    artifacts: Mapping[str, str]
    seconds: Mapping[str, float]


def sections(outcome: Outcome) -> list[str]:
    """The report's sections, under `TITLE`."""
    return [
        *_summary(outcome),
        "<h2>Learning curve</h2>",
        figures.learning_curve(outcome.curve, outcome.accuracy),
        "<h2>Receptive fields, before and after training</h2>",
        *_fields(outcome.fields),
        "<h2>Which digits are mistaken</h2>",
        *_mistakes(outcome.mistakes),
        confusion(outcome.confusion, "digit"),
        "<h2>Plans</h2>",
        "<p>How each of the two scans is evaluated, and the ways that were weighed against it; times are predicted, for a "
        "batch and its gradients.</p>",
        *(line for name, choice in outcome.plans.items() for line in plan(name, choice)),
        "<h2>Artifacts</h2>",
        "<p>The two scans, without weights, for another process or another machine: <code>stmlang.load</code>.</p>",
        table(outcome.artifacts),
        "<h2>Seconds</h2>",
        table({name: f"{seconds:.1f}" for name, seconds in outcome.seconds.items()}),
        *settings_and_versions(outcome.settings, ("scikit-learn",)),
        f'<p class="muted">Parameters after training have the SHA-256 digest <code>{outcome.digest}</code>.</p>',
    ]


def _summary(outcome: Outcome) -> list[str]:
    settings = outcome.settings
    reached = "reached" if outcome.accuracy >= settings.target else "missed"
    overlap = ", so that they overlap" if settings.patch > settings.stride else ""
    return [
        f'<p class="figure">{outcome.accuracy:.2%}</p>',
        f"<p>{outcome.right} of {outcome.images} test images right; the target of {settings.target:.0%} is {reached}. "
        f"{outcome.parameters:,} parameters: {settings.pairs} pairs of a layer in P-mode and one in D-mode, each of "
        f"{settings.heads} heads and four directions. Patches of {settings.patch}x{settings.patch} pixels become tokens, every "
        f"{settings.stride} pixels{overlap}.</p>",
    ]


def _fields(fields: Fields) -> list[str]:
    """The image, and of each layer its heads before and after."""
    rows, cols = fields.layers[0].before.shape[:2]
    return [
        f"<p>Both layers of the first pair, on one test image, which is cut into {rows}x{cols} tokens. A map shows where what "
        "the marked token writes arrives, and with what factor: one row of the gating matrix, all directions summed. Red is "
        "positive, blue negative, white nothing; each map has a scale of its own, drawn below it. The token itself, which its "
        "direct term reaches, is left out.</p>",
        f"<figure>{figures.seen(fields)}<figcaption>what the network sees</figcaption></figure>",
        *(line for layer in fields.layers for line in _field(layer)),
    ]


def _field(field: Field) -> list[str]:
    return [
        f"<h3>{html.escape(field.layer)}</h3>",
        f"<figure>{figures.receptive(field.before, field.source)}<figcaption>before training</figcaption></figure>",
        f"<figure>{figures.receptive(field.after, field.source)}<figcaption>after training</figcaption></figure>",
    ]


def _mistakes(mistakes: Sequence[Mistake]) -> list[str]:
    if not mistakes:
        return ["<p>None of the test images.</p>"]
    shown = mistakes[:MISTAKES_SHOWN]
    which = "All" if len(shown) == len(mistakes) else f"The {len(shown)} surest of"
    return [
        f"<p>{which} {len(mistakes)} mistaken test images, the surest first: what was written, what it was taken for, and how "
        "probable the model held that to be. Below, how often each digit was taken for each other.</p>",
        f"<div>{figures.mistaken(shown)}</div>",
    ]
