"""From fold to fold: what is done is read, what is not is trained from its last checkpoint on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from stmlang.experiments.folds.graphs import Fold
from stmlang.experiments.folds.kept import Result, keep, result
from stmlang.experiments.folds.own import Own
from stmlang.experiments.folds.problem import Learner
from stmlang.experiments.training import report
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.fitting import Fitted, fit
from stmlang.experiments.training.settings import Training
from stmlang.runtime.compiled import CompiledScan

REPORT = "report.html"


@dataclass(frozen=True)
class Crossing:
    """A model on the first `folds` folds. `own` has the settings of each; `begin` is asked for a learner and the folds once
    something has to be trained; the other functions say in words how good the best of a fold was, and what all come to."""

    name: str
    folds: int
    own: Callable[[int], Own]
    begin: Callable[[], tuple[Learner, list[Fold]]]
    best_words: Callable[[Result], str]
    words: Callable[[list[Result]], str]


@dataclass(frozen=True)
class _Config:
    """What is kept beside a run."""

    training: Training
    study: Mapping[str, Any]


def refuse_begun(out: Path, resume: bool) -> None:
    """Raises TrainingError where a study lies in the folder that is not to go on."""
    if not resume and next(out.rglob("fold-*/config.json"), None) is not None:
        raise TrainingError(
            f"in {out} lies a study", "go on with it: `--resume`; or choose another folder, `--out`, or delete it"
        )


def crossed(crossing: Crossing, console: Console) -> list[Result]:
    """The results, fold by fold, those that are not there trained first."""
    owns = [crossing.own(number) for number in range(crossing.folds)]
    found = [result(own.training.out, own.deciding) for own in owns]
    begun = None if all(found) else crossing.begin()
    results: list[Result] = []
    for number, (own, known) in enumerate(zip(owns, found, strict=True)):
        if known is None:
            assert begun is not None
            learner, splits = begun
            console.print(f"{crossing.name}, fold {number + 1} of {crossing.folds}")
            known = _trained(learner, splits[number], own, crossing.name, console)
            console.print(f"{crossing.name}, fold {number + 1}: {crossing.best_words(known)}")
        results.append(known)
    if begun is not None:
        console.print(f"{crossing.name}: {crossing.words(results)}, {results[0].parameters:,} parameters")
    return results


def _trained(learner: Learner, fold: Fold, own: Own, name: str, console: Console) -> Result:
    """Train on a fold, from wherever it was left."""
    start, task = learner.start(fold, own.training), learner.task(fold, own.training)
    fitted = fit(start, task, own.training, console, _Config(own.training, own.deciding), learner.programs)
    found = Result.of(fold.number, fitted)
    sections = _sections(task.source.batch(0), fitted, own)
    report.write(f"{name}, fold {fold.number + 1}", sections, own.training.out / REPORT)
    keep(own.training.out, own.deciding, found)
    return found


def _sections(example: Any, fitted: Fitted, own: Own) -> list[str]:
    """Of a fold's page: the run, and the plans of scans on its first batch."""
    scans: tuple[CompiledScan, ...] = example.inputs.scans
    plans = [line for on in scans for line in report.plan(on.scan.name, report.Choice(on.plan, on.explain()))]
    return report.of_run(fitted, own.settings) + plans
