"""The report of a run: one HTML file that needs nothing else. Studies put sections of their own into it."""

from __future__ import annotations

import html
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from stmlang.cost import units
from stmlang.experiments.training.fitting import Fitted
from stmlang.experiments.training.settings import meanings
from stmlang.experiments.training.state import digest, parameters
from stmlang.plan.plan import Plan
from stmlang.source.writing import written_whole

PACKAGES = ("stmlang", "jax", "jaxlib", "equinox", "optax", "numpy")
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


def write(title: str, sections: Sequence[str], path: Path) -> None:
    """Write a page of these sections, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as stream:
        stream.write(page(title, sections).encode())


def page(title: str, sections: Sequence[str]) -> str:
    """A page's text; sections are HTML."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
    )
    body = "\n".join([f"<h1>{html.escape(title)}</h1>", *sections])
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def of_run(fitted: Fitted, settings: Any, packages: Sequence[str] = ()) -> list[str]:
    """Sections about a run: its curves, settings, versions and digest."""
    from stmlang.experiments.training.figures import curves

    kept = "" if fitted.best_step == fitted.steps else f", the best by validation after {fitted.best_step:,}"
    return [
        "<h2>Curves</h2>",
        f"<p>{fitted.steps:,} steps in {fitted.seconds:,.0f} s{kept}; {parameters(fitted.model):,} parameters.</p>",
        curves(fitted.records),
        *settings_and_versions(settings, packages),
        f'<p class="muted">Parameters after training have the SHA-256 digest <code>{digest(fitted.model)}</code>.</p>',
    ]


def settings_and_versions(settings: Any, packages: Sequence[str] = ()) -> list[str]:
    """A table of what was set, what it is, and what it ran on."""
    says, values = meanings(settings.__class__), _values(settings)
    rows = "".join(
        f"<tr><td>{name}</td><td>{html.escape(str(values[name]))}</td><td>{html.escape(meaning)}</td></tr>"
        for name, meaning in says.items()
    )
    return [
        "<h2>Settings and versions</h2>",
        f"<table><tr><th>setting</th><th></th><th>is</th></tr>{rows}</table>",
        table({"python": platform.python_version(), **{name: version(name) for name in (*PACKAGES, *packages)}}),
    ]


def plan(name: str, choice: Choice) -> list[str]:
    """How a spec is evaluated, and the ways that were weighed against it."""
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


def table(rows: Mapping[str, str]) -> str:
    cells = "".join(f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>" for name, value in rows.items())
    return f"<table>{cells}</table>"


def _values(settings: Any) -> dict[str, Any]:
    """Settings by name, those of dataclasses within among them."""
    values: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        values |= _values(value) if is_dataclass(value) else {field.name: value}
    return values
