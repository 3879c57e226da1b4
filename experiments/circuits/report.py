"""The page: errors of models and of two simple answers, over all gates and by how deep a gate lies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from stmlang.draw.picture import INK
from stmlang.experiments.circuits.data import Cones
from stmlang.experiments.circuits.probability import EXACT_INPUTS, WORDS
from stmlang.experiments.circuits.settings import BANDS, FOLDS, MODELS, RATES, Settings
from stmlang.experiments.circuits.task import Errors, band_names
from stmlang.experiments.folds import figures
from stmlang.experiments.folds.kept import Result, keep_files
from stmlang.experiments.training.settings import as_json as as_plain

PAGE = "circuits"
NAMES = {
    "mean": "always the mean",
    "independent": "as if fanins were independent",
    "plstm": "pLSTM",
    "gin": "GIN, undirected",
    "gine": "GIN with edge features, directed",
    "mpnn": "MPNN, directed",
}
COLOURS: dict[str, str] = dict(zip(MODELS, figures.COLOURS, strict=False))
STYLES = {"mean": ":", "independent": "--"}
"""How lines look that belong to no model."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is reported: of answers that need no training their errors fold by fold, and the results of models."""

    data: Cones
    simple: Mapping[str, Sequence[Errors]]
    models: dict[str, Sequence[Result]]

    @property
    def rows(self) -> dict[str, list[Errors]]:
        """The test errors of everything, fold by fold, of models at the epoch with the least error on validation circuits."""
        tests = {model: [Errors.measured(result.best) for result in results] for model, results in self.models.items()}
        return {**{name: list(errors) for name, errors in self.simple.items()}, **tests}


def band_means(errors: Sequence[Errors]) -> list[float | None]:
    """By band, the mean over the folds that have a gate in it."""
    columns = [
        [error for error in column if error is not None] for column in zip(*(fold.bands for fold in errors), strict=True)
    ]
    return [float(np.mean(column)) if column else None for column in columns]


def write(outcome: Outcome, settings: Settings) -> None:
    """Write `circuits.json`, `circuits.md` and `circuits.svg`, each whole or not at all, the last two to `settings.page` as
    well."""
    files = {f"{PAGE}.md": page(outcome, settings), f"{PAGE}.svg": figure(outcome)}
    numbers = {f"{PAGE}.json": json.dumps(as_json(outcome, settings), indent=1) + "\n"}
    for folder, content in ((settings.training.out, {**files, **numbers}), (settings.page, files)):
        if folder is not None:
            keep_files(folder, content)


def as_json(outcome: Outcome, settings: Settings) -> dict[str, Any]:
    """Every fold's errors."""
    models = {
        model: {"parameters": results[0].parameters, "digests": [result.digest for result in results]}
        for model, results in outcome.models.items()
    }
    rows = {
        name: {**models.get(name, {}), "bands": band_means(errors), "folds": [asdict(fold) for fold in errors]}
        for name, errors in outcome.rows.items()
    }
    return {"settings": as_plain(settings), "circuits": outcome.data.circuits, "cones": len(outcome.data), "rows": rows}


def page(outcome: Outcome, settings: Settings) -> str:
    """The table in Markdown, and what was done."""
    sections = [_about(outcome.data, settings), "\n".join(table(outcome)), _notes(settings), f"![errors by level]({PAGE}.svg)"]
    return "\n\n".join(["# Signal probability in circuits", *sections]) + "\n"


def table(outcome: Outcome) -> list[str]:
    """A row for each answer: mean absolute error over gates, and by band of levels."""
    lines = [f"| | parameters | all gates | {' | '.join(band_names())} |", f"|---|{'---|' * (2 + len(BANDS))}"]
    for name, errors in outcome.rows.items():
        means = np.asarray([fold.mean for fold in errors])
        results = outcome.models.get(name)
        size = "" if results is None else f"{results[0].parameters:,}"
        bands = ["" if mean is None else f"{mean:.4f}" for mean in band_means(errors)]
        lines.append(f"| {NAMES[name]} | {size} | {means.mean():.4f} ± {means.std():.4f} | {' | '.join(bands)} |")
    return lines


def _about(cones: Cones, settings: Settings) -> str:
    """The task and the data."""
    levels = np.concatenate(cones.level)
    return (
        "How often is each gate of a circuit on, when its inputs are fair coins? The answer is the product of what its\n"
        "fanins are as long as these share no input. Where paths meet again it is not, and what matters may lie many levels\n"
        f"before.\n\nThe data are {len(cones):,} sub-circuits of {len(cones.circuits)} real ones, all brought to AND gates "
        f"and\ninverting edges: what lies before a gate, the nearest first, up to {settings.most} nodes. None occurs twice. "
        f"They\nhave {int((levels > 0).sum()):,} gates, on up to {int(levels.max())} levels. Probabilities are exact up to\n"
        f"{EXACT_INPUTS} inputs; those of {cones.sampled:,} sub-circuits with more are of {64 * WORDS:,} random patterns, and\n"
        f"their standard error is at most {0.5 / (64 * WORDS) ** 0.5:.3f}. The circuits: {', '.join(cones.circuits)}."
    )


def _notes(settings: Settings) -> str:
    """How the numbers came about."""
    rounds = "; ".join(f"{settings.of(model).depth} in {NAMES[model]}" for model in MODELS if model != "plstm")
    epochs = settings.training.epochs
    counted = "all five folds" if settings.folds == FOLDS else f"{settings.folds} of five folds"
    return (
        "Mean absolute error over the gates of circuits that no model has learned from, mean and deviation over\n"
        f"{counted}; then by level of the gate, the mean over folds. Of {epochs} epochs the one with the least\n"
        "error on validation circuits counts, and no circuit stands in two parts of a fold.\n\n"
        f"pLSTM has {2 * settings.pairs} layers, each along the edges and against them. The networks have rounds\n"
        "of messages over edges in both senses, and as many features as bring them to its size:\n"
        f"{rounds}. Directed ones are told\n"
        "in which sense a message goes, and whether the edge inverts; the other one knows neither. D-mode keeps a part of the\n"
        "connections of circuits only.\n\n"
        "The validation circuits of the first fold, which the second one tests, chose eight heads for pLSTM out of 2, 4 and\n"
        "8, for each network 4 or 8 rounds, and for each model one of the rates 0.002 and 0.005:\n"
        f"{settings.training.rate}, and {', '.join(f'{NAMES[model]} {rate}' for model, rate in RATES.items())}."
    )


def figure(outcome: Outcome) -> str:
    """Errors by band of levels, mean over folds."""

    def draw(figure: Figure) -> None:
        axis = figure.subplots()
        places = range(len(BANDS))
        for name, errors in outcome.rows.items():
            means = [np.nan if mean is None else mean for mean in band_means(errors)]
            colour, line = COLOURS.get(name, INK), STYLES.get(name, "o-")
            axis.plot(places, means, line, color=colour, label=NAMES[name], linewidth=1, markersize=3)
        axis.set_xticks(list(places), band_names())
        axis.set(xlabel="level of the gate", ylabel="mean absolute error", ylim=(0, None))
        axis.legend(frameon=False, fontsize=7)

    return figures.svg(draw, 5.2, 3.2)
