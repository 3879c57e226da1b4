"""What is done to images of training keeps what it promises: shares, boxes, magnitudes, counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stmlang.experiments.imagenet import rand_augment
from stmlang.experiments.imagenet.colours import jittered, three_augment
from stmlang.experiments.imagenet.cropping import box, padded_crop, resized_crop, whole
from stmlang.experiments.imagenet.erasing import erased
from stmlang.experiments.imagenet.examples import Order, augmented
from stmlang.experiments.imagenet.mixing import Mixing, cut, mixed, targets
from stmlang.experiments.imagenet.recipes import recipe
from stmlang.experiments.imagenet.settings import RECIPES

SIDE, CLASSES = 20, 5


def drawn(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def picture(seed: int = 0, width: int = 30, height: int = 20) -> Image.Image:
    return Image.fromarray(drawn(seed).integers(0, 256, (height, width, 3), np.uint8))


# --- batches ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def batch() -> tuple[Any, Any]:
    """Six images, each of one brightness, so that one sees whose pixel is whose."""
    images = np.empty((6, SIDE, SIDE, 3), np.uint8)
    images[:] = np.arange(0, 240, 40)[:, None, None, None]
    return images, np.asarray([0, 1, 2, 3, 4, 0], np.int32)


def test_targets_are_smoothed() -> None:
    rows = targets(np.asarray([1, 3], np.int32), CLASSES, 0.1)
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(rows[0], [0.02, 0.92, 0.02, 0.02, 0.02], rtol=1e-6)


def test_mixup_mixes_images_and_targets_alike(batch: tuple[Any, Any]) -> None:
    images, labels = batch
    result, rows = Mixing(0.8, 0.0, 0.0)(images, labels, CLASSES, drawn(1))
    share = float(rows[1, 1])  # of class 1 in the second image; the fifth, its partner, has class 4
    assert 0 < share < 1
    np.testing.assert_allclose(rows[1], [0, share, 0, 0, 1 - share], atol=1e-6)
    np.testing.assert_allclose(rows[0], [1, 0, 0, 0, 0], atol=1e-6)  # both have class 0
    blended = share * images.astype(float) + (1 - share) * images[::-1]
    assert np.abs(result - blended).max() <= 0.5 + 1e-4
    assert (mixed(images, 1.0, drawn(0))[0] == images).all()


@pytest.mark.parametrize("seed", range(12))
def test_the_area_of_a_cut_box_is_what_its_targets_say(batch: tuple[Any, Any], seed: int) -> None:
    images, labels = batch
    result, rows = Mixing(0.0, 1.0, 0.0)(images, labels, CLASSES, drawn(seed))
    kept = (result[1] == images[1]).all(axis=-1)
    foreign = (result[1] == images[4]).all(axis=-1)
    assert (kept ^ foreign).all()
    np.testing.assert_allclose(rows[1], [0, kept.mean(), 0, 0, 1 - kept.mean()], atol=1e-6)
    inside = np.argwhere(foreign)
    if len(inside):
        lengths = np.ptp(inside, axis=0) + 1
        assert foreign.sum() == lengths.prod()  # one box
        assert (foreign == (result[3] == images[2]).all(axis=-1)).all()  # and of all images the same


def test_a_box_that_lies_inside_has_the_area_that_was_drawn() -> None:
    images = np.zeros((2, 100, 100, 3), np.uint8)
    shares = [cut(images, 0.75, drawn(seed))[1] for seed in range(60)]
    assert min(shares) == 0.75  # a box of 50 by 50; where the edge cuts it, more remains
    assert max(shares) <= 1 - 0.25**2


def test_mixup_and_cutmix_have_every_other_batch(batch: tuple[Any, Any]) -> None:
    images, labels = batch
    mixing = Mixing(0.8, 1.0, 0.0)
    cuts = sum(bool(np.isin(mixing(images, labels, CLASSES, drawn(seed))[0], images).all()) for seed in range(400))
    assert 160 < cuts < 240
    unmixed, rows = Mixing(0.0, 0.0, 0.0)(images, labels, CLASSES, drawn(0))
    assert unmixed is images
    np.testing.assert_array_equal(rows, np.eye(CLASSES)[labels])


# --- one image -------------------------------------------------------------------------------------------------------


def test_crops() -> None:
    areas: list[float] = []
    for seed in range(300):
        left, upper, right, lower = box((400, 300), drawn(seed))
        assert 0 <= left < right <= 400
        assert 0 <= upper < lower <= 300
        assert 0.74 < (right - left) / (lower - upper) < 1.35
        areas.append((right - left) * (lower - upper) / 120_000)
    assert 0.07 < min(areas) < 0.12
    assert max(areas) > 0.8
    assert box((400, 10), drawn(0)) == (193, 0, 206, 10)  # nothing fits: the largest in the middle that may be
    assert resized_crop(picture(), SIDE, drawn(0)).size == (SIDE, SIDE)


def test_a_shifted_crop_is_the_image_with_black_around() -> None:
    pixels = 1 + drawn(0).integers(0, 255, (16, 16, 3), np.uint8)
    around = np.pad(pixels, [(2, 2), (2, 2), (0, 0)])
    offsets = set[tuple[int, int]]()
    for seed in range(200):
        crop = np.asarray(padded_crop(Image.fromarray(pixels), 16, drawn(seed)))
        offsets |= {at for at in np.ndindex(5, 5) if (around[at[0] : at[0] + 16, at[1] : at[1] + 16] == crop).all()}
    assert len(offsets) == 25


def test_what_tests_see() -> None:
    assert whole(picture(), 20, 1.0).size == (20, 20)
    np.testing.assert_array_equal(np.asarray(whole(picture(), 20, 1.0)), np.asarray(picture())[:, 5:25])
    large = picture(0, 512, 256)
    middle = np.asarray(whole(large, 224, 0.875))
    np.testing.assert_array_equal(middle, np.asarray(large)[16:240, 144:368])


def test_erasing_is_a_box_of_noise_as_often_as_it_should_be() -> None:
    white = np.full((64, 64, 3), 255, np.uint8)
    areas = [float((erased(white, 0.25, drawn(seed)) != white).any(axis=-1).mean()) for seed in range(400)]
    some = [area for area in areas if area]
    assert 70 < len(some) < 130
    assert min(some) > 0.015
    assert max(some) < 0.35
    assert erased(white, 0.0, drawn(0)) is white
    noise = erased(white, 1.0, drawn(3))
    changed = noise[(noise != white).all(axis=-1)].astype(float) / 255
    np.testing.assert_allclose(changed.mean(axis=0), (0.485, 0.456, 0.406), atol=0.05)
    rows, cols = (np.unique(axis) for axis in np.nonzero((noise != white).any(axis=-1)))
    assert (np.diff(rows) == 1).all()
    assert (np.diff(cols) == 1).all()


def test_the_three_of_deit() -> None:
    image, kinds = picture(), Counter[str]()
    for seed in range(300):
        pixels = np.asarray(three_augment(image, drawn(seed))).astype(int)
        original = np.asarray(image).astype(int)
        if (pixels == pixels[..., :1]).all():
            kinds["grey"] += 1
        elif (pixels == np.where(original < 128, original, 255 - original)).all():
            kinds["solarized"] += 1
        else:
            kinds["blurred"] += 1
            assert pixels.std() <= original.std() + 1
    assert set(kinds) == {"grey", "solarized", "blurred"}
    assert min(kinds.values()) > 70


def test_jitter_stays_within_its_strength() -> None:
    grey = Image.new("RGB", (4, 4), (100, 100, 100))  # contrast and saturation leave it, brightness does not
    levels = [np.asarray(jittered(grey, 0.3, drawn(seed)))[0, 0, 0] for seed in range(100)]
    assert 70 <= min(levels) < 80
    assert 120 < max(levels) <= 130


# --- RandAugment -----------------------------------------------------------------------------------------------------


def test_rand_augment_draws_operations_and_magnitudes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, float, float]] = []

    def recorder(name: str) -> Any:
        def change(image: Image.Image, share: float, sign: float) -> Image.Image:
            seen.append((name, share, sign))
            return image

        return change

    monkeypatch.setattr(rand_augment, "CHANGES", {name: recorder(name) for name in rand_augment.CHANGES})
    for seed in range(1500):
        rand_augment.rand_augment(picture(), 9.0, 0.5, 2, drawn(seed))
    names, shares, signs = zip(*seen, strict=True)
    assert 1350 < len(seen) < 1650  # two operations, each done every other time
    assert len(Counter(names)) == 15
    assert min(Counter(names).values()) > 60
    assert np.mean(shares) == pytest.approx(0.9, abs=0.01)
    assert np.std(shares) == pytest.approx(0.05, abs=0.01)
    assert max(shares) <= 1
    assert abs(np.mean(signs)) < 0.1


@pytest.mark.parametrize(
    "name", ["rotate", "shear_x", "shear_y", "shift_x", "shift_y", "colour", "contrast", "brightness", "sharpness"]
)
def test_the_magnitude_of_nothing_changes_nothing(name: str) -> None:
    image = picture()
    np.testing.assert_array_equal(np.asarray(rand_augment.CHANGES[name](image, 0.0, -1.0)), np.asarray(image))


def test_operations_do_what_they_are_called() -> None:
    image, changes = picture(0, 40, 40), rand_augment.CHANGES
    pixels = np.asarray(image).astype(int)

    def changed(name: str, share: float, sign: float = 1.0) -> Any:
        return np.asarray(changes[name](image, share, sign)).astype(int)

    np.testing.assert_array_equal(changed("invert", 0.1), 255 - pixels)
    np.testing.assert_array_equal(changed("posterize", 0.5), pixels // 64 * 64)
    np.testing.assert_array_equal(changed("posterize", 1.0), 0 * pixels)
    np.testing.assert_array_equal(changed("solarize", 0.5), np.where(pixels < 128, pixels, 255 - pixels))
    np.testing.assert_array_equal(changed("solarize", 0.0), pixels)
    np.testing.assert_array_equal(changed("solarize_add", 0.5), np.where(pixels < 128, np.minimum(255, pixels + 55), pixels))
    np.testing.assert_array_equal(changed("shift_x", 1.0)[:, :22], pixels[:, 18:])  # .45 of 40 pixels
    np.testing.assert_array_equal(changed("shift_y", 1.0, -1.0)[18:], pixels[:22])
    assert (changed("shift_x", 1.0)[:, 22:] == rand_augment.FILL).all()
    assert np.abs(changed("brightness", 1.0, -1.0) - 0.1 * pixels).max() <= 1
    assert np.abs(changed("brightness", 0.5) - np.minimum(255, 1.45 * pixels)).max() <= 1
    grey = changed("colour", 1.0, -1.0)
    assert np.ptp(grey, axis=-1).max() <= 0.1 * np.ptp(pixels, axis=-1).max() + 2
    turned = np.asarray(image.rotate(-15.0, Image.Resampling.BICUBIC, fillcolor=rand_augment.FILL)).astype(int)
    np.testing.assert_array_equal(changed("rotate", 0.5, -1.0), turned)


# --- order and seeds -------------------------------------------------------------------------------------------------


def test_repeated_augmentation_has_each_image_so_many_times() -> None:
    order = Order(length=100, batch=12, repeats=3, seed=0)
    assert (order.steps_an_epoch, order.places) == (8, 96)
    first, second = order.numbers(0), order.numbers(1)
    assert set(np.unique(first, return_counts=True)[1]) == {3}
    assert len(set(first)) == 32
    assert set(first) != set(second)
    once = Order(length=100, batch=12, repeats=1, seed=0).numbers(0)
    assert len(set(once)) == len(once) == 96


@pytest.mark.parametrize("name", RECIPES)
def test_an_image_depends_on_its_generator_alone(name: Any) -> None:
    settings = recipe(name)
    augmentation = replace(settings.augmentation, erasing=max(settings.augmentation.erasing, 0.5))
    first, again, other = (augmented(picture(), augmentation, SIDE, drawn(seed)) for seed in (5, 5, 6))
    assert first.shape == (SIDE, SIDE, 3)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
