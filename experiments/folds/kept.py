"""What a run leaves behind: a file for each fold that is done, and one for the fold that is being run.

    OUT/MUTAG/gin-4/fold-3.json     the fold's curve
    OUT/MUTAG/gin-4/fold-3.npz      where its training is, replaced after each epoch, gone when the fold is done

Each is written whole or not at all, so that a run may be killed at any time, and holds the settings that its numbers depend on.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic

import numpy as np

from stmlang.experiments.folds.errors import StudyError
from stmlang.experiments.folds.training import E, State, Training, best, digest, packed, unpacked
from stmlang.source.writing import written_whole

MALFORMED = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a file that somebody changed makes its reader raise."""


@dataclass(frozen=True)
class Result(Generic[E]):
    """A fold that is done: its curve, how large the model is, and the digest of its parameters after the last epoch."""

    fold: int
    parameters: int
    curve: tuple[E, ...]
    digest: str

    @property
    def best(self) -> E:
        return self.curve[best(self.curve)]


@dataclass(frozen=True)
class Place(Generic[E]):
    """Where the files of one model on one set of graphs lie; `epoch` makes an epoch of what a file says of it, by name."""

    folder: Path
    settings: Training
    epoch: Callable[..., E]

    def result(self, fold: int) -> Result[E] | None:
        """What became of a fold, None where it is not done. Raises StudyError for a file of other settings, or none of ours."""
        path = self.folder / f"fold-{fold}.json"
        if not path.exists():
            return None
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            self._require(path, stored["settings"])
            return Result(fold, stored["parameters"], self._curve(stored["curve"]), stored["digest"])
        except (OSError, *MALFORMED) as error:
            raise _unreadable(path, error) from None

    def keep_result(self, fold: int, parameters: int, state: State[E]) -> Result[E]:
        """Write down what became of a fold, and forget how it got there."""
        result = Result(fold, parameters, state.curve, digest(state))
        content = {"settings": self.settings.deciding, **_dictionary(result)}
        with _written(self.folder / f"fold-{fold}.json") as file:
            file.write(json.dumps(content, indent=1).encode())
        (self.folder / f"fold-{fold}.npz").unlink(missing_ok=True)
        return result

    def state(self, fold: int, start: State[E]) -> State[E]:
        """Where training was when it stopped, `start` where it had not begun. Raises StudyError as `result` does."""
        path = self.folder / f"fold-{fold}.npz"
        if not path.exists():
            return start
        try:
            with np.load(path, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                arrays = [stored[f"array_{number}"] for number in range(len(stored.files) - 1)]
            self._require(path, about["settings"])
            return unpacked(start, arrays, self._curve(about["curve"]))
        except (OSError, *MALFORMED, EOFError, zipfile.BadZipFile) as error:
            raise _unreadable(path, error) from None

    def keep_state(self, fold: int, state: State[E]) -> None:
        """Write down where training is."""
        about = json.dumps({"settings": self.settings.deciding, "curve": [_dictionary(epoch) for epoch in state.curve]})
        arrays: dict[str, Any] = {f"array_{number}": array for number, array in enumerate(packed(state))}
        content = io.BytesIO()
        np.savez(content, about=np.asarray(about), **arrays)
        with _written(self.folder / f"fold-{fold}.npz") as file:
            file.write(content.getvalue())

    def _curve(self, epochs: list[dict[str, Any]]) -> tuple[E, ...]:
        return tuple(self.epoch(**epoch) for epoch in epochs)

    def _require(self, path: Path, stored: Any) -> None:
        settings = json.loads(json.dumps(self.settings.deciding))
        if stored != settings:
            changed = sorted(name for name in settings if stored.get(name) != settings[name])
            message = f"{path} was made with other settings: {', '.join(changed) or 'one that is no more'}"
            raise StudyError(message, "choose another folder, `--out`, or the settings as they were")


def _dictionary(of: Any) -> dict[str, Any]:
    return asdict(of)


def keep_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by name into a folder, each whole or not at all."""
    for name, text in files.items():
        with _written(folder / name) as file:
            file.write(text.encode())


def _written(path: Path) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    return written_whole(path)


def _unreadable(path: Path, error: Exception) -> StudyError:
    return StudyError(f"{path} cannot be read: {error}", "delete it, and the fold is run anew")
