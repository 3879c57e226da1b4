"""What a run leaves behind: a file for each fold that is done, and one for the fold that is being run.

    OUT/MUTAG/gin-4/fold-3.json     the fold's curve
    OUT/MUTAG/gin-4/fold-3.npz      where its training is, replaced after each epoch, gone when the fold is done

Each is written whole or not at all, so that a run may be killed at any time, and holds the settings that its numbers depend on.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stmlang.experiments.tudataset.errors import StudyError
from stmlang.experiments.tudataset.settings import Model, Settings
from stmlang.experiments.tudataset.training import Epoch, State, best, digest, packed, unpacked
from stmlang.source.writing import written_whole


@dataclass(frozen=True)
class Entry:
    """A model that is trained, and how deep it is, None where there is no choice."""

    model: Model
    depth: int | None

    def __str__(self) -> str:
        return self.model if self.depth is None else f"{self.model}-{self.depth}"


@dataclass(frozen=True)
class Result:
    """A fold that is done: its curve, how large the model is, and the digest of its parameters after the last epoch."""

    fold: int
    parameters: int
    curve: tuple[Epoch, ...]
    digest: str

    @property
    def best(self) -> Epoch:
        return self.curve[best(self.curve)]


@dataclass(frozen=True)
class Place:
    """Where the files of one model on one data set lie."""

    folder: Path
    settings: Settings

    def result(self, fold: int) -> Result | None:
        """What became of a fold, None where it is not done. Raises StudyError for a file of other settings, or none of ours."""
        path = self.folder / f"fold-{fold}.json"
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            self._require(path, found["settings"])
            return Result(fold, found["parameters"], _curve(found["curve"]), found["digest"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _unreadable(path, error) from None

    def keep_result(self, fold: int, parameters: int, state: State) -> Result:
        """Write down what became of a fold, and forget how it got there."""
        result = Result(fold, parameters, state.curve, digest(state))
        content = {"settings": self.settings.deciding, **asdict(result)}
        with _written(self.folder / f"fold-{fold}.json") as file:
            file.write(json.dumps(content, indent=1).encode())
        (self.folder / f"fold-{fold}.npz").unlink(missing_ok=True)
        return result

    def state(self, fold: int, start: State) -> State:
        """Where training was when it stopped, `start` where it had not begun. Raises StudyError as `result` does."""
        path = self.folder / f"fold-{fold}.npz"
        if not path.exists():
            return start
        try:
            with np.load(path, allow_pickle=False) as found:
                about = json.loads(str(found["about"]))
                arrays = [found[f"array_{number}"] for number in range(len(found.files) - 1)]
            self._require(path, about["settings"])
            return unpacked(start, arrays, _curve(about["curve"]))
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise _unreadable(path, error) from None

    def keep_state(self, fold: int, state: State) -> None:
        """Write down where training is."""
        about = json.dumps({"settings": self.settings.deciding, "curve": [asdict(epoch) for epoch in state.curve]})
        arrays: dict[str, Any] = {f"array_{number}": array for number, array in enumerate(packed(state))}
        content = io.BytesIO()
        np.savez(content, about=np.asarray(about), **arrays)
        with _written(self.folder / f"fold-{fold}.npz") as file:
            file.write(content.getvalue())

    def _require(self, path: Path, found: Any) -> None:
        wanted = json.loads(json.dumps(self.settings.deciding))
        if found != wanted:
            changed = sorted(name for name in wanted if found.get(name) != wanted[name])
            message = f"{path} was made with other settings: {', '.join(changed) or 'one that is no more'}"
            raise StudyError(message, "choose another folder, `--out`, or the settings as they were")


def _written(path: Path) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    return written_whole(path)


def _curve(found: list[dict[str, float]]) -> tuple[Epoch, ...]:
    return tuple(Epoch(**epoch) for epoch in found)


def _unreadable(path: Path, error: Exception) -> StudyError:
    return StudyError(f"{path} cannot be read: {error}", "delete it, and the fold is run anew")
