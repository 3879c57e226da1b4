"""From fold to fold: what is done is read, what is not is trained from wherever it was left, with a bar to watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from stmlang.ending import refused, rescuing
from stmlang.experiments.folds.errors import StudyError
from stmlang.experiments.folds.graphs import Fold
from stmlang.experiments.folds.kept import Place, Result
from stmlang.experiments.folds.memory import keep_freed_memory
from stmlang.experiments.folds.training import E, Trainer
from stmlang.source.diagnostic import SpecError

WRONG = 1


@dataclass(frozen=True)
class Crossing(Generic[E]):
    """A model on the first `folds` folds. `begin` is asked for a trainer and the folds once something has to be trained; the
    other functions say in words how an epoch went, how good the best of a fold was, and what all of them come to."""

    name: str
    place: Place[E]
    folds: int
    begin: Callable[[], tuple[Trainer[E], list[Fold]]]
    epoch_words: Callable[[E], str]
    best_words: Callable[[E], str]
    words: Callable[[list[Result[E]]], str]


def crossed(crossing: Crossing[E], console: Console) -> list[Result[E]]:
    """The results, fold by fold, those that are not there trained first."""
    place, epochs = crossing.place, crossing.place.settings.epochs
    earlier = [place.result(number) for number in range(crossing.folds)]
    results = [result for result in earlier if result is not None]
    if len(results) == crossing.folds:
        return results
    trainer, splits = crossing.begin()
    results.clear()
    with Progress(*_columns(), console=console) as progress, rescuing(progress.stop):
        task = progress.add_task(crossing.name, total=crossing.folds * epochs, note="compiling")
        for number, result in enumerate(earlier):

            def tell(done: int, note: str, number: int = number) -> None:
                progress.update(task, completed=number * epochs + done, note=f"fold {number + 1}, {note}")

            results.append(_trained(trainer, crossing, splits[number], tell) if result is None else result)
            tell(epochs, crossing.best_words(results[-1].best))
    sizes = f"{trainer.parameters:,} parameters, {trainer.programs} programs compiled"
    console.print(f"{crossing.name}: {crossing.words(results)}, {sizes}")
    return results


def _columns() -> tuple[Any, ...]:
    note = TextColumn("{task.fields[note]}")
    return TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), note, TimeElapsedColumn(), TimeRemainingColumn()


def _trained(trainer: Trainer[E], crossing: Crossing[E], fold: Fold, tell: Callable[[int, str], None]) -> Result[E]:
    """Train on a fold from wherever it was left."""
    place = crossing.place
    state = place.state(fold.number, trainer.start(fold))
    while len(state.curve) < trainer.settings.epochs:
        state = trainer.epoch(state, fold)
        place.keep_state(fold.number, state)
        tell(len(state.curve), crossing.epoch_words(state.curve[-1]))
    return place.keep_result(fold.number, trainer.parameters, state)


def command(run: Callable[[], object], page: Path, console: Console) -> int:
    """Run a study and print its page; what somebody can put right is said in a line or two. Returns the exit status: 0 done,
    1 the data or what lies in the study's folder is wrong."""
    keep_freed_memory()
    try:
        with rescuing(lambda: console.print("stopped: the same command goes on from here")):
            run()
    except StudyError as error:
        console.print(f"{error}\n  help: {error.help}", markup=False, highlight=False, soft_wrap=True)
        return WRONG
    except SpecError as error:
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return WRONG
    except OSError as error:
        return refused(error)
    console.print(page.read_text(encoding="utf-8"), markup=False, highlight=False, soft_wrap=True)
    return 0
