"""A sequence tagger: which letters stand between an opening and a closing bracket, by a scan that runs both ways.

    python examples/tagger.py

Sequences are letters with brackets at random; brackets do not nest. A letter is inside if the last bracket before it opens and
the next one behind it closes. Trained on 64 letters, tested on 256.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import stmlang

OPEN, CLOSE, LETTERS = 0, 1, 8
SPEC = """
scan brackets(heads = 4, key = 8, value = 8) on chain(time) {
    directions both
    source     = sigmoid(linear(x))
    transition = sigmoid(linear(x, bias = 3))
    mark       = sigmoid(linear(x))
    direct     = sigmoid(linear(x))
}
"""


class Tagger(eqx.Module):
    """An embedding, two layers, a head; the scans have no length, so that sequences may have any."""

    embed: eqx.nn.Embedding
    layers: list[stmlang.nn.ScanLayer]
    head: eqx.nn.Linear

    def __init__(self, dim: int, key: jax.Array) -> None:
        embed, head, *own = jax.random.split(key, 4)
        op = stmlang.compile(SPEC)
        self.embed = eqx.nn.Embedding(LETTERS, dim, key=embed)
        self.layers = [stmlang.nn.ScanLayer(op, dim, key=each) for each in own]
        self.head = eqx.nn.Linear(dim, 1, key=head)

    def __call__(self, letters: jax.Array) -> jax.Array:
        x = jax.vmap(self.embed)(letters)
        for layer in self.layers:
            x = x + layer(x)
        return jax.vmap(self.head)(x)[:, 0]


def sequences(count: int, time: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Letters, and for each whether it is inside."""
    plain = generator.integers(2, LETTERS, (count, time))
    bracket = generator.random((count, time)) < 0.15
    letters = np.where(bracket, generator.integers(0, 2, (count, time)), plain)
    before, behind = np.full(count, CLOSE), np.full(count, OPEN)
    opened, closed = np.zeros((count, time), bool), np.zeros((count, time), bool)
    for place in range(time):
        opened[:, place] = before == OPEN
        before = np.where(bracket[:, place], letters[:, place], before)
        other = time - 1 - place
        closed[:, other] = behind == CLOSE
        behind = np.where(bracket[:, other], letters[:, other], behind)
    return letters, opened & closed & ~bracket


@eqx.filter_jit
def step(
    model: Tagger, state: optax.OptState, letters: jax.Array, inside: jax.Array
) -> tuple[Tagger, optax.OptState, jax.Array]:
    def loss(model: Tagger) -> jax.Array:
        return optax.sigmoid_binary_cross_entropy(jax.vmap(model)(letters), inside.astype(jnp.float32)).mean()

    value, slope = eqx.filter_value_and_grad(loss)(model)
    updates, state = OPTIMIZER.update(slope, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, value


OPTIMIZER = optax.adamw(5e-3)


def main(steps: int = 400) -> float:
    """Train, print, and return the share of right letters of longer sequences."""
    generator = np.random.default_rng(0)
    model = Tagger(32, jax.random.key(0))
    state = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))
    for number in range(steps):
        model, state, value = step(model, state, *sequences(32, 64, generator))
        if number % 100 == 0:
            print(f"step {number}: loss {value:.3f}")
    letters, inside = sequences(64, 256, generator)
    right = float(((jax.vmap(model)(letters) > 0) == inside).mean())
    print(f"of letters in sequences of 256, {right:.1%} are right; nobody inside: {1 - inside.mean():.1%}")
    return right


if __name__ == "__main__":
    main()
