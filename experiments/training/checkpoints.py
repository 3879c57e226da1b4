"""Checkpoints of a run, by Orbax: each is there whole or not at all, and the last two are kept.

OUT/config.json          the settings of the run
OUT/checkpoints/STEP/    the state after so many steps, and what the host knows of the run: `Progress`
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np
import orbax.checkpoint as ocp

from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.processes import first, together
from stmlang.experiments.training.settings import ROUNDING, flat
from stmlang.experiments.training.state import State
from stmlang.experiments.training.trees import named, structure
from stmlang.source.writing import written_whole

KEPT = 2


@dataclass
class Progress:
    """What the host knows of a run: steps behind it, bytes of its log, the measures of steps that stand in no line of it yet,
    the best validation and its step, validations since then, seconds of training, and whether it has ended."""

    step: int = 0
    logged: int = 0
    pending: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    best: float | None = None
    best_step: int = 0
    since: int = 0
    seconds: float = 0.0
    done: bool = False


class Checkpoints:
    """The checkpoints in a run's folder."""

    def __init__(self, out: Path) -> None:
        logging.getLogger("absl").setLevel(logging.ERROR)  # Orbax tells of each file it could merge, and of its metadata
        self.out, self.folder = out.absolute(), out.absolute() / "checkpoints"
        options = ocp.CheckpointManagerOptions(
            max_to_keep=KEPT, enable_async_checkpointing=False, create=True, cleanup_tmp_directories=True
        )
        self.manager = ocp.CheckpointManager(self.folder, options=options)

    def last(self, like: State) -> tuple[State, Progress] | None:
        """The last state that was kept, as arrays of NumPy, and its progress; None where there is none. Raises TrainingError
        where it is one of another model or optimizer."""
        step = self.manager.latest_step()
        if step is None:
            return None
        leaves = dict(named(like))
        about = cast(Any, self.manager.restore(step, args=ocp.args.Composite(about=ocp.args.JsonRestore()))).about
        _require_same(_shapes(leaves), about["shapes"], self.folder / str(step))
        blank = {name: np.zeros(leaf.shape, leaf.dtype) for name, leaf in leaves.items()}
        item = _with_numbers(blank)
        asked = ocp.args.PyTreeRestore(
            item=item, restore_args={name: ocp.RestoreArgs(restore_type=np.ndarray) for name in item}
        )
        arrays = blank | cast(Any, self.manager.restore(step, args=ocp.args.Composite(state=asked))).state
        return jax.tree.unflatten(structure(like), [arrays[name] for name in leaves]), Progress(**about["progress"])

    def keep(self, state: State, progress: Progress) -> None:
        """Keep a state."""
        arrays = {name: np.asarray(leaf) for name, leaf in named(state)}
        about = {"progress": asdict(progress), "shapes": _shapes(arrays)}
        what = ocp.args.Composite(state=ocp.args.PyTreeSave(_with_numbers(arrays)), about=ocp.args.JsonSave(about))
        self.manager.save(progress.step, args=what, force=True)

    def close(self) -> None:
        self.manager.close()


def ended(out: Path) -> bool:
    """Whether nothing in a folder could go on: there is no checkpoint in it, or the run has ended."""
    steps = [int(path.name) for path in (out / "checkpoints").glob("*") if path.name.isdigit()]
    if not steps:
        return True
    about = out / "checkpoints" / str(max(steps)) / "about" / "metadata"
    try:
        return bool(json.loads(about.read_text(encoding="utf-8"))["progress"]["done"])
    except (OSError, ValueError, KeyError):
        return False


def opened(out: Path, config: Mapping[str, Any], *, resume: bool) -> Checkpoints:
    """The checkpoints of a run with these settings. Without `resume` what an ended run left in the folder is taken away. All
    processes of a job call it: all look at the folder before the first one changes it.

    Raises TrainingError where a run in the folder could go on and is not to, or has other settings.
    """
    path = out / "config.json"
    goes_on = resume and path.exists()
    if goes_on:
        _require_settings(path, config)
    elif not resume and not ended(out):
        message = f"in {out} lies a run that has not ended"
        raise TrainingError(message, "go on with it: `--resume`; or choose another folder, `--out`, or delete it")
    together("the folder was looked at")
    if not goes_on and first():
        _emptied(out, path, config)
    together("the folder is ready")
    return Checkpoints(out)


def _emptied(out: Path, path: Path, config: Mapping[str, Any]) -> None:
    """Make the folder of a run that begins."""
    out.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # first: without it nothing in the folder counts
    for folder in ("checkpoints", "tensorboard"):
        shutil.rmtree(out / folder, ignore_errors=True)
    (out / "log.jsonl").unlink(missing_ok=True)
    with written_whole(path) as stream:
        stream.write((json.dumps(config, indent=1) + "\n").encode())


def _require_settings(path: Path, config: Mapping[str, Any]) -> None:
    try:
        before = flat(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, AttributeError) as error:
        raise TrainingError(f"{path} cannot be read: {error}", "choose another folder, `--out`, or delete this one") from None
    now = flat(json.loads(json.dumps(config)))
    changed = sorted(name for name in {*before, *now} - ROUNDING if before.get(name) != now.get(name))
    if changed:
        message = f"the run in {path.parent} was made with other settings: {', '.join(changed)}"
        raise TrainingError(message, "choose another folder, `--out`, or the settings as they were")


def _require_same(here: Mapping[str, str], there: Mapping[str, str], path: Path) -> None:
    if here != there:
        name = next(name for name in (*here, *there) if here.get(name) != there.get(name))
        message = f"{path} is of another model: `{name}` is {there.get(name, 'not there')}, here {here.get(name, 'not there')}"
        raise TrainingError(message, "choose another folder, `--out`, or the model as it was")


def _with_numbers(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Those arrays that hold any number: Orbax takes no others. A layer on features of which there are none has one without."""
    return {name: array for name, array in arrays.items() if array.size}


def _shapes(arrays: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"{array.dtype}{list(array.shape)}" for name, array in arrays.items()}
