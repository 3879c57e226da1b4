"""The study of small graphs: its data and folds, runs that are stopped, its tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from rich.console import Console

from stmlang.experiments.folds.graphs import bucket, dealt, judged, node_counts, trained
from stmlang.experiments.folds.kept import RESULT, Result
from stmlang.experiments.folds.problem import Learner
from stmlang.experiments.training.checkpoints import Checkpoints
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.optimizers import schedule
from stmlang.experiments.tudataset import study
from stmlang.experiments.tudataset.__main__ import main, parse
from stmlang.experiments.tudataset.data import folds, load
from stmlang.experiments.tudataset.report import as_json, chosen, curves, table
from stmlang.experiments.tudataset.settings import MODELS, TRAINING, Entry, Settings
from stmlang.graph import Bucket, GraphSet, batch
from tests.experiments import tiny

QUIET = Console(quiet=True)
TINY = replace(TRAINING, epochs=3, batch=8, checkpoint=0.0)
SMALL = Settings(TINY, sets=(tiny.NAME,), models=("gin",), depths=(1,), folds=2, hidden=8, dim=4, heads=1, width=2)


def at(out: Path, settings: Settings = SMALL, **changes: Any) -> Settings:
    """The same in a folder, with other settings of training where they are given."""
    return replace(settings, training=replace(settings.training, out=out, **changes))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def graphs(folder: Path) -> GraphSet:
    return load(folder / tiny.NAME, tiny.NAME)


@pytest.fixture(scope="module")
def learner(graphs: GraphSet) -> Learner:
    """What runs of `SMALL` share here, so that each need not compile the same programs."""
    return study.learner(Entry("gin", 1), graphs, folds(graphs, SMALL), SMALL)


@pytest.fixture
def quick(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "learner", lambda *_: learner)


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
    again, other = folds(graphs, SMALL), folds(graphs, replace(SMALL, split=43))
    assert [fold.train.tolist() for fold in found] == [fold.train.tolist() for fold in again]
    assert [fold.test.tolist() for fold in found] != [fold.test.tolist() for fold in other]


def test_classes_must_be_large_enough(graphs: GraphSet) -> None:
    rare = replace(graphs, labels=(np.arange(30) < 9).astype(np.int32))
    with pytest.raises(TrainingError, match="fewer than 10"):
        folds(rare, SMALL)


@pytest.mark.parametrize(("count", "most"), [(24, 8), (25, 8), (7, 8), (23, 4), (1, 1)])
def test_batches_are_few_and_of_like_size(count: int, most: int) -> None:
    sizes = np.random.default_rng(0).integers(3, 100, 40) ** 2
    numbers = np.random.default_rng(1).permutation(40)[:count]
    batches = dealt(numbers, sizes, most, np.random.default_rng(2))
    assert sorted(np.concatenate(batches).tolist()) == sorted(numbers.tolist())
    counts = [len(part) for part in batches]
    assert len(counts) == -(-count // most)
    assert max(counts) <= most
    assert max(counts) - min(counts) <= 1
    # Of any two batches, the one has in every round no more than the other in the round before.
    sums = [sizes[part].sum() for part in batches]
    assert max(sums) - min(sums) <= sizes[numbers].max()


def test_an_epoch_shows_every_graph_once_in_an_order_of_its_own(graphs: GraphSet) -> None:
    fold, other, *_ = folds(graphs, SMALL)
    sizes = node_counts(graphs.dags)
    orders = [np.concatenate(trained(fold, epoch, sizes, TINY)).tolist() for epoch in (0, 1, 0)]
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(fold.train.tolist())
    assert np.concatenate(trained(other, 0, sizes, TINY)).tolist() != orders[0]
    assert np.concatenate(trained(fold, 0, sizes, replace(TINY, seed=1))).tolist() != orders[0]
    asked = [np.concatenate(judged(fold, sizes, replace(TINY, seed=seed))).tolist() for seed in (0, 1)]
    assert asked[0] == asked[1]
    assert sorted(asked[0]) == sorted([*fold.validation, *fold.test])


def test_one_shape_holds_every_batch(graphs: GraphSet) -> None:
    splits, sizes = folds(graphs, SMALL), node_counts(graphs.dags)
    room = bucket(graphs.dags, splits, TINY)
    assert room == bucket(graphs.dags, splits, replace(TINY, steps=9))
    used: list[tuple[int, int]] = []
    for fold in splits:
        epochs = [trained(fold, epoch, sizes, TINY) for epoch in range(TINY.epochs)]
        for numbers in (part for parts in (judged(fold, sizes, TINY), *epochs) for part in parts):
            here = batch([graphs.dags[number] for number in numbers], bucket=room)
            used.append((int(here.node_start[-1]), int(here.edge_start[-1])))
    most = np.max(used, axis=0)
    assert room == Bucket(-(-(int(most[0]) + 2) // 16) * 16, -(-(int(most[1]) + 1) // 16) * 16, 8)


# --- training --------------------------------------------------------------------------------------------------------


def test_the_rate_rises_and_falls() -> None:
    rates = np.asarray([float(schedule(Settings().training, 1400)(step)) for step in range(1401)])
    np.testing.assert_allclose(rates[[0, 35, 70, 1400]], [0, 5e-4, 1e-3, 0], atol=1e-9)
    assert (np.diff(rates[:71]) > 0).all()
    assert (np.diff(rates[70:]) < 0).all()


def test_padding_does_not_count(graphs: GraphSet, learner: Learner) -> None:
    """The loss of five graphs is the mean of those of each."""
    numbers = folds(graphs, SMALL)[0].train[:5]
    model, key = learner.model, jax.random.key(0)
    examples = [learner.example(part) for part in (numbers, *np.split(numbers, 5))]
    assert [int(example.counts.sum()) for example in examples] == [5, 1, 1, 1, 1, 1]
    together, *alone = [float(eqx.filter_jit(learner.loss)(model, example, key)[0]) for example in examples]
    assert together == pytest.approx(np.mean(alone), rel=1e-4)


def test_measures_are_of_their_graphs(graphs: GraphSet, learner: Learner) -> None:
    """Whatever order the batches have."""
    fold, labels = folds(graphs, SMALL)[0], np.asarray(graphs.labels)
    order = np.random.default_rng(0).permutation(np.concatenate([fold.validation, fold.test]))
    said = np.where(np.isin(order, fold.test), labels[order], 1 - labels[order])
    said[order == fold.validation[0]] = labels[fold.validation[0]]
    assert learner.problem.measures(said, order, fold) == {"accuracy": pytest.approx(1 / 3), "test": 1.0}


WHAT = ("result.json", "log.jsonl")


def files(out: Path) -> dict[str, bytes]:
    """What equal runs have alike: results and logs of folds, tables and figures."""
    found = [path for path in sorted(out.rglob("*")) if path.name in WHAT or (path.parent == out and path.is_file())]
    return {str(path.relative_to(out)): path.read_bytes() for path in found if path.name != "results.json"}


@pytest.fixture(scope="module")
def unbroken(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unbroken")
    study.run(replace(at(out), data=folder), QUIET)
    return out


def test_what_a_run_leaves_behind(unbroken: Path) -> None:
    names = [f"TINY/gin-1/fold-{fold}/{name}" for fold in (0, 1) for name in ("log.jsonl", "result.json")]
    assert list(files(unbroken)) == [*names, "accuracy.svg", "curves-TINY.svg", "results.md"]
    fold = unbroken / "TINY/gin-1/fold-1"
    assert {path.name for path in fold.iterdir()} == {*WHAT, "config.json", "checkpoints", "report.html"}
    found = json.loads((fold / RESULT).read_text())
    assert (found["result"]["fold"], found["result"]["steps"], found["settings"]["epochs"]) == (1, 9, 3)
    assert [line["step"] for line in found["result"]["validation"]] == [3, 6, 9]
    assert "| GIN | 0." in (unbroken / "results.md").read_text()
    assert json.loads((unbroken / "results.json").read_text())["sets"]["TINY"]["gin-1"]["folds"] == 2


class Killed(BaseException):
    """As if the process had been killed: nothing is to catch it."""


def stopping(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stops a run at the checkpoint of that number, counted from when it was set in the list, before it is written."""
    left, keep = [0], Checkpoints.keep

    def kept(self: Checkpoints, *what: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        keep(self, *what)

    monkeypatch.setattr(Checkpoints, "keep", kept)
    return left


@pytest.mark.usefixtures("quick")
def test_a_run_that_is_killed_goes_on_to_the_bit(
    folder: Path, tmp_path: Path, unbroken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed so many steps after each start, in the midst of an epoch and at its end; then once without."""
    settings = replace(at(tmp_path / "out"), data=folder)
    left = stopping(monkeypatch)
    for number, stop in enumerate((5, 6, 4)):
        left[0] = stop
        with pytest.raises(Killed):
            study.run(at(tmp_path / "out", settings, resume=number > 0), QUIET)
    with pytest.raises(TrainingError, match="lies a study"):
        study.run(settings, QUIET)
    left[0] = 99
    study.run(at(tmp_path / "out", settings, resume=True), QUIET)
    assert files(tmp_path / "out") == files(unbroken)


def test_what_is_done_is_not_done_again(folder: Path, unbroken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "learner", None)
    before = files(unbroken)
    study.run(replace(at(unbroken, resume=True), data=folder), QUIET)
    study.run(replace(at(unbroken, resume=True), data=folder, folds=1), QUIET)
    study.run(replace(at(unbroken, resume=True), data=folder), QUIET)
    assert files(unbroken) == before


def test_other_settings_are_refused(folder: Path, unbroken: Path) -> None:
    with pytest.raises(TrainingError, match="made with other settings: epochs, rate"):
        study.run(replace(at(unbroken, resume=True, epochs=4, rate=0.1), data=folder), QUIET)


def test_files_that_are_none_of_ours_are_refused(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / tiny.NAME / "gin-1" / "fold-0" / RESULT
    place.parent.mkdir(parents=True)
    place.write_bytes(b"[]")
    with pytest.raises(TrainingError, match=r"result\.json cannot be read") as caught:
        study.run(replace(at(tmp_path), data=folder), QUIET)
    assert "delete it" in caught.value.help


@pytest.mark.slow
def test_every_model_goes_on_to_the_bit(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of each. Each run compiles for itself, as one in another process does."""
    settings = replace(SMALL, data=folder, models=MODELS, folds=1)
    study.run(at(tmp_path / "whole", settings), QUIET)
    left = stopping(monkeypatch)
    for number in range(len(MODELS)):
        left[0] = 6 if number == 0 else 9 - 5 + 6
        with pytest.raises(Killed):
            study.run(at(tmp_path / "parts", settings, resume=number > 0), QUIET)
    left[0] = 99
    study.run(at(tmp_path / "parts", settings, resume=True), QUIET)
    assert files(tmp_path / "whole") == files(tmp_path / "parts")


# --- tables ----------------------------------------------------------------------------------------------------------


def result(fold: int, *accuracies: tuple[float, float]) -> Result:
    """Of a run with a step an epoch."""
    judgements = [{"step": k + 1, "accuracy": validation, "test": test} for k, (validation, test) in enumerate(accuracies)]
    losses = [{"step": k + 1, "loss": 1.0} for k in range(len(accuracies))]
    best = max(judgements, key=lambda judgement: judgement["accuracy"])
    return Result(fold, 1234, len(losses), int(best["step"]), losses, judgements, "d")


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


def test_curves_of_folds_that_ended_early_are_drawn() -> None:
    assert "<svg" in curves(FOUND["MUTAG"])


def test_results_hold_every_fold() -> None:
    found = as_json(FOUND, SMALL)["sets"]["MUTAG"]
    assert found["plstm"]["tests"] == [0.9, 0.7]
    assert found["plstm"]["paper"] == (0.8512, 0.06)
    assert [found[name]["chosen"] for name in ("plstm", "gin-4", "gin-8")] == [True, True, False]


# --- the command line ------------------------------------------------------------------------------------------------


def test_command_line() -> None:
    assert parse([]) == Settings()
    given = parse(["--sets", "MUTAG", "--models", "gin", "plstm", "--depths", "8", "4", "--folds", "2", "--seed", "7"])
    training = replace(TRAINING, seed=7)
    assert given == Settings(training, sets=("MUTAG",), models=("gin", "plstm"), depths=(8, 4), folds=2)
    assert [str(entry) for entry in study.entries(given)] == ["gin-4", "gin-8", "plstm"]


@pytest.mark.parametrize(
    "words",
    [
        ["--folds", "11"],
        ["--epochs", "0"],
        ["--seed", "-1"],
        ["--seed", str(2**31)],
        ["--depths", "0"],
        ["--sets", "../x"],
        ["--models", "x"],
        ["--devices", "2"],
    ],
)
def test_wrong_options_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(words)
    assert stop.value.code == 2
    assert words[0] in capsys.readouterr().err.replace("_", "-")


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
    assert "with --resume goes on" in capsys.readouterr().out
