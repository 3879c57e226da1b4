"""The digits study: its data, its report, and a short run of the whole."""

from __future__ import annotations

import dataclasses
import html
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from stmlang.experiments.digits import study
from stmlang.experiments.digits.__main__ import main, parse
from stmlang.experiments.digits.data import batches, load, shifted
from stmlang.experiments.digits.report import Outcome
from stmlang.experiments.digits.settings import TRAINING, Settings
from stmlang.experiments.digits.study import run
from stmlang.experiments.training.settings import Training, meanings


def test_split_is_fixed_and_stratified() -> None:
    train, test = load()
    assert (len(train), len(test)) == (1437, 360)
    assert set(np.bincount(test.labels)) <= {35, 36, 37}
    seen = {image.tobytes() for image in train.pixels}
    assert sum(image.tobytes() in seen for image in test.pixels) == 0
    assert train.pixels.min() == 0
    assert train.pixels.max() == 1
    again, _ = load()
    np.testing.assert_array_equal(train.pixels, again.pixels)


def test_shifts_move_whole_images() -> None:
    train, _ = load()
    pixels = train.pixels[:50]
    moved = shifted(pixels, 1, np.random.default_rng(0))
    assert moved.shape == pixels.shape
    for image, original in zip(moved, pixels, strict=True):
        wide = np.pad(original, ((1, 1), (1, 1), (0, 0)))
        assert any(np.array_equal(image, wide[i : i + 8, j : j + 8]) for i in range(3) for j in range(3))
    np.testing.assert_array_equal(shifted(pixels, 0, np.random.default_rng(0)), pixels)


def test_batches_are_full_and_show_every_image_once() -> None:
    train, _ = load()
    source = batches(train, Training(batch=64), 0)
    assert source.steps_an_epoch == 1437 // 64
    epochs = [[source.batch(step + source.steps_an_epoch * epoch)[0] for step in range(1437 // 64)] for epoch in (0, 1)]
    shown = [sorted(image.tobytes() for batch in epoch for image in batch) for epoch in epochs]
    assert {len(batch) for batch in epochs[0]} == {64}
    known = Counter(image.tobytes() for image in train.pixels)
    assert all(Counter(images) <= known for images in shown)
    assert shown[0] != shown[1]


def test_command_line() -> None:
    assert parse([]) == Settings()
    training = dataclasses.replace(TRAINING, epochs=3, seed=7, out=Path("x"))
    assert parse(["--epochs", "3", "--seed", "7", "--out", "x", "--dim", "8"]) == Settings(training=training, dim=8)
    with pytest.raises(SystemExit):
        parse(["--epochs", "0"])


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One epoch of a model that is as small as it gets."""
    out = tmp_path_factory.mktemp("digits")
    return run(
        Settings(
            training=dataclasses.replace(TRAINING, epochs=1, out=out), dim=8, heads=1, width=4, pairs=1, expansion=1, stride=4
        ),
        Console(quiet=True),
    )


def test_report_needs_nothing_else(small: Outcome) -> None:
    tmp_path = small.settings.training.out
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "checkpoints",
        "config.json",
        "image_d.cpu.stmx",
        "image_d.gpu.stmx",
        "image_p.cpu.stmx",
        "image_p.gpu.stmx",
        "log.jsonl",
        "report.html",
    ]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 8
    assert not re.search(r"(src|href)=\"(?!#|data:)", page)
    assert not re.search(r"url\((?!#)|@import|<script|<link", page)
    for part in (
        "P layer",
        "D layer",
        "before training",
        "after training",
        "std:plstm/image_p",
        "chosen",
        "SHA-256",
        "viewport",
    ):
        assert part in page


def test_report_says_what_each_setting_is(small: Outcome) -> None:
    page = (small.settings.training.out / "report.html").read_text()
    own = [field.name for field in dataclasses.fields(Settings)][1:]
    assert list(meanings(Settings)) == [*(field.name for field in dataclasses.fields(Training)), *own]
    for name, says in meanings(Settings).items():
        assert says
        assert f"<td>{name}</td>" in page
        assert html.escape(says) in page


def test_fields_are_of_one_network_and_one_image(small: Outcome) -> None:
    """Before and after differ by training alone: the same grid, heads and node."""
    for field in small.fields.layers:
        assert field.before.shape == field.after.shape == (2, 2, 1)
        assert field.source == (1, 1)
        assert np.isfinite(field.before).all()
        assert not np.array_equal(field.before, field.after)


def test_mistakes_are_those_of_the_confusion_matrix(small: Outcome) -> None:
    counted = np.zeros((10, 10), int)
    for mistake in small.mistakes:
        counted[mistake.digit, mistake.predicted] += 1
    np.testing.assert_array_equal(counted, small.confusion - np.diag(np.diag(small.confusion)))
    shares = [mistake.share for mistake in small.mistakes]
    assert shares == sorted(shares, reverse=True)
    assert len(small.mistakes) == small.images - small.right


@pytest.mark.parametrize(("accuracy", "status"), [(0.98, 0), (0.97, 0), (0.9, 1)])
def test_exit_status_says_whether_the_target_was_reached(
    small: Outcome, accuracy: float, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study, "run", lambda *_: dataclasses.replace(small, accuracy=accuracy))
    assert main([]) == status
    said = capsys.readouterr().out
    assert f"test accuracy {accuracy:.2%}" in said
    assert ("below the target of 97%" in said) == bool(status)


@pytest.mark.slow
def test_whole_run_reaches_its_target_and_repeats_to_the_bit(tmp_path: Path) -> None:
    digests: list[str] = []
    for name in ("first", "second"):
        assert main(["--out", str(tmp_path / name)]) == 0
        found = re.search(r"digest <code>([0-9a-f]{64})", (tmp_path / name / "report.html").read_text())
        assert found is not None
        digests.append(found[1])
    assert digests[0] == digests[1]
