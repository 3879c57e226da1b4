"""An image classifier: handwritten digits by layers that sweep a grid of patches in four directions.

    python examples/images.py

The model takes scans that were compiled before, so that their sizes stand here. Behind training it goes into one file, with
its weights, and is read back as a function that needs no Equinox.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

import stmlang
from stmlang.models.vision import ImageModel, plstm


def made(key: jax.Array) -> ImageModel:
    """P- and D-mode by turns, 4x4 patches of 2x2 pixels."""
    p = stmlang.compile("std:plstm/image_p", rows=4, cols=4, heads=2, key=8, value=8)
    d = stmlang.compile("std:plstm/image_d", rows=4, cols=4, heads=2, key=8, value=8)
    return plstm(p, d, classes=10, channels=1, patch=2, dim=32, pairs=2, key=key)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """1,797 images of 8x8 pixels in an order of their own, and what they show."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    return images.reshape(-1, 8, 8, 1)[order].astype(np.float32) / 16, labels[order]


@eqx.filter_jit
def step(model: ImageModel, state: optax.OptState, images: jax.Array, labels: jax.Array) -> tuple[ImageModel, optax.OptState]:
    def loss(model: ImageModel) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(images), labels).mean()

    slope = eqx.filter_grad(loss)(model)
    updates, state = OPTIMIZER.update(slope, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state


OPTIMIZER = optax.adamw(3e-3, weight_decay=0.05)


def main(steps: int = 600) -> float:
    """Train, print, and return the share of test images that the file's function gets right."""
    images, labels = digits()
    test, train = slice(0, 360), slice(360, None)
    model, generator = made(jax.random.key(0)), np.random.default_rng(1)
    state = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))
    for _ in range(steps):
        chosen = generator.integers(360, len(images), 64)
        model, state = step(model, state, images[chosen], labels[chosen])
    seen = float((jax.vmap(model)(images[train]).argmax(-1) == labels[train]).mean())
    with TemporaryDirectory() as folder:
        path = Path(folder) / "digits.stmx"
        stmlang.export(model, jax.ShapeDtypeStruct(images.shape[1:], "float32"), path)
        served = stmlang.load(path)
        right = float((served(jnp.asarray(images[test])).argmax(-1) == labels[test]).mean())
        print(f"{path.stat().st_size:,} bytes: {right:.1%} of 360 test images are right, {seen:.1%} of those learned from")
    return right


if __name__ == "__main__":
    main()
