"""Every strategy is lowered for GPUs, forward and backward, where there is none: what only a CPU knows must not get in."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from stmlang.fuzz.generators import random_arguments
from tests.helpers.calls import as_tree
from tests.helpers.smallest import compiled, example_of, kernels, names
from tests.helpers.turns import half, halves

CALLED = re.compile(r"custom_call(?:_target_name = \"| @)([\w.$]+)")
KERNEL = "mosaic_gpu"
ON_GPUS = ("cu", "__cu", "xla.gpu.", "Sharding", KERNEL)
"""How the names of calls begin that XLA's GPU backend knows: NVIDIA's libraries, XLA's own, the notes of a partitioner, and
kernels of Pallas."""
EVERY = (*names(), *kernels())


@halves
@pytest.mark.parametrize("strategy", EVERY)
def test_every_strategy_is_lowered_for_cuda(strategy: str, late: bool) -> None:
    """In float32 or in bfloat16 by turns."""
    (dtype,) = half(("float32", "bfloat16"), EVERY.index(strategy), late)
    example, config = example_of(strategy)
    op = compiled(example, dtype, target="gpu", strategy=strategy, config=config)
    assert op.plan.strategy == strategy
    tree = jax.tree.map(lambda array: jnp.asarray(array, dtype), as_tree(random_arguments(op, 0)))

    def forward(op: Any, tree: Any) -> Any:
        return op(*tree, return_state=True)

    def backward(op: Any, tree: Any) -> Any:
        h, pull = jax.vjp(lambda tree: op(*tree), tree)
        return pull(jnp.ones_like(h))

    for call in (forward, backward):
        text = jax.jit(call).trace(op, tree).lower(lowering_platforms=("cuda",)).as_text()
        assert "dot_general" in text or "multiply" in text
        unknown = {name for name in CALLED.findall(text) if not name.startswith(ON_GPUS)}
        assert not unknown, f"only a CPU knows {', '.join(sorted(unknown))}"
        assert (KERNEL in text) == (strategy in kernels())


def test_what_only_a_cpu_knows_is_seen() -> None:
    text = jax.jit(jnp.linalg.qr).trace(jnp.eye(3)).lower(lowering_platforms=("cpu",)).as_text()
    assert [name for name in CALLED.findall(text) if not name.startswith(ON_GPUS)]
