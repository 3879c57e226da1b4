"""What became of a fold: `result.json` beside its log and its checkpoints, with the settings that its numbers depend on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.fitting import Fitted
from stmlang.experiments.training.state import digest, parameters
from stmlang.source.writing import written_whole

RESULT = "result.json"
Measures = Mapping[str, float]


@dataclass(frozen=True)
class Result:
    """A fold that is done: how large the model is, the steps taken and those to the best validation, the losses and the
    validations by step, and the digest of the parameters after the last step."""

    fold: int
    parameters: int
    steps: int
    best_step: int
    training: Sequence[Measures]
    validation: Sequence[Measures]
    digest: str

    @property
    def best(self) -> Measures:
        """What was measured where validation was best."""
        return next(measures for measures in self.validation if measures["step"] == self.best_step)

    @property
    def last(self) -> Measures:
        """What was measured after the last step."""
        return self.validation[-1]

    @classmethod
    def of(cls, fold: int, fitted: Fitted) -> Result:
        lines = [{"step": record["step"], "loss": record["loss"]} for record in fitted.records if "loss" in record]
        judged = [{"step": record["step"], **record["validation"]} for record in fitted.records if "validation" in record]
        size = parameters(fitted.model)
        return cls(fold, size, fitted.steps, fitted.best_step, lines, judged, digest(fitted.model))


def result(folder: Path, deciding: Mapping[str, Any]) -> Result | None:
    """What became of the fold in a folder, None where it is not done. Raises TrainingError for a file of other settings, or
    none of ours."""
    path = folder / RESULT
    if not path.exists():
        return None
    try:
        stored: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        settings, found = stored["settings"], Result(**stored["result"])
        changed = sorted(name for name, value in deciding.items() if settings.get(name) != value)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TrainingError(f"{path} cannot be read: {error}", "delete it, and the fold is run anew") from None
    if changed:
        message = f"{path} was made with other settings: {', '.join(changed)}"
        raise TrainingError(message, "choose another folder, `--out`, or the settings as they were")
    return found


def keep(folder: Path, deciding: Mapping[str, Any], found: Result) -> None:
    """Write down what became of a fold."""
    keep_files(folder, {RESULT: json.dumps({"settings": deciding, "result": asdict(found)}, indent=1) + "\n"})


def keep_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by name into a folder, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        with written_whole(folder / name) as file:
            file.write(text.encode())
