"""What is computed apart stays a call of its own in the compiled program, and the same function to every transformation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from stmlang.lower.no_fusion import apart


def _outer(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.where(a[:, None] > 0, a[:, None] * b, jnp.sin(b))


kept = apart(_outer)


def _read(outer: object, a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.dot(outer(a, b).reshape(-1), jnp.arange(6.0))  # type: ignore[operator]


def arguments() -> tuple[jax.Array, jax.Array]:
    return jnp.asarray([1.0, -2.0]), jnp.asarray([0.5, 2.0, -1.0])


def test_xla_keeps_the_call_on_cpus() -> None:
    """The program ends its own computation in the shape that it makes, and nothing else of it is a call."""
    text = jax.jit(lambda a, b: _read(kept, a, b)).lower(*arguments()).compile().as_text()
    calls = [line for line in text.splitlines() if " call(" in line]
    assert len(calls) == 1
    assert "[2,3]" in calls[0].split(" call(")[0]


def test_transformations() -> None:
    a, b = arguments()
    batch = jnp.stack([b, 2 * b])
    assert np.array_equal(kept(a, b), _outer(a, b))
    assert np.array_equal(jax.vmap(kept, (None, 0))(a, batch), jax.vmap(_outer, (None, 0))(a, batch))
    for transform in (jax.grad, lambda f: jax.jacfwd(f), lambda f: jax.grad(lambda a, b: jax.grad(f)(a, b).sum())):
        one, other = (transform(lambda a, b, outer=outer: _read(outer, a, b))(a, b) for outer in (kept, _outer))
        assert np.allclose(one, other, rtol=1e-6)
