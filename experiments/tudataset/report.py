"""Tables and figures: what the folds came to, beside the paper's numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from stmlang.draw.picture import INK, PALE
from stmlang.experiments.folds import figures
from stmlang.experiments.folds.figures import svg
from stmlang.experiments.folds.kept import Measures, Result, keep_files
from stmlang.experiments.training.settings import as_json as as_plain
from stmlang.experiments.tudataset.settings import FOLDS, MODELS, Entry, Settings

Results = Mapping[str, Mapping[Entry, Sequence[Result]]]
"""By data set and entry, the folds that are done."""

PAPER: dict[str, dict[str, tuple[float, float]]] = {
    "gat": {"MUTAG": (0.7822, 0.09), "NCI1": (0.7968, 0.03), "PROTEINS": (0.7215, 0.03), "PTC_FM": (0.6105, 0.05)},
    "gcn": {"MUTAG": (0.7234, 0.08), "NCI1": (0.7852, 0.02), "PROTEINS": (0.7395, 0.03), "PTC_FM": (0.6162, 0.04)},
    "gin": {"MUTAG": (0.8251, 0.10), "NCI1": (0.8175, 0.02), "PROTEINS": (0.7350, 0.04), "PTC_FM": (0.6097, 0.10)},
    "lstm": {"MUTAG": (0.7450, 0.11), "NCI1": (0.7951, 0.02), "PROTEINS": (0.7503, 0.04), "PTC_FM": (0.6076, 0.04)},
    "mpnn": {"MUTAG": (0.7450, 0.09), "NCI1": (0.8012, 0.02), "PROTEINS": (0.7350, 0.04), "PTC_FM": (0.5786, 0.07)},
    "plstm": {"MUTAG": (0.8512, 0.06), "NCI1": (0.7324, 0.03), "PROTEINS": (0.7502, 0.05), "PTC_FM": (0.6133, 0.08)},
}
"""Mean and deviation of the test accuracy over ten folds, as the paper has them."""

NAMES = {"gat": "GAT", "gcn": "GCN", "gin": "GIN", "lstm": "LSTM GNN", "mpnn": "MPNN", "plstm": "pLSTM"}
COLOURS: dict[str, str] = dict(zip(MODELS, figures.COLOURS, strict=True))


@dataclass(frozen=True)
class Score:
    """An entry's test accuracies at the best validation epoch: mean and deviation over folds (root of the mean square), and
    the mean validation accuracy there; and the mean test accuracy after the last epoch."""

    entry: Entry
    folds: int
    parameters: int
    mean: float
    deviation: float
    validation: float
    last: float

    @classmethod
    def of(cls, entry: Entry, results: Sequence[Result]) -> Score:
        tests = np.asarray([result.best["test"] for result in results])
        validation = float(np.mean([result.best["accuracy"] for result in results]))
        last = float(np.mean([result.last["test"] for result in results]))
        return cls(entry, len(results), results[0].parameters, float(tests.mean()), float(tests.std()), validation, last)


def chosen(by_entry: Mapping[Entry, Sequence[Result]]) -> dict[str, Score]:
    """By model, the depth with the best mean validation accuracy; the least of several."""
    scores: dict[str, Score] = {}
    for entry, results in by_entry.items():
        score = Score.of(entry, results)
        if entry.model not in scores or score.validation > scores[entry.model].validation:
            scores[entry.model] = score
    return scores


def write(by_set: Results, settings: Settings) -> None:
    """Write `results.json`, `results.md`, `accuracy.svg` and `curves-SET.svg`, each whole or not at all."""
    files = {
        "results.json": json.dumps(as_json(by_set, settings), indent=1) + "\n",
        "results.md": table(by_set),
        "accuracy.svg": bars(by_set),
        **{f"curves-{name}.svg": curves(entries) for name, entries in by_set.items()},
    }
    keep_files(settings.training.out, files)


def as_json(by_set: Results, settings: Settings) -> dict[str, Any]:
    """Everything that the tables say, and each fold's accuracies."""
    sets: dict[str, Any] = {}
    for name, entries in by_set.items():
        best = {score.entry for score in chosen(entries).values()}
        sets[name] = {
            str(entry): {
                **{key: value for key, value in asdict(Score.of(entry, results)).items() if key != "entry"},
                "chosen": entry in best,
                "paper": PAPER[entry.model].get(name),
                "tests": [result.best["test"] for result in results],
                "digests": [result.digest for result in results],
            }
            for entry, results in entries.items()
        }
    return {"settings": as_plain(settings), "sets": sets}


def table(by_set: Results) -> str:
    """A table in Markdown: a row for each model, a column for each data set, the paper's number in brackets."""
    scores = {name: chosen(entries) for name, entries in by_set.items()}
    models = [model for model in MODELS if any(model in row for row in scores.values())]
    lines = [f"| model | {' | '.join(scores)} | mean |", f"|---|{'---|' * (len(scores) + 1)}"]
    for model in models:
        cells = [_cell(model, name, row.get(model)) for name, row in scores.items()]
        means = [row[model].mean for row in scores.values() if model in row]
        lines.append(f"| {NAMES[model]} | {' | '.join(cells)} | {np.mean(means):.4f} |")
    folds = sorted({score.folds for row in scores.values() for score in row.values()})
    counted = "all ten folds" if folds == [FOLDS] else f"{' or '.join(map(str, folds))} of ten folds"
    sizes = ", ".join(f"{NAMES[m]} {max(row[m].parameters for row in scores.values() if m in row):,}" for m in models)
    last = (
        f"{name}: " + ", ".join(f"{NAMES[m]} {row[m].last:.4f}" for m in models if m in row) for name, row in scores.items()
    )
    notes = [
        f"Test accuracy at the best validation epoch, mean and deviation over {counted}; in brackets the paper's.",
        f"Behind a baseline stands its number of rounds, chosen by validation accuracy. Parameters, at most: {sizes}.",
        f"After the last epoch, whatever validation says, mean test accuracy is, on {'; on '.join(last)}.",
    ]
    return "\n".join([*lines, "", *notes]) + "\n"


def _cell(model: str, name: str, score: Score | None) -> str:
    if score is None:
        return ""
    paper = PAPER[model].get(name)
    depth = "" if score.entry.depth is None else f", {score.entry.depth}"
    beside = "" if paper is None else f" ({paper[0]:.4f} ± {paper[1]:.2f})"
    return f"{score.mean:.4f} ± {score.deviation:.2f}{depth}{beside}"


def bars(by_set: Results) -> str:
    """Accuracies with their deviations as bars, the paper's as marks."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, len(by_set), squeeze=False, sharey=True)[0]
        for axis, (name, entries) in zip(axes, by_set.items(), strict=True):
            for place, (model, score) in enumerate(chosen(entries).items()):
                axis.bar(place, score.mean, yerr=score.deviation, color=COLOURS[model], ecolor=INK, capsize=2)
                paper = PAPER[model].get(name)
                if paper is not None:
                    axis.errorbar(place + 0.3, *paper, color=PALE, marker="o", markersize=3, markeredgecolor=INK)
            axis.set_title(name, fontsize=9)
            axis.set_xticks(range(len(chosen(entries))), [NAMES[model] for model in chosen(entries)], rotation=60)
        axes[0].set(ylabel="test accuracy (marks: the paper)", ylim=(0.4, 1.0))

    return svg(draw, 1.2 + 2.0 * len(by_set), 3.0)


def curves(entries: Mapping[Entry, Sequence[Result]]) -> str:
    """Loss and validation accuracy by step, mean over folds, of the entries that were chosen."""

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for model, score in chosen(entries).items():
            results = entries[score.entry]
            for axis, of, what in ((left, "training", "loss"), (right, "validation", "accuracy")):
                steps, mean = mean_curve([getattr(result, of) for result in results], what)
                axis.plot(steps, mean, color=COLOURS[model], label=NAMES[model], linewidth=1)
        left.set(xlabel="step", ylabel="training loss")
        right.set(xlabel="step", ylabel="validation accuracy")
        right.legend(frameon=False, loc="lower right", fontsize=7)

    return svg(draw, 7.2, 2.8)


def mean_curve(curves: Sequence[Sequence[Measures]], what: str) -> tuple[list[float], list[float]]:
    """Steps and the mean over folds of what was measured there, as far as all folds go: `--patience` ends some earlier."""
    columns = list(zip(*curves, strict=False))
    return [column[0]["step"] for column in columns], [float(np.mean([at[what] for at in column])) for column in columns]
