"""The study of images: how they are read, batches in processes of their own, the recipes, a short run of the whole."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from stmlang.experiments.imagenet.__main__ import main, parse
from stmlang.experiments.imagenet.learning import Judged, accuracy, confusion, entropy, loss
from stmlang.experiments.imagenet.models import made
from stmlang.experiments.imagenet.reading import Files, Members, held_out, opened
from stmlang.experiments.imagenet.recipes import SIZES, recipe
from stmlang.experiments.imagenet.report import NAMES, Result, command, page
from stmlang.experiments.imagenet.settings import RECIPES, Model, Settings, Size
from stmlang.experiments.imagenet.study import source
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.fitting import Task, fit
from stmlang.experiments.training.state import digest
from stmlang.models.counting import parameters
from stmlang.models.weights import save

ROOT = Path(__file__).parents[2]
SIDE = 16
CLASSES = ("bird", "cat")


def encoded(number: int, label: int, grey: bool = False) -> bytes:
    """A picture, dark in the first class and light in the second."""
    pixels = np.random.default_rng(number).integers(0, 100, (SIDE, SIDE, 3), np.uint8) + np.uint8(150 * label)
    stream = io.BytesIO()
    Image.fromarray(pixels[..., 0] if grey else pixels).save(stream, "png")
    return stream.getvalue()


def pictures(count: int) -> dict[str, bytes]:
    """So many pictures by name, half of them of each class."""
    return {f"{CLASSES[number % 2]}/{number:03d}.png": encoded(number, number % 2, number == 3) for number in range(count)}


def archive(path: Path, members: Mapping[str, bytes], mode: Any = "w:") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as file:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return path


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["folders", "one", "compressed", "shards", "classes", "webdataset"])
def test_layouts_hold_the_same_images(layout: str, tmp_path: Path) -> None:
    members, path = pictures(6), tmp_path / "images"
    match layout:
        case "folders":
            for name, content in members.items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(content)
            (path / "bird" / "notes.txt").write_text("no image")
        case "one":
            path = archive(tmp_path / "images.tar", {f"all/train/{name}": content for name, content in members.items()})
        case "compressed":
            path = archive(tmp_path / "images.tar.xz", members, "w:xz")
        case "shards":
            for shard in range(2):
                archive(path / f"{shard}.tar", {name: members[name] for name in list(members)[shard::2]})
        case "classes":
            for name in CLASSES:
                own = {file.split("/")[1]: content for file, content in members.items() if file.startswith(name)}
                archive(path / f"{name}.tar", own)
        case _:
            pairs = {f"{number}.jpg": content for number, content in enumerate(members.values())}
            labels = {f"{number}.cls": str(number % 2).encode() for number in range(6)}
            archive(path / "0.tar", {**pairs, **labels})
    images = opened(path, tmp_path / "unpacked", "train" if layout == "one" else "")
    assert isinstance(images, Files if layout == "folders" else Members)
    assert images.classes == (("0", "1") if layout == "webdataset" else CLASSES)
    read = {images.encoded(number): int(label) for number, label in enumerate(images.labels)}
    assert read == {content: number % 2 for number, content in enumerate(members.values())}


def test_what_holds_no_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing", "missing.tar.xz"):
        with pytest.raises(TrainingError, match="images"):
            opened(tmp_path / name, tmp_path)
    (tmp_path / "broken.tar").write_bytes(b"no archive" * 200)
    with pytest.raises(TrainingError, match=r"broken\.tar is no tar archive"):
        opened(tmp_path / "broken.tar", tmp_path)


def test_images_are_held_out_once_and_for_all(tmp_path: Path) -> None:
    images = opened(archive(tmp_path / "images.tar", pictures(10)), tmp_path)
    training, validation = held_out(images, 4)
    both = [of.encoded(number) for of in (training, validation) for number in range(len(of.labels))]
    assert (len(training.labels), len(validation.labels)) == (6, 4)
    assert sorted(both) == sorted(pictures(10).values())
    again = held_out(images, 4)[1]
    assert [again.encoded(number) for number in range(4)] == both[6:]


# --- batches ---------------------------------------------------------------------------------------------------------


def small(folder: Path, **changes: Any) -> Settings:
    """Settings for these pictures, all that is drawn by chance among them."""
    settings = recipe("small")
    training = replace(settings.training, steps=7, batch=4, out=folder / "out", log=7, validate=7, checkpoint=0.0)
    augmentation = replace(recipe("ablation").augmentation, repeats=2)
    sizes: dict[str, Any] = {"dim": 8, "heads": 2, "patches": 4, "validation": 2, "models": ("vit",), "seeds": (0,)}
    kept = {"data": folder / "data", "unpacked": folder / "unpacked", "sets": ("cifar10",)}
    return replace(settings, training=training, augmentation=augmentation, **{**sizes, **kept, **changes})


class Pixels(eqx.Module):
    """A model without layers."""

    weight: jax.Array

    def __call__(self, image: Any, *, key: Any = None) -> Any:
        del key
        return self.weight @ image.reshape(-1)


@dataclass
class Stopping:
    """A source that ends the run before a step."""

    source: Any
    last: int

    @property
    def steps_an_epoch(self) -> int:
        return self.source.steps_an_epoch

    def batch(self, step: int) -> Any:
        if step == self.last:
            raise InterruptedError
        return self.source.batch(step)


def test_a_run_that_goes_on_in_mid_epoch_sees_the_same_images_from_any_number_of_processes(tmp_path: Path) -> None:
    images = opened(archive(tmp_path / "images.tar", pictures(10)), tmp_path)
    settings = small(tmp_path, workers=2)
    whole = source(images, SIDE, replace(settings, workers=0))
    batches = [whole.batch(step) for step in range(7)]
    assert whole.steps_an_epoch == 2
    for one, another in pairwise(batches):
        assert (one[0] != another[0]).any()
    for array, again in zip(whole.batch(3), batches[3], strict=True):  # out of order
        np.testing.assert_array_equal(array, again)

    def run(of: Any, folder: str, *, resume: bool) -> Any:
        training = replace(settings.training, out=tmp_path / folder, resume=resume)
        return fit(Pixels(jnp.zeros((2, 3 * SIDE**2))), Task(loss("ce"), of), training, Console(quiet=True))

    processes = source(images, SIDE, settings)
    with pytest.raises(InterruptedError):
        run(Stopping(whole, 3), "stopped", resume=False)
    resumed, straight = run(processes, "stopped", resume=True), run(whole, "straight", resume=False)
    processes.close()
    assert digest(resumed.model) == digest(straight.model)
    assert resumed.records == straight.records


# --- learning --------------------------------------------------------------------------------------------------------


def test_binary_entropy_takes_every_class_that_a_target_holds() -> None:
    logits = jnp.asarray([[2.0, -1.0, 0.5]])
    mixed, both = jnp.asarray([[0.7, 0.3, 0.0]]), np.asarray([1.0, 1.0, 0.0])
    p = 1 / (1 + np.exp(-np.asarray(logits[0])))
    expected = -np.mean(both * np.log(p) + (1 - both) * np.log(1 - p))
    np.testing.assert_allclose(entropy("bce", logits, mixed), [expected], rtol=1e-6)
    soft = -(0.7 * np.log(np.exp(2.0)) + 0.3 * -1.0) + np.log(np.exp([2.0, -1.0, 0.5]).sum())
    np.testing.assert_allclose(entropy("ce", logits, mixed), [soft], rtol=1e-6)


def test_a_model_is_judged_on_every_image_once(tmp_path: Path) -> None:
    images = opened(archive(tmp_path / "images.tar", pictures(10)), tmp_path)
    model = Pixels(jnp.stack([-jnp.ones(3 * SIDE**2), jnp.ones(3 * SIDE**2)]))
    matrix = confusion(model, Judged(images, SIDE, 1.0, 4))
    assert (matrix.sum(), accuracy(matrix)) == (10, 1.0)
    np.testing.assert_array_equal(confusion(Pixels(-model.weight), Judged(images, SIDE, 1.0, 4)), [[0, 5], [5, 0]])


# --- recipes and models ----------------------------------------------------------------------------------------------


def test_recipes_are_the_tables_of_the_paper() -> None:
    table: dict[Size, tuple[int, float, float]] = {"T": (800, 4e-3, 0.0), "S": (400, 4e-3, 0.05), "B": (400, 3e-3, 0.1)}
    for size, (epochs, rate, drop_path) in table.items():
        before = recipe("deit3-pretrain", size)
        training = before.training
        assert (training.epochs, training.rate, before.drop_path) == (epochs, rate, drop_path)
        assert training.warmup * training.epochs == pytest.approx(5)
        assert (training.optimizer, before.loss, before.side, training.batch) == ("lamb", "bce", 192, 2048)
    after, ablation = recipe("deit3-finetune"), recipe("ablation")
    assert (after.training.optimizer, after.loss, after.side, after.training.batch) == ("adamw", "ce", 224, 512)
    assert after.training.rate * after.training.floor == pytest.approx(1e-6)
    assert (ablation.augmentation.erasing, ablation.augmentation.repeats, ablation.training.epochs) == (0.25, 3, 400)
    assert {recipe(name).dtype for name in RECIPES if name != "small"} == {"bfloat16"}
    assert all(setting.side == 16 * setting.patches for setting in map(recipe, RECIPES) if setting.side)


def shapes(settings: Settings, model: Any, classes: int, side: int) -> Any:
    return cast(Any, eqx.filter_eval_shape)(lambda: made(model, settings, side, classes, jax.random.key(0)))


@pytest.mark.parametrize("size", SIZES)
def test_recipes_train_the_models_of_the_paper(size: Size) -> None:
    model = shapes(recipe("deit3-pretrain", size), "plstm", 1000, 192)
    assert parameters(model) == pytest.approx({"T": 6.30e6, "S": 23.22e6, "B": 88.91e6}[size], rel=0.01)
    assert (model.dtype, model.turns, model.patch) == ("bfloat16", 6, 16)


@pytest.mark.parametrize("side", [32, 64])
def test_models_of_the_small_recipe_are_equally_large(side: int) -> None:
    settings = recipe("small")
    counts = [parameters(shapes(settings, model, 10, side)) for model in settings.models]
    assert max(counts) < 1.05 * min(counts)


def test_fine_tuning_begins_with_parameters_of_another_resolution(tmp_path: Path) -> None:
    before = small(tmp_path, side=16)
    trained = made("vit", before, 16, 2, jax.random.key(1))
    save(trained, tmp_path / "model.safetensors")
    after = replace(before, side=24, patches=6, weights=tmp_path / "model.safetensors", weights_side=16)
    model = made("vit", after, 24, 2, jax.random.key(2))
    assert model.position is not None
    assert model.position.shape[:2] == (6, 6)
    np.testing.assert_array_equal(model.head.weight, trained.head.weight)
    for wrong in (replace(after, dim=16), replace(after, weights=tmp_path / "none")):
        with pytest.raises(TrainingError):
            made("vit", wrong, 24, 2, jax.random.key(2))


# --- the command -----------------------------------------------------------------------------------------------------


def test_command_line() -> None:
    assert parse([]) == parse(["--recipe", "small"]) == recipe("small")
    large = parse(
        ["--recipe", "deit3-pretrain", "--size", "B", "--batch", "1024", "--models", "vit", "plstm", "--workers", "3"]
    )
    assert large.training == replace(recipe("deit3-pretrain", "B").training, batch=1024)
    assert command(large).endswith("--recipe deit3-pretrain --size B --batch 1024 --models vit plstm")
    assert parse(command(large).split()[3:]) == replace(large, workers=recipe("deit3-pretrain").workers)


@pytest.mark.parametrize(
    "words",
    [
        ["--recipe", "deit4"],
        ["--recipe", "deit3-finetune"],  # begins with --weights
        ["--size", "H"],
        ["--sets", "mnist"],
        ["--repeats", "0"],
        ["--depth", "3"],
        ["--test-share", "0"],
        ["--workers", "-1"],
    ],
)
def test_wrong_command_lines_end_with_two(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(words)
    assert stop.value.code == 2
    assert ("--weights is missing" if "deit3-finetune" in words else words[0]) in capsys.readouterr().err


def test_a_run_writes_its_page_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, count in (("cifar10_jpeg_train50k", 40), ("cifar10_jpeg_test10k", 11)):
        archive(tmp_path / "cifar10" / f"{name}.tar.xz", pictures(count), "w:xz")
    out, pages = tmp_path / "out", tmp_path / "pages"
    sizes = ["--dim", "8", "--heads", "2", "--patches", "4", "--validation", "4"]
    words = ["--data", str(tmp_path), "--unpacked", str(tmp_path / "unpacked"), "--out", str(out), "--page", str(pages)]
    words += [
        "--sets",
        "cifar10",
        "--models",
        "vit",
        "--steps",
        "30",
        "--batch",
        "8",
        "--log",
        "10",
        "--validate",
        "10",
        *sizes,
    ]
    assert main([*words, "--seeds", "0", "--rate", "1e-2"]) == 0
    stored = json.loads((out / "cifar10" / "vit" / "seed-0" / "result.json").read_text())["result"]
    assert (stored["steps"], stored["test_images"], stored["images"]) == (30, 11, 36)
    assert stored["test"] > 0.8
    text = (pages / "cifar10.md").read_text()
    assert f"| ViT | {stored['parameters']:,} |" in text
    assert (pages / "cifar10.svg").read_text().startswith("<svg")
    for name in ("model.safetensors", "report.html", "log.jsonl"):
        assert (out / "cifar10" / "vit" / "seed-0" / name).exists()

    capsys.readouterr()
    assert main([*words, "--seeds", "0", "--rate", "1e-2"]) == 1
    assert "lies a study" in capsys.readouterr().out
    assert main([*words, "--seeds", "0", "--rate", "1e-2", "--resume"]) == 0  # nothing is left to do
    assert (pages / "cifar10.md").read_text() == text
    assert main([*words, "--seeds", "0", "--resume"]) == 1
    assert "other settings: rate" in capsys.readouterr().out


def test_the_page_has_means_spreads_and_what_is_missing(tmp_path: Path) -> None:
    settings = replace(recipe("small"), training=replace(recipe("small").training, out=tmp_path), models=("plstm", "vit"))
    runs: list[tuple[Model, int, float]] = [
        ("plstm", 0, 0.5),
        ("vit", 0, 0.4),
        ("plstm", 1, 0.6),
        ("vit", 1, 0.4),
        ("plstm", 2, 0.7),
    ]
    line = ({"step": 10, "loss": 1.5},)
    results = [
        Result(
            "cifar10", model, seed, 49_500, 32, 1000, 2_000_000, 10, 3.0, 10_000, share, line, ({"step": 10, "accuracy": 0.25},)
        )
        for model, seed, share in runs
    ]
    text = page("cifar10", results, settings)
    assert "| pLSTM | 1,000 | 2 M | 3 | 3 | 25.0% ± 0.0 | 60.0% ± 10.0 |" in text
    assert "| ViT | 1,000 | 2 M | 2 | 3 | 25.0% ± 0.0 | 40.0% ± 0.0 |" in text
    assert "Not all runs are done: of 2 models 1 of seed 2." in " ".join(text.split())
    assert "JPEGs" in text


@pytest.mark.parametrize("name", ["cifar10", "tiny_imagenet"])
def test_the_pages_in_the_documents_are_of_this_study(name: str) -> None:
    text = (ROOT / "docs" / "results" / f"{name}.md").read_text()
    settings = parse(text.splitlines()[2].split()[3:])
    assert f"All models take {settings.training.steps} steps" in " ".join(text.split())
    for model in settings.models:
        assert f"| {NAMES[model]} | {settings.seeds[0]} |" in text
