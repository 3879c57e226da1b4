"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import html
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path

import numpy as np
from jaxtyping import Int

from stmlang.experiments.digits import figures
from stmlang.experiments.digits.receptive import Field
from stmlang.experiments.digits.settings import Settings
from stmlang.experiments.digits.training import Epoch

PACKAGES = ("stmlang", "jax", "jaxlib", "equinox", "optax", "numpy", "scikit-learn")

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid #e4e9ed; }
h3 { font-size: 1rem; margin: 1.2rem 0 0; }
table { border-collapse: collapse; } td, th { padding: .15rem .9rem .15rem 0; text-align: left; vertical-align: top; }
pre { background: #f5f7f9; padding: .8rem; overflow-x: auto; font-size: 12px; line-height: 1.4; }
svg { max-width: 100%; height: auto; } section { display: inline-block; margin-right: 2rem; }
.figure { font-size: 2rem; font-weight: 600; } .muted { color: #66737f; }
""".strip()


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the study came to. `plans` and `artifacts` by name, `seconds` by stage, `digest` of the trained parameters."""

    settings: Settings
    accuracy: float
    right: int
    images: int
    parameters: int
    digest: str
    curve: Sequence[Epoch]
    confusion: Int[np.ndarray, "digit digit"]
    fields: Sequence[Field]
    plans: Mapping[str, str]
    artifacts: Mapping[str, str]
    seconds: Mapping[str, float]


def write(outcome: Outcome, path: Path) -> None:
    """Write the report, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(page(outcome))
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def page(outcome: Outcome) -> str:
    """The report's text."""
    settings = outcome.settings
    reached = "reached" if outcome.accuracy >= settings.target else "missed"
    sections = [
        "<h1>Handwritten digits with pLSTM layers</h1>",
        f'<p class="figure">{outcome.accuracy:.2%}</p>',
        f"<p>{outcome.right} of {outcome.images} test images right; the target of {settings.target:.0%} is {reached}. "
        f"{outcome.parameters:,} parameters, {settings.pairs} pairs of a layer in P-mode and one in D-mode, four directions "
        f"each; patches of {settings.patch}x{settings.patch} pixels, {settings.stride} apart.</p>",
        "<h2>Learning curve</h2>",
        figures.learning_curve(outcome.curve, outcome.accuracy),
        "<h2>Receptive fields</h2>",
        "<p>Where what the marked node writes arrives, and with what factor: one row of the gating matrix, for each head, all "
        "directions summed. Red is positive, blue negative. The node itself, which its direct term reaches, is left out.</p>",
        *(f"<section><h3>{html.escape(field.title)}</h3>{figures.receptive(field)}</section>" for field in outcome.fields),
        "<h2>Which digits are mistaken</h2>",
        figures.confusion(outcome.confusion),
        "<h2>Plans</h2>",
        *(f"<h3>{html.escape(name)}</h3><pre>{html.escape(text)}</pre>" for name, text in outcome.plans.items()),
        "<h2>Artifacts</h2>",
        _table(outcome.artifacts),
        "<h2>Seconds</h2>",
        _table({name: f"{seconds:.1f}" for name, seconds in outcome.seconds.items()}),
        "<h2>Settings and versions</h2>",
        _table({field.name: str(getattr(settings, field.name)) for field in fields(settings)}),
        _table({"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}),
        f'<p class="muted">Parameters after training have the SHA-256 digest {outcome.digest}.</p>',
    ]
    head = f'<meta charset="utf-8"><title>Handwritten digits with pLSTM layers</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(sections) + "\n</body></html>\n"


def _table(rows: Mapping[str, str]) -> str:
    cells = "".join(f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>" for name, value in rows.items())
    return f"<table>{cells}</table>"
