"""The study of arrows: scenes, what is drawn of them, the control, and a run as small as it gets."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from rich.console import Console

from stmlang.experiments.arrow import study
from stmlang.experiments.arrow.__main__ import parse
from stmlang.experiments.arrow.control import Control, accuracies
from stmlang.experiments.arrow.data import accuracy, batches, confusion, examples, judged, loss, prepared
from stmlang.experiments.arrow.drawing import pixels, sheet, tokens
from stmlang.experiments.arrow.generation import APART, CLEARANCE, FORMS, Form, Geometry, Scenes, scenes
from stmlang.experiments.arrow.models import blocks, made
from stmlang.experiments.arrow.report import Outcome, Result, curves, page, write
from stmlang.experiments.arrow.settings import BLOCKS, MODELS, SCALES, Model, Settings
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.settings import meanings
from stmlang.models.counting import parameters

QUIET = Console(quiet=True)
IMAGES, SMALL = Geometry(), SCALES["small"].geometry
LARGE = replace(IMAGES, size=384)
TINY = replace(
    SCALES["small"],
    forms=("debiased",),
    models=("d_mode",),
    ablations=(),
    seeds=(3,),
    rates=(1e-2,),
    images=32,
    validation=40,
    test=40,
    control=200,
    cell=32,
    dim=8,
    heads=1,
)


def arrays(drawn: Scenes) -> list[np.ndarray]:
    return [getattr(drawn, field.name) for field in dataclasses.fields(Scenes)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("geometry", [IMAGES, SMALL])
def test_a_scene_is_the_same_whatever_was_drawn_before(form: Form, geometry: Geometry) -> None:
    whole = scenes(form, geometry, 7, 300)
    for first, count in ((0, 1), (13, 40), (299, 1)):
        for own, all in zip(arrays(scenes(form, geometry, 7, count, first)), arrays(whole), strict=True):
            np.testing.assert_array_equal(own, all[first : first + count])
    assert len(np.unique(whole.arrow, axis=0)) == 300
    assert not np.isin(scenes(form, geometry, 8, 300).direction, whole.direction).any()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("geometry", [IMAGES, LARGE, SMALL])
def test_rays_of_pointing_arrows_hit_and_others_miss(form: Form, geometry: Geometry) -> None:
    """By the distance of the circle's centre from the ray, which knows nothing of angles."""
    drawn = scenes(form, geometry, 1, 2000)
    ahead = np.stack([np.cos(drawn.direction), np.sin(drawn.direction)], axis=1)
    offset = drawn.circle - drawn.arrow
    along = (offset * ahead).sum(axis=1)
    beside = np.abs(offset[:, 0] * ahead[:, 1] - offset[:, 1] * ahead[:, 0])
    pointing = drawn.pointing
    assert (along[pointing] > 0).all()
    assert (beside[pointing] <= drawn.radius[pointing] / CLEARANCE + 1e-9).all()
    missed = (along < 0) | (beside > CLEARANCE * drawn.radius - 1e-9)
    assert missed[~pointing].all()
    assert (np.linalg.norm(offset, axis=1) >= APART * drawn.radius - 1e-9).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("geometry", [IMAGES, SMALL])
def test_scenes_are_balanced_and_within_bounds(form: Form, geometry: Geometry) -> None:
    drawn = scenes(form, geometry, 2, 4000)
    assert abs(drawn.pointing.mean() - 0.5) < 0.03
    for centre in (drawn.arrow, drawn.circle):
        assert centre.min() >= geometry.padding
        assert centre.max() <= geometry.size - geometry.padding
    for values, (low, high) in (
        (drawn.radius, geometry.radius),
        (drawn.length, geometry.length),
        (drawn.width, geometry.width),
    ):
        assert low <= values.min()
        assert values.max() < high
    assert set(drawn.length) == set(range(*geometry.length))


def test_the_label_leaks_without_the_circle_in_the_papers_form_alone() -> None:
    """92.9 % and 81.5 % are what trees reach with many scenes, at the size of training and where they learn at twice the size;
    fewer do here. In the debiased form neither half tells anything."""
    assert accuracies("paper", IMAGES, (IMAGES,), 8000)[0] > 0.88
    assert 0.7 < accuracies("paper", LARGE, (LARGE,), 8000)[0] < 0.84
    for hidden in ("circle", "arrow"):
        same, larger = accuracies("debiased", IMAGES, (IMAGES, LARGE), 8000, hidden)
        assert abs(same - 0.5) < 0.025
        assert abs(larger - 0.5) < 0.025


def test_images_show_both_objects_at_one_size() -> None:
    drawn = scenes("debiased", IMAGES, 3, 20)
    small, large = pixels(drawn, 192), pixels(drawn, 384)
    assert (small.shape, large.shape, small.dtype) == ((20, 192, 192), (20, 384, 384), np.uint8)
    assert set(np.unique(small)) == {0, 255}
    np.testing.assert_array_equal(small, large[:, :192, :192])
    assert (large[:, 192:] == 255).all()
    black = (small == 0).sum(axis=(1, 2))
    disc = np.pi * drawn.radius**2
    assert (black > 0.95 * disc).all()
    assert (black < 1.05 * disc + 3 * drawn.length * (drawn.width + 1) + 40).all()
    for image, (x, y) in zip(small, drawn.circle.astype(int), strict=True):
        assert image[y, x] == 0


def test_the_tip_is_ahead() -> None:
    """Ink of an arrow lies further ahead of its centre than behind it, for the barbs are there."""
    drawn = scenes("debiased", IMAGES, 4, 30)
    for image, centre, angle in zip(
        pixels(replace(drawn, radius=np.zeros(30)), 192), drawn.arrow, drawn.direction, strict=True
    ):
        rows, cols = np.nonzero(image == 0)
        near = np.hypot(cols - centre[0], rows - centre[1]) < 17
        along = (cols[near] - centre[0]) * np.cos(angle) + (rows[near] - centre[1]) * np.sin(angle)
        assert along.mean() > 0


def test_tokens_hold_all_that_the_label_depends_on() -> None:
    drawn = scenes("paper", SMALL, 5, 50)
    grid = tokens(drawn, 96, 16)
    assert grid.shape == (50, 6, 6, 9)
    for number, (flag, own) in enumerate(((0, (3, 4)), (5, (7, 8)))):
        centre = (drawn.arrow, drawn.circle)[number]
        assert (grid[..., flag].sum(axis=(1, 2)) == 1).all()
        image, row, col = np.nonzero(grid[..., flag])
        there = 16 * (np.stack([col, row], axis=1) + 0.5 + grid[image, row, col][:, own])
        np.testing.assert_allclose(there, centre, atol=1e-4)
        if number == 0:
            np.testing.assert_allclose(grid[image, row, col, 1], np.cos(drawn.direction), atol=1e-6)
            np.testing.assert_allclose(grid[image, row, col, 2], np.sin(drawn.direction), atol=1e-6)
        else:
            np.testing.assert_allclose(16 * grid[image, row, col, 6], drawn.radius, rtol=1e-6)
    assert tokens(drawn, 192, 16).shape == (50, 12, 12, 9)


def test_batches_are_of_the_scenes_of_a_seed() -> None:
    source = batches("debiased", replace(TINY, training=replace(TINY.training, batch=8)), 3)
    x, y = source.batch(5)
    assert (x.shape, y.dtype, source.steps_an_epoch) == ((8, 3, 3, 9), np.int32, 4)
    for first, second in zip((x, y), source.batch(5), strict=True):
        np.testing.assert_array_equal(first, second)
    shown = np.concatenate([source.batch(step)[0] for step in range(4)])
    every = tokens(scenes("debiased", SMALL, 3, 32), 96, 32)
    assert sorted(grid.tobytes() for grid in shown) == sorted(grid.tobytes() for grid in every)


def always_pointing(x: Array) -> Array:
    return 0 * x[0, 0, :2] + jnp.asarray([0.0, 1.0])


def test_every_scene_is_judged_once() -> None:
    """Forty scenes are no multiple of a batch of 64, and what fills it up does not count."""
    for of in judged("paper", TINY, 9, 40):
        pointing = int(of.scenes.pointing.sum())
        matrix = confusion(always_pointing, of)
        np.testing.assert_array_equal(matrix, [[0, 40 - pointing], [0, pointing]])
        assert accuracy(matrix) == pointing / 40


def test_images_are_normalized_as_the_paper_has_it() -> None:
    white = prepared(jnp.full((1, 2, 2), 255, jnp.uint8))
    assert white.shape == (1, 2, 2, 3)
    np.testing.assert_allclose(white[0, 0, 0], [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225], rtol=1e-6)


def learned(network: Any, x: Any, y: Any) -> Any:
    return eqx.filter_value_and_grad(lambda network: loss(network, (x, y), jax.random.key(0))[0])(network)


@pytest.mark.parametrize("model", MODELS)
def test_models_take_both_sizes(model: Model) -> None:
    """Two logits and a gradient of every parameter; their numbers are a matter of `tests/models`."""
    settings = replace(TINY, cell=0, patch=48) if model == "efficientnet" else replace(TINY, cell=48)
    network = cast(Any, eqx.filter_eval_shape(lambda: made(model, settings, jax.random.key(0))))
    without = ("no_position", "convnext", "efficientnet")
    assert (getattr(network, "position", None) is None) == (model in without)
    for geometry in (settings.geometry, settings.larger):
        x, _ = examples(scenes("debiased", geometry, 1, 2), geometry, settings)
        logits = eqx.filter_eval_shape(lambda network, x: jax.vmap(network)(prepared(x)), network, jnp.asarray(x))
        assert cast(Any, logits).shape == (2, 2)
    x, y = examples(scenes("debiased", settings.geometry, 1, 2), settings.geometry, settings)
    value, slope = cast(Any, eqx.filter_eval_shape(learned, network, jnp.asarray(x), jnp.asarray(y)))
    assert value.shape == ()
    assert parameters(slope) == parameters(network)


def test_baselines_have_about_the_parameters_of_plstm() -> None:
    """Within a quarter, but for four blocks of Mamba-ND, which are the fewest that there are."""

    def count(model: Model) -> int:
        return parameters(eqx.filter_eval_shape(lambda: made(model, SCALES["small"], jax.random.key(0))))

    aim = count("plstm")
    assert {model: blocks(model, SCALES["small"]) for model in BLOCKS} == {
        "convnext": 4,
        "vil": 2,
        "vim": 2,
        "mamba_nd": 4,
        "v2m": 2,
        "two_d_mamba": 2,
        "mamba2d": 3,
    }
    for model in BLOCKS:
        assert 0.75 < count(model) / aim < (1.7 if model == "mamba_nd" else 1.25)


def test_gates_start_half_open_or_as_the_paper_has_them() -> None:
    starts: dict[Model, tuple[float, ...]] = {
        "plstm": (0.0, 0.0, -2.0),
        "paper_start": (-4.0, -4.0, -6.0),
        "constant": (0.0, 0.0, -2.0),
    }
    for model, biases in starts.items():
        p, _, d, _ = cast(Any, made(model, replace(TINY, gain=0.0), jax.random.key(0))).stacked
        for residual, source in ((p, "strength"), (d, "source")):
            gates = residual.layer.gates
            for name, bias in zip((source, "mark", "direct"), biases, strict=True):
                assert {float(value) for value in np.ravel(gates.bias[name])} == {bias}
            assert bool(gates.weight) == (model != "constant")
            assert all(not np.any(weight) for weight in gates.weight.values())


def test_command_line() -> None:
    assert parse([]) == Settings()
    assert parse(["--scale", "small"]) == SCALES["small"]
    changed = parse(["--dim", "32", "--scale=small", "--models", "vit", "--seeds", "4", "5", "--size", "120", "--steps", "7"])
    small = SCALES["small"]
    assert changed == replace(
        small,
        dim=32,
        models=("vit",),
        seeds=(4, 5),
        geometry=replace(small.geometry, size=120),
        training=replace(small.training, steps=7),
    )
    assert parse(["--models"]).models == ()
    assert all(meanings(Settings).values())
    assert [settings.faults for settings in SCALES.values()] == [[], []]


@pytest.mark.parametrize(
    "words",
    [
        "--reads own --dim 30",
        "--ablations vit --scale small",
        "--models efficientnet --scale small",
        "--ablations efficientnet --scale small",
        "--scale tiny",
        "--scale",
        "--cell 7",
        "--seeds",
        "--heads 5",
        "--depth 3",
        "--models other",
        "--size 96",
        "--test 0",
    ],
)
def test_wrong_command_lines(words: str) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(words.split())
    assert stop.value.code == 2


def result(model: Model, rate: float, seed: int, validation: float) -> Result:
    curve = ({"step": 1, "accuracy": 0.5, "larger": 0.5}, {"step": 2, "accuracy": validation, "larger": 0.4})
    return Result("debiased", model, rate, seed, 10, 2, 1.0, 0.6, validation, 0.4, 0.55 + seed / 100, 0.45, curve)


def test_rates_are_chosen_on_validation_with_the_first_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, int]] = []

    def one(run: study.Run, *_: Any) -> Result:
        asked.append((run.rate, run.seed))
        return result(run.model, run.rate, run.seed, {1e-3: 0.7, 2e-3: 0.9, 4e-3: 0.8}[run.rate])

    monkeypatch.setattr(study, "one", one)
    settings = replace(TINY, seeds=(0, 1, 2), rates=(1e-3, 2e-3, 4e-3))
    results = study.trained("debiased", "vit", settings, QUIET)
    assert asked == [(1e-3, 0), (2e-3, 0), (4e-3, 0), (2e-3, 1), (2e-3, 2)]
    assert [(each.rate, each.seed) for each in results if each.chosen] == [(2e-3, 0), (2e-3, 1), (2e-3, 2)]


def test_ablations_have_the_first_seed_and_the_rate_of_plstm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, float, int]] = []

    def one(run: study.Run, *_: Any) -> Result:
        asked.append((run.model, run.rate, run.seed))
        return result(run.model, run.rate, run.seed, 0.7 + 10 * run.rate)

    monkeypatch.setattr(study, "one", one)
    settings = replace(TINY, models=("plstm",), ablations=("p_mode", "vil"), seeds=(0, 1), rates=(1e-3, 2e-3))
    outcome = study.run(replace(settings, training=replace(settings.training, out=tmp_path)), QUIET)
    assert asked[:3] == [("plstm", 1e-3, 0), ("plstm", 2e-3, 0), ("plstm", 2e-3, 1)]
    assert asked[3:] == [("p_mode", 2e-3, 0), ("vil", 2e-3, 0)]
    text = (tmp_path / "arrow_small.md").read_text()
    assert "    python -m stmlang.experiments.arrow --scale small --" in text
    assert "| pLSTM, P-mode | 10 | 0.002 | 2 | 0.600 | 0.720 |" in text
    assert "Validation accuracy by rate, seed 0: pLSTM 0.710 at 0.001, 0.720 at 0.002." in text
    said = " ".join(text.split())
    assert "of seed 0 alone, at the rate of pLSTM: one of its own may suit another model better." in said
    assert len(outcome.results) == 5


@pytest.mark.parametrize(
    ("vit", "larger", "said"),
    [
        (0.5, 0.5, "More than 0.02 off pLSTM (0.900) at the best rate that was tried: ViT 0.500 (behind)."),
        (0.95, 0.5, "More than 0.02 off pLSTM (0.900) at the best rate that was tried: ViT 0.950 (ahead)."),
        (0.9, 0.4, "every seed of pLSTM is ahead of all of ViT"),
        (0.9, 0.5, "every seed of ViT is ahead of all of pLSTM"),
        (0.9, 0.45, "seeds of pLSTM and ViT overlap, and no difference is shown"),
    ],
)
def test_extrapolation_is_compared_where_both_learned(vit: float, larger: float, said: str) -> None:
    results = [result("plstm", 1e-3, seed, 0.9) for seed in (0, 1)]
    results += [replace(result("vit", 1e-3, seed, vit), larger_test=larger) for seed in (0, 1)]
    settings = replace(TINY, models=("plstm", "vit"), seeds=(0, 1))
    text = " ".join(page(Outcome(settings, {"debiased": Control(0.5, 0.5, 0.5, 0.5)}, results)).split())
    assert said in text
    assert ("no claim about it is made" in text) == (vit != 0.9)


def test_the_page_says_of_baselines_how_deep_they_are_and_which_see_nothing() -> None:
    settings = replace(TINY, forms=("paper",), models=("plstm", "vil", "mamba2d"), ablations=("constant",), test=1024)
    results = [
        replace(result(model, 1e-3, 3, 0.9), form="paper", test=test, larger_test=0.7)
        for model, test in {"plstm": 0.95, "vil": 0.84, "mamba2d": 0.86, "constant": 0.8}.items()
    ]
    outcome = Outcome(settings, {"paper": Control(0.8, 0.7, 0.8, 0.5)}, results)
    text = " ".join(page(outcome).split())
    assert f"ViL {blocks('vil', settings)}, Mamba2D {blocks('mamba2d', settings)} (ViL makes 2 at once)" in text
    assert (
        "No better than without the circle, or by less than 0.047, are at 96 ViL, pLSTM, constant gates and at 192 pLSTM, ViL, "
        "Mamba2D, pLSTM, constant gates."
    ) in text
    assert "ViL and Mamba2D do not extrapolate beyond chance" in text
    picture = curves(outcome)
    assert picture.count(">Mamba2D<") == picture.count(">ViL<") == picture.count(">pLSTM, constant gates<") == 1
    assert picture.count(">pLSTM<") == 2


def test_the_page_has_the_control_beside_every_result(tmp_path: Path) -> None:
    settings = replace(TINY, models=("plstm", "vit"), seeds=(0, 1), page=tmp_path / "page")
    settings = replace(settings, training=replace(settings.training, out=tmp_path / "out"))
    controls: dict[Form, Control] = {"debiased": Control(0.501, 0.502, 0.503, 0.504)}
    results = [result("plstm", 1e-3, seed, 0.9) for seed in (0, 1)] + [replace(result("plstm", 2e-3, 0, 0.1), chosen=False)]
    outcome = Outcome(settings, controls, results)
    write(outcome)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"arrow_small.{end}" for end in ("json", "md", "png", "svg")
    ]
    assert sorted(path.name for path in (tmp_path / "page").iterdir()) == [f"arrow_small.{end}" for end in ("md", "png", "svg")]
    text = (tmp_path / "page" / "arrow_small.md").read_text()
    assert "| without the circle |  |  |  |  |  |  | 0.501 | 0.502 |  |" in text
    assert (
        "| pLSTM | 10 | 0.001 | 2 | 0.600 ± 0.000 | 0.900 ± 0.000 | 0.400 ± 0.000 | 0.555 ± 0.005 | 0.450 ± 0.000 |  |" in text
    )
    assert "ViT |" not in text
    assert "| `debiased` | 0.501 | 0.502 | 0.503 | 0.504 |" in text
    assert "arrow_small.svg" not in page(replace(outcome, results=[]))


def test_sheets_have_gaps() -> None:
    image = np.zeros((2, 3, 3), np.uint8)
    joined = sheet([image, image], gap=1)
    assert joined.shape == (7, 7)
    assert (joined[3] == 160).all()
    assert (joined[:3, 3] == 160).all()
    assert (joined[:3, 4:] == 0).all()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Sixty steps on the same 32 scenes."""
    training = replace(
        TINY.training, steps=60, batch=32, log=10, validate=30, warmup=0.1, out=tmp_path_factory.mktemp("arrow") / "out"
    )
    return study.run(replace(TINY, training=training), QUIET)


def test_a_small_model_learns_its_scenes(tiny: Outcome) -> None:
    (learned,) = tiny.results
    lines = [json.loads(line) for line in next(tiny.settings.training.out.glob("*/*/*/*/log.jsonl")).read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert losses[-1] < 0.8 * losses[0]
    assert learned.training > 0.7
    assert learned.steps == 60
    assert [point["step"] for point in learned.curve] == [30, 60]
    assert {"debiased", *(f"arrow_small.{end}" for end in ("md", "svg", "png", "json"))} == {
        path.name for path in tiny.settings.training.out.iterdir()
    }
    report = next(tiny.settings.training.out.glob("*/*/*/*/report.html")).read_text()
    assert "plstm_d" in report
    assert "Test scenes of 192x192" in report


def test_a_study_goes_on_where_it_stopped(tiny: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainingError, match="lies a study"):
        study.run(tiny.settings, QUIET)

    def fit(*_: Any) -> Any:
        raise AssertionError("what is done is not done again")

    monkeypatch.setattr(study, "fit", fit)
    again = replace(tiny.settings, training=replace(tiny.settings.training, resume=True))
    assert study.run(again, QUIET).results == tiny.results
    with pytest.raises(TrainingError, match="other settings: images"):
        study.run(replace(again, images=33), QUIET)
