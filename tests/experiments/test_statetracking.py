"""The study of word problems: its groups, its words, what learns them, a short run of the whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from stmlang.experiments.statetracking.__main__ import main, parse
from stmlang.experiments.statetracking.groups import Drawn, Name, Nodes, group, words
from stmlang.experiments.statetracking.models import SPECS, scan
from stmlang.experiments.statetracking.report import command, page, write
from stmlang.experiments.statetracking.settings import ABLE, MODELS, ON_GRIDS, Model, Settings, form, group_of
from stmlang.experiments.statetracking.study import Judged, Result, run
from stmlang.experiments.training.settings import Training
from tests.helpers.data import data_folder

NAMES: tuple[Name, ...] = ("z2", "s3", "a5")
ROOT = Path(__file__).parents[2]

# --- groups and words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["s3", "a5"])
def test_tables_and_products_are_those_of_the_files(name: Name) -> None:
    with np.load(data_folder("golden/zoo") / f"state_tracking_{name}.npz") as file:
        np.testing.assert_array_equal(group(name).perms, file["perms"])
        np.testing.assert_array_equal(group(name).mul, file["mul"])
        tokens, labels = file["test_tokens_64"], file["test_labels_64"]
    for place in range(1, 64):
        np.testing.assert_array_equal(group(name).mul[labels[:, place - 1], tokens[:, place]], labels[:, place])


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_groups(name: Name) -> None:
    elements = group(name)
    mul, numbers = elements.mul, np.arange(elements.order)
    np.testing.assert_array_equal(mul[0], numbers)
    np.testing.assert_array_equal(mul[:, 0], numbers)
    np.testing.assert_array_equal(np.sort(mul, axis=0), np.tile(numbers[:, None], elements.order))
    np.testing.assert_array_equal(mul[mul], mul[numbers[:, None, None], mul])  # associative
    assert (elements.order, bool((mul == mul.T).all())) == ({"z2": 2, "s3": 6, "a5": 60}[name], name == "z2")


def test_words_are_products_in_the_order_of_reading() -> None:
    elements = group("s3")
    drawn = words(elements, Nodes("chain", 9), 20, np.random.default_rng(0))
    assert (drawn.tokens[:, 0] == elements.order).all()
    assert not drawn.counted[:, 0].any()
    assert drawn.counted[:, 1:].all()
    for tokens, labels in zip(drawn.tokens[:, 1:], drawn.labels[:, 1:], strict=True):
        images = np.arange(3)
        for token, label in zip(tokens, labels, strict=True):
            images = elements.perms[token][images]
            np.testing.assert_array_equal(images, elements.perms[label])


def test_words_on_grids_go_along_the_first_row_and_down() -> None:
    elements = group("a5")
    drawn = words(elements, Nodes("grid", 4), 5, np.random.default_rng(0), reach=3)
    for tokens, labels, counted in zip(drawn.tokens, drawn.labels, drawn.counted, strict=True):
        for row, col in np.ndindex(4, 4):
            product = 0
            for token in [*tokens[0, 1 : col + 1], *tokens[1 : row + 1, col]]:
                product = elements.mul[product, token]
            assert labels[row, col] == product
            assert counted[row, col] == (1 <= row + col <= 3)


def test_batches_depend_on_seed_and_step_alone() -> None:
    def source(seed: int) -> Drawn:
        return Drawn(group("a5"), Nodes("chain", 7), 5, seed=seed, steps=20)

    first, again = source(3), source(3).batch(11)
    first.batch(2)
    np.testing.assert_array_equal(first.batch(11).tokens, again.tokens)
    np.testing.assert_array_equal(first.batch(11).labels, again.labels)
    for other in (first.batch(12), source(4).batch(11)):
        assert (other.tokens != again.tokens).any()


def test_labels_count_near_the_start_first_and_all_at_the_end() -> None:
    source = Drawn(group("s3"), Nodes("chain", 32), 1, seed=0, steps=100)
    reaches = [source.reach(step) for step in range(100)]
    assert reaches == sorted(reaches)
    assert (reaches[0], reaches[49], reaches[65], reaches[80], reaches[99]) == (2, 2, 17, 32, 32)
    assert [int(source.batch(step).counted.sum()) for step in (0, 65, 99)] == [2, 17, 32]
    assert Drawn(group("s3"), Nodes("chain", 1), 1, seed=0, steps=1).reach(0) == 1


def test_words_grow_with_the_products_that_are_asked_for() -> None:
    source = Drawn(group("a5"), Nodes("chain", 20), 4, seed=0, steps=100, growing=True)
    sizes = [source.laid(step).size for step in range(100)]
    assert list(dict.fromkeys(sizes)) == [2, 4, 8, 16, 20]
    for step in (0, 60, 99):
        batch = source.batch(step)
        assert batch.tokens.shape == (4 * 21 // (sizes[step] + 1), sizes[step] + 1)
        assert int(batch.counted[0].sum()) == source.reach(step)
    assert [source.reach(step) for step in (0, 29, 40, 55, 80, 99)] == [2, 2, 3, 6, 20, 20]
    assert [replace(source, nodes=Nodes("grid", 5)).laid(step).size for step in (0, 60, 99)] == [2, 4, 5]


# --- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_no_transition_grows(model: Model) -> None:
    """However many writes a node of `rotation` has."""
    assert scan(model, "chain", 2, 4, writes=3).at((9,)).facts.verdict.kind.startswith("proved")
    if model in ON_GRIDS:
        assert scan(model, "grid", 2, 4, writes=3).at((3, 4)).facts.verdict.kind.startswith("proved")


def test_models_are_those_of_the_specs() -> None:
    assert {model for model, on in SPECS if on == "chain"} == set(MODELS)
    assert {model for model, on in SPECS if on == "grid"} == set(ON_GRIDS)
    assert set(ABLE) <= set(MODELS)
    assert [(form(problem), group_of(problem)) for problem in ("a5", "z2-grid")] == [("chain", "a5"), ("grid", "z2")]


# --- the command -----------------------------------------------------------------------------------------------------


def test_command_line() -> None:
    assert parse([]) == Settings()
    words = ["--problems", "a5", "s3-grid", "--models", "gla", "rotation", "--tests", "8", "16", "--seed", "7", "--seeds", "2"]
    settings = parse([*words, "--scale", "small", "--growing"])
    assert (settings.problems, settings.models, settings.tests) == (("a5", "s3-grid"), ("gla", "rotation"), (8, 16))
    runs = [
        (run.problem, run.model, run.training.seed, run.training.steps)
        for name in settings.problems
        for run in settings.runs(name)
    ]
    assert runs == [
        ("a5", "gla", 7, 50),
        ("a5", "rotation", 7, 50),
        ("a5", "rotation", 8, 50),
        ("s3-grid", "rotation", 7, 50),
        ("s3-grid", "rotation", 8, 50),
    ]
    assert "--problems a5 s3-grid --models gla rotation" in command(settings)
    assert parse(command(settings).split()[3:]) == settings
    written = parse(["--problems", "a5", "--models", "rotation", "--writes", "3"])
    assert {run.writes for run in written.runs("a5")} == {3}
    assert "a node of `rotation` writes 3 times" in page([], written)
    assert "writes" not in page([], settings).split("differ in")[0]


@pytest.mark.parametrize(
    "words",
    [
        ["--problems", "s4"],
        ["--models", "lstm"],
        ["--models", "gla"],  # there is none on grids, and a grid is asked for
        ["--seeds", "0"],
        ["--tests", "0"],
        ["--sides", "1"],
        ["--dim", "0"],
        ["--writes", "0"],
        ["--devices", "2"],
        ["--steps", "x"],
    ],
)
def test_wrong_command_lines_end_with_two(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(words)
    assert stop.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_a_run_writes_its_page_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, report = tmp_path / "out", tmp_path / "page.md"
    options = [
        "--problems",
        "z2",
        "z2-grid",
        "--models",
        "plstm",
        "--others",
        "1",
        "--steps",
        "4",
        "--batch",
        "4",
        "--log",
        "2",
    ]
    sizes = ["--length", "4", "--tests", "4", "6", "--side", "2", "--sides", "3", "--count", "8", "--dim", "8", "--width", "4"]
    words = [*options, *sizes, "--out", str(out)]
    assert main([*words, "--report", str(report)]) == 0
    assert f"wrote {out / 'statetracking.json'}" in capsys.readouterr().out
    stored = json.loads((out / "statetracking.json").read_text())
    assert [(result["problem"], result["seed"]) for result in stored["results"]] == [("z2", 0), ("z2-grid", 0)]
    assert report.read_text() == (out / "statetracking.md").read_text()

    # Nothing is left to do, so that the numbers are the same; with other settings it is another run.
    assert main([*words, "--resume"]) == 0
    again = json.loads((out / "statetracking.json").read_text())
    assert [result["tests"] for result in again["results"]] == [result["tests"] for result in stored["results"]]
    assert main([*words, "--resume", "--length", "5"]) == 1
    assert "other settings: size" in capsys.readouterr().out


def test_the_page_has_means_and_the_worst(tmp_path: Path) -> None:
    training = Training(steps=4, out=tmp_path)
    settings = Settings(training, problems=("s3",), models=("gla", "rotation"), seeds=2, tests=(8, 32))
    shares: list[tuple[Model, int, float]] = [("gla", 0, 0.25), ("rotation", 0, 1.0), ("rotation", 1, 0.5)]
    results = [
        Result("s3", model, seed, 1234, 1.0, 0.5, (Judged(8, share, 0.5), Judged(32, 0.25, 0.125)))
        for model, seed, share in shares
    ]
    text = page(results, settings)
    assert "| `std:chain/gla` | diagonal, between 0 and 1 | 25.0% | 25.0% | 50.0% | 12.5% |" in text
    assert "| `rotation` | two vectors reflected | 75.0% (50.0%) | 25.0% (25.0%) | 50.0% (50.0%) | 12.5% (12.5%) |" in text
    assert "S3, the permutations of three points, along chains" in text
    assert write(results, settings) == [tmp_path / "statetracking.json", tmp_path / "statetracking.md"]


def on_short_words(out: Path, *models: Model) -> list[Result]:
    """Trained on S3, words of 6."""
    training = Training(steps=300, batch=64, rate=1e-2, log=50, out=out)
    settings = Settings(training, problems=("s3",), models=models, seeds=1, length=6, tests=(6, 24), dim=32)
    return run(replace(settings, count=64), Console(quiet=True))


def test_rotations_learn(tmp_path: Path) -> None:
    (rotation,) = on_short_words(tmp_path, "rotation")
    assert rotation.loss < 0.1
    assert rotation.tests[0].nodes > 0.95


@pytest.mark.slow
def test_rotations_learn_what_decays_do_not(tmp_path: Path) -> None:
    """Whoever can do no more than forget is told apart from who can turn."""
    decay, rotation = on_short_words(tmp_path, "gla", "rotation")
    assert rotation.loss < 0.1 < 0.8 < decay.loss
    assert rotation.tests[0].nodes > 0.95 > 0.7 > decay.tests[0].nodes
    assert rotation.tests[1].last > 2 * decay.tests[1].last


def test_the_page_in_the_documents_is_of_this_study() -> None:
    """Its commands are such as there are, and the tables behind each have the rows that it trains."""
    text = (ROOT / "docs" / "results" / "statetracking.md").read_text()
    _, *parts = re.split(r"^    (?=python -m )", text, flags=re.MULTILINE)
    assert parts
    for part in parts:
        settings = parse(part.splitlines()[0].split()[3:])
        for problem in settings.problems:
            for trained in settings.runs(problem):
                assert f"| {trained.model} | {trained.training.seed} |" in part
