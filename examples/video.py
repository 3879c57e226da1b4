"""Video: a chain of frames times a grid of pixels. Which way does the dot among the specks go?

    python examples/video.py

Frames are noise with a dot that moves one pixel a frame; the classes are left, right, up and down. No frame alone tells. The
topology is a product, `chain(time) * grid(rows, cols)`: each pixel has edges to its neighbours and to itself a frame later.
"""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import optax

import stmlang

TIME, SIDE = 4, 6
WAYS = np.array([(0, -1), (0, 1), (-1, 0), (1, 0)])
SPEC = """
topology video = chain(time) * grid(rows, cols)
scan moving(heads = 2, key = 8, value = 8) on video {
    directions all
    share[out]          = softmax(linear(x), over = out)
    source[out]         = sigmoid(linear(x))
    transition[out, in] = share * tanh(linear(x, bias = 1))
    mark[in]            = sigmoid(linear(x))
    direct              = sigmoid(linear(x))
    stabilize P
}
"""


class Classifier(eqx.Module):
    """Pixels in, a layer over the video, the largest of each feature, a head."""

    inward: eqx.nn.Linear
    layer: stmlang.nn.ScanLayer
    perceptron: eqx.nn.MLP

    def __init__(self, dim: int, key: jax.Array) -> None:
        inward, own, head = jax.random.split(key, 3)
        op = stmlang.compile(SPEC, time=TIME, rows=SIDE, cols=SIDE)
        self.inward, self.layer = eqx.nn.Linear(1, dim, key=inward), stmlang.nn.ScanLayer(op, dim, key=own)
        self.perceptron = eqx.nn.MLP(dim, len(WAYS), 64, 1, key=head)

    def __call__(self, video: jax.Array) -> jax.Array:
        x = video[..., None] @ self.inward.weight.T + self.inward.bias
        x = x + self.layer(x)
        return self.perceptron(x.max((0, 1, 2)))


def videos(count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Frames, and which way the dot goes; it leaves at one border and comes back at the other."""
    way = generator.integers(0, len(WAYS), count)
    place = generator.integers(0, SIDE, (count, 1, 2)) + np.arange(TIME)[:, None] * WAYS[way][:, None]
    frames = 0.3 * generator.standard_normal((count, TIME, SIDE, SIDE))
    which, frame = np.ogrid[:count, :TIME]
    frames[which, frame, place[..., 0] % SIDE, place[..., 1] % SIDE] += 2
    return frames.astype(np.float32), way


@eqx.filter_jit
def step(
    model: Classifier, state: optax.OptState, frames: jax.Array, way: jax.Array
) -> tuple[Classifier, optax.OptState, jax.Array]:
    def loss(model: Classifier) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(frames), way).mean()

    value, slope = eqx.filter_value_and_grad(loss)(model)
    updates, state = OPTIMIZER.update(slope, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, value


OPTIMIZER = optax.adamw(5e-3)


def main(steps: int = 150) -> float:
    """Train, print, and return the share of new videos that are right."""
    generator = np.random.default_rng(0)
    model = Classifier(32, jax.random.key(0))
    state = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))
    for number in range(steps):
        model, state, value = step(model, state, *videos(32, generator))
        if number % 50 == 0:
            print(f"step {number}: loss {value:.3f}")
    frames, way = videos(256, generator)
    right = float((jax.vmap(model)(frames).argmax(-1) == way).mean())
    print(f"{right:.1%} of 256 new videos are right")
    return right


if __name__ == "__main__":
    main()
