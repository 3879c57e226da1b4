"""Every spec of the library, by the strategies that take it: by half of them always, by the others in slow tests."""

from __future__ import annotations

from dataclasses import replace

import jax
import pytest

import stmlang
from stmlang.check import library_specs, load
from stmlang.fuzz.generators import random_arguments
from stmlang.scan.sizes import unbound
from tests.graph.graphs import banded
from tests.helpers.calls import as_tree, errors
from tests.helpers.turns import half, halves

SIZES = {"heads": 2, "key": 3, "value": 2}
AXES = {1: (4,), 2: (4, 5), 3: (2, 3, 2)}


GRAPHS = [banded(6, 9, 3, 0), banded(9, 20, 4, 1)]


def compiled(name: str, sizes: dict[str, int], strategy: str | None = None) -> stmlang.CompiledScan:
    """A spec of the library, on two graphs where it has none of its own."""
    op = stmlang.compile(f"std:{name}", dtype="float64", strategy=strategy, **sizes)
    found = op.at(GRAPHS) if isinstance(op, stmlang.GraphScan) else op
    assert isinstance(found, stmlang.CompiledScan)
    return found


NAMES = [name for name in library_specs() if name != "gates"]


@halves
@pytest.mark.parametrize("name", NAMES)
def test_library(name: str, late: bool) -> None:
    open_sizes = unbound(load(f"std:{name}"))
    sizes = SIZES | dict(zip(open_sizes, AXES.get(len(open_sizes), ()), strict=True))
    planned = compiled(name, sizes)
    tree = as_tree(random_arguments(planned, 0))
    wanted = planned.reference_result(*tree)
    # What padding reads is anything.
    real = sum(dag.node_count for dag in GRAPHS) if planned.compilation.at_run_time else planned.node_shape[0]
    wanted = replace(wanted, h=wanted.h[:real])
    strategies = sorted({entry.estimate.candidate.strategy for entry in planned.plan.ranked})
    for strategy in half(strategies, NAMES.index(name), late):
        op = compiled(name, sizes, strategy)
        h, state = jax.jit(lambda *tree, op=op: op(*tree, return_state=True))(*tree)
        assert max(errors((h[:real], state), wanted).values()) < 1e-10, strategy
