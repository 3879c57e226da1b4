"""What a node reads agrees with its definition, whichever way a mark or a direct gate goes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.lower.node_reads import read_through, read_written

HEAD, DIRECTION, TRACK, KEY, VALUE = 2, 3, 2, 5, 4


def drawn(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(len(shape)).normal(size=(HEAD, DIRECTION, *shape)))


@pytest.mark.parametrize("value", [1, VALUE])
@pytest.mark.parametrize("key", [1, KEY])
@pytest.mark.parametrize("track", [1, TRACK])
def test_marks(track: int, key: int, value: int) -> None:
    mark, query, state = drawn(track, key, value), drawn(KEY), drawn(TRACK, KEY, VALUE)
    expected = jnp.einsum("hdk,hdtkv->hdv", query, mark * state)
    np.testing.assert_allclose(read_through(mark, query, state), expected, rtol=1e-12)


@pytest.mark.parametrize("value", [1, VALUE])
@pytest.mark.parametrize("key", [1, KEY])
def test_direct_gates(key: int, value: int) -> None:
    direct, query, keys, values = drawn(key, value), drawn(KEY), drawn(KEY) + 1, drawn(VALUE)
    expected = jnp.einsum("hdk,hdkv->hdv", query, direct * keys[..., None] * values[..., None, :])
    np.testing.assert_allclose(read_written(direct, query, keys, values), expected, rtol=1e-12)
