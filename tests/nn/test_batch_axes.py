"""An array with a batch axis, or one that is not filled up as its batch of graphs is, is told what to do; and that works."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph import batch as batch_of
from stmlang.graph.convert import from_edges
from stmlang.source.advice import Call
from stmlang.source.diagnostic import Diagnostic, SpecError

BODY = "{ source = sigmoid(linear(x)); transition = 0.5 * sigmoid(linear(x)) }\n"


def refused(call: Any) -> Diagnostic:
    with pytest.raises(SpecError) as caught:
        call()
    assert caught.value.diagnostics[0].code == "STM5201"
    return caught.value.diagnostics[0]


def followed(found: Diagnostic, **names: Any) -> Any:
    """The call that a finding suggests, made."""
    (fix,) = found.fixes
    assert isinstance(fix, Call)
    return eval(fix.code, {"jax": jax, **names})


@pytest.mark.parametrize("size", ["", " = 3"])
def test_a_batch_axis_names_vmap(size: str) -> None:
    op: Any = stmlang.compile(f"scan s(key = 2, value = 2) on chain(time{size}) {BODY}")
    layer = stmlang.nn.ScanLayer(op, 4, key=jax.random.key(0))
    x = jnp.ones((5, 3, 4))
    found = refused(lambda: layer(x))
    assert "jax.vmap" in (found.help or "")
    assert followed(found, op=layer, layer=layer)(x).shape == x.shape
    q, gates = jnp.ones((5, 3, 1, 2)), {leaf.name: jnp.ones((5, 3, 1)) for leaf in op.scan.leaves}
    found = refused(lambda: op(q, q, q, gates))
    assert followed(found, op=op)(q, q, q, gates).shape == q.shape


def test_features_that_are_not_filled_up_name_the_batch() -> None:
    op: Any = stmlang.compile(f"scan s(key = 2, value = 2) on dag(nodes <= 9, edges <= 9) {BODY}")
    batch = batch_of([from_edges([(0, 1), (1, 2)]).dag])
    on = op.at(batch)
    layer = stmlang.nn.ScanLayer(op, 4, key=jax.random.key(0))
    x = np.ones((3, 4), np.float32)
    found = refused(lambda: layer(x, on=on))
    assert "batch.nodes" in (found.help or "")
    assert layer(followed(found, batch=batch, x=x), on=on).shape == (batch.bucket.nodes, 4)
    q = np.ones((3, 1, 2), np.float32)
    found = refused(lambda: on(q, q, q, {}))
    assert followed(found, batch=batch, q=q).shape == (batch.bucket.nodes, 1, 2)
