"""The control: how well the label can be told without the circle. A result that is no better says nothing about pointing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from jaxtyping import Float64

from stmlang.experiments.arrow.generation import Form, Geometry, Scenes, scenes
from stmlang.experiments.arrow.settings import Settings

Hidden = Literal["circle", "arrow"]
SEED, TEST_SEED = 300_042, 400_042


@dataclass(frozen=True)
class Control:
    """Accuracies without the circle: at the size of training, at twice the size as it was learned at the smaller one, and as it
    was learned at the larger one; and at the size of training without the arrow."""

    same: float
    larger: float
    larger_learned: float
    no_arrow: float


def controls(form: Form, settings: Settings) -> Control:
    """The control on the scenes of a study."""
    geometry, larger, count = settings.geometry, settings.larger, settings.control
    same, further = accuracies(form, geometry, (geometry, larger), count)
    (learned,) = accuracies(form, larger, (larger,), count)
    (without_arrow,) = accuracies(form, geometry, (geometry,), count, "arrow")
    return Control(same, further, learned, without_arrow)


def seen(scenes: Scenes, size: int, hidden: Hidden) -> Float64[np.ndarray, "scene feature"]:
    """What is left of a scene where one of its two objects is hidden. Places are shares of the image's side."""
    if hidden == "arrow":
        return np.column_stack([scenes.circle / size, scenes.radius])
    angle = scenes.direction
    return np.column_stack([scenes.arrow / size, np.cos(angle), np.sin(angle), angle])


def accuracies(
    form: Form, learned: Geometry, tested: tuple[Geometry, ...], count: int, hidden: Hidden = "circle"
) -> list[float]:
    """Test accuracy on each geometry of gradient-boosted trees that learned on `count` scenes of another."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    training = scenes(form, learned, SEED, count)
    trees = cast(Any, HistGradientBoostingClassifier(max_leaf_nodes=63, random_state=0))
    with threadpool_limits(1, "openmp"):  # its threads wait for each other at every step: on a busy machine for minutes
        trees.fit(seen(training, learned.size, hidden), training.pointing)
    results: list[float] = []
    for geometry in tested:
        test = scenes(form, geometry, TEST_SEED, count)
        results.append(float((trees.predict(seen(test, geometry.size, hidden)) == test.pointing).mean()))
    return results
