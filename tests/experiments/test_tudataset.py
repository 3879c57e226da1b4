"""The study of small graphs: its data and folds, runs that are stopped, its tables."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from rich.console import Console

from stmlang.experiments.folds.errors import StudyError
from stmlang.experiments.folds.graphs import bucket, epoch_order, evaluated, minibatches
from stmlang.experiments.folds.kept import Place, Result
from stmlang.experiments.folds.training import Trainer, best, rate_at
from stmlang.experiments.tudataset import study
from stmlang.experiments.tudataset.__main__ import main, parse
from stmlang.experiments.tudataset.classes import Classes, Epoch
from stmlang.experiments.tudataset.data import folds, load
from stmlang.experiments.tudataset.report import as_json, chosen, table
from stmlang.experiments.tudataset.settings import MODELS, Entry, Settings
from stmlang.graph import Bucket, GraphSet, batch
from tests.experiments import tiny

QUIET = Console(quiet=True)
SMALL = Settings(sets=(tiny.NAME,), models=("gin",), depths=(1,), folds=2, epochs=3, batch=8, hidden=8, dim=4, heads=1, width=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def graphs(folder: Path) -> GraphSet:
    return load(folder / tiny.NAME, tiny.NAME)


@pytest.fixture(scope="module")
def trainer(graphs: GraphSet) -> Trainer[Epoch]:
    """What runs of `SMALL` share here, so that each need not compile the same programs."""
    room = bucket(graphs.dags, folds(graphs, SMALL), SMALL)
    return Trainer(study.maker(Entry("gin", 1), graphs, SMALL), Classes(graphs), room, SMALL)


@pytest.fixture
def quick(trainer: Trainer[Epoch], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "Trainer", lambda *_: trainer)


# --- data ------------------------------------------------------------------------------------------------------------


def test_labels_and_attributes_are_features(graphs: GraphSet) -> None:
    assert (len(graphs), graphs.classes, graphs.node_features, graphs.edge_features) == (30, 2, 5, 2)
    assert graphs.labels.tolist() == [0, 1] * 15
    # Labels 7, 3, 9 have the places 1, 0, 2.
    np.testing.assert_array_equal(graphs.nodes[0], [[0, 1, 0, 0.5, -1], [1, 0, 0, 1.5, -1], [0, 0, 1, 2.5, -1]])
    assert [array.shape for array in graphs.edges[:2]] == [(2, 2), (4, 2)]
    assert all((dag.tail < dag.head).all() for dag in graphs.dags)
    assert {array.dtype for array in (*graphs.nodes, *graphs.edges)} == {np.dtype(np.float32)}


def test_nodes_without_labels_have_a_one(tmp_path: Path) -> None:
    found = load(tiny.write(tmp_path, labels=False) / tiny.NAME, tiny.NAME)
    assert (found.node_features, found.edge_features) == (1, 0)
    assert all((array == 1).all() for array in found.nodes)


def test_folds_are_ten_stratified_and_fixed(graphs: GraphSet) -> None:
    found = folds(graphs, SMALL)
    assert sorted(np.concatenate([fold.test for fold in found]).tolist()) == list(range(30))
    for fold in found:
        assert (len(fold.train), len(fold.validation), len(fold.test)) == (24, 3, 3)
        assert sorted([*fold.train, *fold.validation, *fold.test]) == list(range(30))
        assert all(1 <= graphs.labels[part].sum() <= 2 for part in (fold.validation, fold.test))
        assert graphs.labels[fold.train].sum() == 12
    again, other = folds(graphs, SMALL), folds(graphs, dataclasses.replace(SMALL, split=43))
    assert [fold.train.tolist() for fold in found] == [fold.train.tolist() for fold in again]
    assert [fold.test.tolist() for fold in found] != [fold.test.tolist() for fold in other]


def test_classes_must_be_large_enough(graphs: GraphSet) -> None:
    rare = dataclasses.replace(graphs, labels=(np.arange(30) < 9).astype(np.int32))
    with pytest.raises(StudyError, match="fewer than 10"):
        folds(rare, SMALL)


def test_the_last_batch_is_filled_up() -> None:
    first, last = minibatches(np.asarray([4, 2, 7, 1, 9]), 3)
    assert (first.graphs.tolist(), first.count) == ([4, 2, 7], 3)
    assert (last.graphs.tolist(), last.count) == ([1, 9, 4], 2)
    (only,) = minibatches(np.asarray([5, 6]), 5)
    assert (only.graphs.tolist(), only.count) == ([5, 6, 5, 6, 5], 2)


def test_an_epoch_shows_every_graph_once_in_an_order_of_its_own(graphs: GraphSet) -> None:
    fold, other, *_ = folds(graphs, SMALL)
    orders = [epoch_order(fold, epoch, SMALL).tolist() for epoch in (0, 1, 0)]
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(fold.train.tolist())
    assert epoch_order(other, 0, SMALL).tolist() != orders[0]
    assert epoch_order(fold, 0, dataclasses.replace(SMALL, seed=1)).tolist() != orders[0]


def test_one_shape_holds_every_batch(graphs: GraphSet) -> None:
    splits = folds(graphs, SMALL)
    room = bucket(graphs.dags, splits, SMALL)
    assert room.graphs == SMALL.batch
    used: list[tuple[int, int]] = []
    for fold in splits:
        for order in (evaluated(fold), *(epoch_order(fold, epoch, SMALL) for epoch in range(SMALL.epochs))):
            for part in minibatches(order, SMALL.batch):
                here = batch([graphs.dags[number] for number in part.graphs], bucket=room)
                used.append((int(here.node_start[-1]), int(here.edge_start[-1])))
    most = np.max(used, axis=0)
    assert room == Bucket(-(-(int(most[0]) + 2) // 16) * 16, -(-(int(most[1]) + 1) // 16) * 16, 8)


# --- training --------------------------------------------------------------------------------------------------------


def test_the_rate_rises_and_falls() -> None:
    rates = np.asarray([rate_at(epoch, Settings()) for epoch in range(100)])
    np.testing.assert_allclose(rates[:6], [2e-4, 4e-4, 6e-4, 8e-4, 1e-3, 1e-3])
    assert (np.diff(rates[5:]) < 0).all()
    assert rates[52] == pytest.approx(5e-4, rel=0.03)
    assert 0 < rates[99] < 1e-6
    short = Settings(epochs=3)
    np.testing.assert_allclose([rate_at(epoch, short) for epoch in range(3)], [2e-4, 4e-4, 6e-4])


def test_the_first_best_epoch_counts() -> None:
    curve = tuple(Epoch(1.0, validation, 0.0) for validation in (0.5, 0.75, 0.75, 0.25))
    assert best(curve) == 1


def test_graphs_that_fill_up_do_not_count(graphs: GraphSet, trainer: Trainer[Epoch]) -> None:
    """A step on five graphs is the same, to rounding, whatever the other three are."""
    splits = folds(graphs, SMALL)
    state, (part,) = trainer.start(splits[0]), minibatches(splits[0].train[:5], 8)
    other = dataclasses.replace(part, graphs=np.concatenate([part.graphs[:5], splits[0].train[9:12]]))
    found: list[Any] = [trainer.step(state.learned, state.optimizer, 1e-3, trainer.example(which)) for which in (part, other)]
    for one, another in zip(*(jax.tree.leaves(result) for result in found), strict=True):
        np.testing.assert_allclose(one, another, rtol=1e-3, atol=1e-6)
    counted: Any = trainer.step(state.learned, state.optimizer, 1e-3, trainer.example(dataclasses.replace(part, count=8)))
    assert float(counted[2]) > float(found[0][2]) + 0.1


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def unbroken(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unbroken")
    study.run(dataclasses.replace(SMALL, data=folder, out=out), QUIET)
    return out


def test_what_a_run_leaves_behind(unbroken: Path) -> None:
    names = ["TINY/gin-1/fold-0.json", "TINY/gin-1/fold-1.json"]
    assert list(files(unbroken)) == [*names, "accuracy.svg", "curves-TINY.svg", "results.json", "results.md"]
    found = json.loads((unbroken / names[1]).read_text())
    assert len(found["curve"]) == 3
    assert found["fold"] == 1
    assert found["settings"]["epochs"] == 3
    assert "| GIN | 0." in (unbroken / "results.md").read_text()


class Killed(BaseException):
    """As if the process had been killed: nothing is to catch it."""


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("stops", "before"), [((1, 2, 2), False), ((3, 1), True)])
def test_a_run_that_is_killed_goes_on_to_the_bit(
    folder: Path, tmp_path: Path, unbroken: Path, monkeypatch: pytest.MonkeyPatch, stops: tuple[int, ...], before: bool
) -> None:
    """Killed so many epochs after each start, before or after the epoch is written down; then once without."""
    settings, keep = dataclasses.replace(SMALL, data=folder, out=tmp_path / "out"), Place.keep_state
    left = 0

    def stopping(self: Place[Epoch], fold: int, state: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0 and before:
            (self.folder / ".stmlang-half.tmp").write_bytes(b"half a fi")
            raise Killed
        keep(self, fold, state)
        if left == 0:
            raise Killed

    monkeypatch.setattr(Place, "keep_state", stopping)
    for stop in stops:
        left = stop
        with pytest.raises(Killed):
            study.run(settings, QUIET)
    monkeypatch.undo()
    study.run(settings, QUIET)
    found = files(tmp_path / "out")
    found.pop("TINY/gin-1/.stmlang-half.tmp", None)
    assert found == files(unbroken)


def test_what_is_done_is_not_done_again(folder: Path, unbroken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "Trainer", None)
    before = files(unbroken)
    study.run(dataclasses.replace(SMALL, data=folder, out=unbroken), QUIET)
    assert files(unbroken) == before


def test_other_settings_are_refused(folder: Path, unbroken: Path) -> None:
    with pytest.raises(StudyError, match="made with other settings: epochs, rate"):
        study.run(dataclasses.replace(SMALL, data=folder, out=unbroken, epochs=4, rate=0.1), QUIET)


@pytest.mark.parametrize("name", ["fold-0.json", "fold-0.npz"])
def test_files_that_are_none_of_ours_are_refused(folder: Path, tmp_path: Path, name: str) -> None:
    place = tmp_path / tiny.NAME / "gin-1" / name
    place.parent.mkdir(parents=True)
    place.write_bytes(b"[]")
    with pytest.raises(StudyError, match=f"{name} cannot be read") as caught:
        study.run(dataclasses.replace(SMALL, data=folder, out=tmp_path), QUIET)
    assert "delete it" in caught.value.help


@pytest.mark.slow
def test_every_model_goes_on_to_the_bit(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of each. Each run compiles for itself, as one in another process does."""
    settings, keep = dataclasses.replace(SMALL, data=folder, models=MODELS, folds=1), Place.keep_state

    def stopping(self: Place[Epoch], fold: int, state: Any) -> None:
        keep(self, fold, state)
        if len(state.curve) == 2:
            raise Killed

    study.run(dataclasses.replace(settings, out=tmp_path / "whole"), QUIET)
    monkeypatch.setattr(Place, "keep_state", stopping)
    for _ in MODELS:
        with pytest.raises(Killed):
            study.run(dataclasses.replace(settings, out=tmp_path / "parts"), QUIET)
    study.run(dataclasses.replace(settings, out=tmp_path / "parts"), QUIET)
    assert files(tmp_path / "whole") == files(tmp_path / "parts")


# --- tables ----------------------------------------------------------------------------------------------------------


def result(fold: int, *accuracies: tuple[float, float]) -> Result[Epoch]:
    return Result(fold, 1234, tuple(Epoch(1.0, validation, test) for validation, test in accuracies), "d")


FOUND = {
    "MUTAG": {
        Entry("plstm", None): [result(0, (0.5, 0.1), (0.75, 0.9), (0.75, 0.2)), result(1, (0.5, 0.7), (0.25, 1.0))],
        Entry("gin", 4): [result(0, (0.8, 0.3)), result(1, (0.8, 0.5))],
        Entry("gin", 8): [result(0, (0.9, 0.2)), result(1, (0.7, 0.4))],
    },
    "OWN": {Entry("gin", 4): [result(0, (0.5, 0.25))], Entry("gin", 8): [result(0, (0.6, 0.5))]},
}


def test_validation_accuracy_chooses_the_depth() -> None:
    assert {model: score.entry.depth for model, score in chosen(FOUND["MUTAG"]).items()} == {"plstm": None, "gin": 4}
    assert chosen(FOUND["OWN"])["gin"].entry.depth == 8


def test_the_table_stands_beside_the_paper() -> None:
    lines = table(FOUND).splitlines()
    assert lines[0] == "| model | MUTAG | OWN | mean |"
    assert lines[2] == "| pLSTM | 0.8000 ± 0.10 (0.8512 ± 0.06) |  | 0.8000 |"
    assert lines[3] == "| GIN | 0.4000 ± 0.10, 4 (0.8251 ± 0.10) | 0.5000 ± 0.00, 8 | 0.4500 |"
    assert "over 1 or 2 of ten folds" in lines[5]
    assert lines[7].endswith(" is, on MUTAG: pLSTM 0.6000, GIN 0.4000; on OWN: GIN 0.5000.")


def test_results_hold_every_fold() -> None:
    found = as_json(FOUND, SMALL)["sets"]["MUTAG"]
    assert found["plstm"]["tests"] == [0.9, 0.7]
    assert found["plstm"]["paper"] == (0.8512, 0.06)
    assert [found[name]["chosen"] for name in ("plstm", "gin-4", "gin-8")] == [True, True, False]


# --- the command line ------------------------------------------------------------------------------------------------


def test_command_line() -> None:
    assert parse([]) == Settings()
    given = parse(["--sets", "MUTAG", "--models", "gin", "plstm", "--depths", "8", "4", "--folds", "2", "--seed", "7"])
    assert given == Settings(sets=("MUTAG",), models=("gin", "plstm"), folds=2, seed=7)
    wrong = (
        ["--folds", "11"],
        ["--epochs", "0"],
        ["--seed", "-1"],
        ["--seed", str(2**31)],
        ["--depths", "0"],
        ["--sets", "../x"],
        ["--models", "x"],
    )
    for words in wrong:
        with pytest.raises(SystemExit):
            parse(words)


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(tmp_path), "--sets", "MUTAG", "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().out
    assert "STM3401" in said
    assert "Traceback" not in said
    (tmp_path / "file").write_text("")
    data = tiny.write(tmp_path)
    assert main(["--data", str(data), "--sets", tiny.NAME, "--models", "gcn", "--out", str(tmp_path / "file")]) == 1
    assert "file" in capsys.readouterr().err


def test_a_run_that_is_stopped_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "run", stopped)
    with pytest.raises(KeyboardInterrupt):  # in a process of its own it ends with 130: tests/cli/test_stopping.py
        main([])
    assert "goes on from here" in capsys.readouterr().out
