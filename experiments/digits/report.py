"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import html
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from jaxtyping import Int

from stmlang.cost import units
from stmlang.experiments.digits import figures
from stmlang.experiments.digits.receptive import Field, Fields
from stmlang.experiments.digits.settings import Settings, meanings
from stmlang.experiments.digits.testing import Mistake
from stmlang.experiments.digits.training import Epoch
from stmlang.plan.plan import Plan
from stmlang.source.writing import written_whole

PACKAGES = ("stmlang", "jax", "jaxlib", "equinox", "optax", "numpy", "scikit-learn")
MISTAKES_SHOWN = 36

STYLE = """
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid #e4e9ed; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; }
table { border-collapse: collapse; font-size: 14px; }
td, th { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; }
td.number { text-align: right; white-space: nowrap; } td, code { overflow-wrap: anywhere; } tr.chosen { font-weight: 600; }
pre { background: #f5f7f9; padding: .8rem; overflow-x: auto; font-size: 12px; line-height: 1.4; }
svg { max-width: 100%; height: auto; } figure { display: inline-block; margin: 0 1.5rem .5rem 0; max-width: 100%; }
figcaption { font-size: 13px; color: #66737f; } summary { cursor: pointer; margin: .5rem 0; }
.figure { font-size: 2rem; font-weight: 600; margin: 0; } .muted { color: #66737f; }
@media (max-width: 40rem) { body { margin: 1rem auto; } table { font-size: 13px; } td, th { padding-right: .5rem; } }
""".strip()


@dataclass(frozen=True, eq=False)
class Choice:
    """How a spec is evaluated, and all that the compiler says about it."""

    plan: Plan
    explained: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the study came to: `plans` by spec, `artifacts` by file, `seconds` by stage, `digest` of the trained parameters."""

    settings: Settings
    accuracy: float
    right: int
    images: int
    parameters: int
    digest: str
    curve: Sequence[Epoch]
    confusion: Int[np.ndarray, "digit digit"]
    mistakes: Sequence[Mistake]
    fields: Fields
    plans: Mapping[str, Choice]
    artifacts: Mapping[str, str]
    seconds: Mapping[str, float]


def write(outcome: Outcome, path: Path) -> None:
    """Write the report, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as stream:
        stream.write(page(outcome).encode())


def page(outcome: Outcome) -> str:
    """The report's text."""
    title = "Handwritten digits with pLSTM layers"
    sections = [
        f"<h1>{title}</h1>",
        *_summary(outcome),
        "<h2>Learning curve</h2>",
        figures.learning_curve(outcome.curve, outcome.accuracy),
        "<h2>Receptive fields, before and after training</h2>",
        *_fields(outcome.fields),
        "<h2>Which digits are mistaken</h2>",
        *_mistakes(outcome.mistakes),
        figures.confusion(outcome.confusion),
        "<h2>Plans</h2>",
        "<p>How each of the two scans is evaluated, and the ways that were weighed against it; times are predicted, for a "
        "batch and its gradients.</p>",
        *(line for name, choice in outcome.plans.items() for line in _plan(name, choice)),
        "<h2>Artifacts</h2>",
        "<p>The two scans, without weights, for another process or another machine: <code>stmlang.load</code>.</p>",
        _table(outcome.artifacts),
        "<h2>Seconds</h2>",
        _table({name: f"{seconds:.1f}" for name, seconds in outcome.seconds.items()}),
        "<h2>Settings and versions</h2>",
        _settings(outcome.settings),
        _table({"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}),
        f'<p class="muted">Parameters after training have the SHA-256 digest <code>{outcome.digest}</code>.</p>',
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(sections) + "\n</body></html>\n"


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


def _plan(name: str, choice: Choice) -> list[str]:
    rows = "".join(
        f"<tr{' class=chosen' if not entry.why else ''}><td>{html.escape(entry.estimate.candidate.label)}</td>"
        f'<td class="number">{units.seconds(entry.estimate.seconds)}</td>'
        f'<td class="number">{units.size(entry.estimate.memory)}</td><td>{html.escape(entry.why or "chosen")}</td></tr>'
        for entry in choice.plan.ranked
    )
    return [
        f"<h3>{html.escape(name)}</h3>",
        f"<table><tr><th>way</th><th>time</th><th>memory</th><th>why it lost</th></tr>{rows}</table>",
        "<details><summary>all that <code>stmlang explain</code> says</summary>"
        f"<pre>{html.escape(choice.explained)}</pre></details>",
    ]


def _settings(settings: Settings) -> str:
    rows = "".join(
        f"<tr><td>{name}</td><td>{html.escape(str(getattr(settings, name)))}</td><td>{html.escape(says)}</td></tr>"
        for name, says in meanings().items()
    )
    return f"<table><tr><th>setting</th><th></th><th>is</th></tr>{rows}</table>"


def _table(rows: Mapping[str, str]) -> str:
    cells = "".join(f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>" for name, value in rows.items())
    return f"<table>{cells}</table>"
