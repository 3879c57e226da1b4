"""The training loop within one process: its command line, what it refuses, when it ends, where numbers are not finite."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tensorboardX.proto import event_pb2

import stmlang
from stmlang.experiments.training import logs
from stmlang.experiments.training.checkpoints import Checkpoints, Progress
from stmlang.experiments.training.command import parsed
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.optimizers import optimizer, schedule
from stmlang.experiments.training.settings import Training
from stmlang.experiments.training.source import Shuffled
from stmlang.experiments.training.state import beginning
from stmlang.experiments.training.watch import first_bad
from stmlang.nn import ScanLayer
from tests.experiments.small_run import TRAINING, run

TRAINED = Training(rate=0.5)


@dataclass(frozen=True)
class Settings:
    training: Training = TRAINED
    dim: int = 4


def test_options_are_fields() -> None:
    words = ["--epochs", "3", "--weight-decay", "0.1", "--resume", "--dim", "8"]
    training = Training(epochs=3, rate=0.5, weight_decay=0.1, resume=True)
    assert parsed(Settings, "some.study", "It studies.", words) == Settings(training, 8)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epochs", "x"], "Error parsing --epochs: invalid literal for int() with base 10: 'x'"),
        (["--nope", "1"], "Unrecognized options: --nope, 1"),
        (["--epochs", "0"], "--epochs must be at least 1"),
        (["--devices", "3"], "--devices must divide --batch"),
    ],
)
def test_wrong_options_end_with_a_line_and_two(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parsed(Settings, "some.study", "It studies.", words)
    assert stop.value.code == 2
    usage = "python -m some.study"
    assert capsys.readouterr().err == f"usage: {usage} [-h] [OPTIONS]\n{usage}: error: {said}\n"


def test_the_rate_rises_and_falls() -> None:
    rates = [float(np.asarray(schedule(Training(rate=1.0), 100)(step))) for step in range(101)]
    assert rates[0] == 0
    assert rates[10] == 1
    assert rates[100] == pytest.approx(0.01)
    assert np.all(np.diff(rates[10:]) < 0)


def test_a_batch_depends_on_its_step_alone() -> None:
    source = Shuffled(10, 3, 0, lambda numbers, generator: (numbers.tolist(), generator.random()))
    batches = [source.batch(step) for step in range(9)]
    assert source.steps_an_epoch == 3
    assert [source.batch(step) for step in reversed(range(9))] == batches[::-1]
    assert len({number for numbers, _ in batches[3:6] for number in numbers}) == 9
    with pytest.raises(TrainingError, match="larger than the 10 examples"):
        Shuffled(10, 11, 0, source.load)


def test_lamb_scales_the_steps_of_what_decays_alone() -> None:
    """You et al., algorithm 2, on a weight; Adam on a bias."""
    learned = {"weight": jnp.asarray([3.0, 4.0]), "bias": jnp.asarray([1.0, 1.0])}
    gradient = {"weight": jnp.asarray([0.5, -0.25]), "bias": jnp.asarray([0.5, -0.25])}
    training = Training(optimizer="lamb", rate=0.1, schedule="constant", warmup=0.0, weight_decay=0.02, clip=0.0)
    chosen = optimizer(training, 10, learned, lambda path, _: path[0].key == "weight")
    updates, _ = cast(Any, chosen.update(cast(Any, gradient), chosen.init(cast(Any, learned)), cast(Any, learned)))
    step = np.asarray([1.0, -1.0]) + 0.02 * np.asarray([3.0, 4.0])  # Adam's first step is the sign
    np.testing.assert_allclose(updates["weight"], -0.1 * step * 5 / np.linalg.norm(step), rtol=1e-5)
    np.testing.assert_allclose(updates["bias"], [-0.1, 0.1], rtol=1e-5)


def charted(folder: Path) -> list[tuple[str, int, float]]:
    """The numbers of a log for TensorBoard, in the order of writing: of each record eight bytes of length, four of a checksum,
    the event, four of a checksum."""
    events: list[tuple[str, int, float]] = []
    for path in sorted(folder.iterdir()):
        content, place = path.read_bytes(), 0
        while place < len(content):
            (length,) = struct.unpack_from("<Q", content, place)
            event = cast(Any, event_pb2).Event.FromString(content[place + 12 : place + 12 + length])
            events += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
            place += length + 16
    return events


def test_tensorboard_has_the_numbers_of_the_log(tmp_path: Path) -> None:
    fitted = run(replace(TRAINING, out=tmp_path, epochs=1, checkpoint=1e9, tensorboard=True))
    shown = {(name, step): value for name, step, value in charted(tmp_path / "tensorboard")}
    for record in fitted.records:
        measures = {f"validation/{name}": value for name, value in record.get("validation", {}).items()}
        for name, value in {**record, **measures}.items():
            if name not in ("step", "validation"):
                assert shown[name, record["step"]] == pytest.approx(value)
    assert {name for name, _ in shown} == {"loss", "distance", "rate", "validation/error", "steps_a_second"}


def test_runs_are_not_mixed_up(tmp_path: Path) -> None:
    training = replace(TRAINING, out=tmp_path, epochs=1, checkpoint=1e9)
    first = run(training)
    assert [record["step"] for record in first.records] == [3, 4, 5, 5]
    again = run(replace(training, resume=True))
    assert again.records == first.records == logs.records(tmp_path)
    with pytest.raises(TrainingError, match="with other settings: rate, seed"):
        run(replace(training, resume=True, seed=1, rate=0.5))
    fresh = run(replace(training, average=0.0, rate=0.02))  # the run before has ended
    assert fresh.records != first.records


def test_a_layer_on_no_features_is_kept(tmp_path: Path) -> None:
    """A data set without features of edges has a layer whose weights are no number."""
    learned = {"none": jnp.zeros((0, 4)), "some": jnp.arange(3.0)}
    state = beginning(learned, optimizer(TRAINED, 1, learned, lambda *_: False), TRAINED, best=True)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.keep(state, Progress(step=1))
    kept = checkpoints.last(jax.tree.map(jnp.zeros_like, state))
    checkpoints.close()
    assert kept is not None
    assert jax.tree.all(jax.tree.map(np.array_equal, kept[0], state))


def test_training_ends_when_it_gets_no_better(tmp_path: Path) -> None:
    fitted = run(replace(TRAINING, out=tmp_path, epochs=40, rate=3.0, validate=1, patience=2, checkpoint=1e9, clip=0.0))
    assert fitted.steps < 200
    assert fitted.steps == fitted.best_step + 2
    values = [record["validation"]["error"] for record in fitted.records if "validation" in record]
    assert int(np.argmin(values)) + 1 == fitted.best_step


class Two(eqx.Module):
    """Two scans and a sum."""

    layers: list[ScanLayer]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + layer(x)
        return x.sum()


def squares(model: Any, batch: Any, _: Any) -> Any:
    return jnp.mean(jax.vmap(model)(batch) ** 2), {}


def test_the_first_bad_layer_and_gate_are_named() -> None:
    op = stmlang.compile("std:chain/gla", time=5, heads=1, key=2, value=2)
    assert isinstance(op, stmlang.CompiledScan)
    model = Two([ScanLayer(op, 3, key=jax.random.key(number)) for number in range(2)])
    batch, key = 10 * jnp.ones((2, 5, 3)), jax.random.key(0)

    def out(model: Any) -> Any:
        return model.layers[1].out

    def value(model: Any) -> Any:
        return model.layers[1].value.weight

    def transition(model: Any) -> Any:
        return model.layers[1].leaves.weight["transition"]

    def bad(where: Any, number: float) -> str:
        return first_bad(squares, eqx.tree_at(where, model, jnp.full_like(where(model), number)), batch, key)

    assert bad(out, np.nan) == "parameter `.layers[1].out` holds numbers that are not"
    assert bad(value, 3e38) == "what `.layers[1].op` returns"
    gate = bad(transition, 3e38)
    assert gate.startswith("gate `transition` of `.layers[1]`")
