"""Scans step by step are the whole pass: value and states for every kind of gate on every topology, gradients for every other
case, for all in slow tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from tests.helpers.calls import Expected, Tree, as_tree, compiled, dot, error, expected
from tests.helpers.cases import CASES, GIVEN, NONE, SQUARE, TRACKS, Case

FORWARD = "    directions forward\n"
ROWS = "    directions +rows +cols, +rows -cols\n"


def forward(case: Case) -> Case:
    """The case in one direction."""
    lines = (line for line in case.body.splitlines(keepends=True) if not line.strip().startswith("directions"))
    return replace(case, name=f"{case.name} forward", body="".join(lines) + FORWARD)


def cases(turn: int) -> list[Any]:
    """One direction of each scan of the table, and grids with several that go along the rows. Of those that are tried always
    every other one, from the first or the second in turn."""
    table = {(case.topology, case.body): case for case in map(forward, CASES) if "neighbour" not in case.body}
    more = [
        Case("grid 4x3 two ways", SQUARE.format(4, 3), GIVEN + ROWS + NONE, ()),
        Case("grid 2x1 two ways", SQUARE.format(2, 1), TRACKS + ROWS.replace("\n", " concat\n") + NONE, ()),
        Case("volume", "grid(a = 2, b = 3, c = 2)", GIVEN + "    directions +a -b +c, +a +b -c\n" + NONE, (), heads=1),
    ]
    every = [*table.values(), *more]
    always = [case for case in every if _quick(case)][turn::2]
    return [pytest.param(case, id=case.name, marks=() if case in always else pytest.mark.slow) for case in every]


def _quick(case: Case) -> bool:
    """Whether a case is tried always: those that only strategies can tell apart are not."""
    alike = ("constant", "turn", "exact", "8x8", "9x13", "129", "loners", "random", "factors g", "factors d", "product")
    return case.quick and not any(word in case.name for word in alike)


def by_steps(op: stmlang.CompiledScan, tree: Tree) -> Tree:
    """The result and the final state, step by step in one loop."""
    *arrays, initial = tree
    first, *others = op.dag.ports
    along = op.dag.regular is not None
    steps = op.node_shape[0] if along else op.dag.node_count

    def step(state: Any, number: Any) -> Any:
        options = {}
        if along and others:
            options["entering"] = tuple({port: states[port][number] for port in others} for states in initial)
        h, state = op.step(state, *op.step_arguments(number, *arrays), **options)
        return state, h

    state, h = jax.lax.scan(step, op.init_state(initial), jnp.arange(steps))
    if not along:
        places = jnp.argsort(op.stream().order)
        h = h[places].reshape(*op.node_shape, *h.shape[1:])
    final = op.final_state(state)
    return h, tuple({first: states[first]} for states in final) if along else final


@pytest.mark.parametrize("topology", ["chain(t = 4)", "grid(rows = 3, cols = 2)", "dag { a -> b }"])
def test_a_step_does_not_know_its_neighbours(topology: str) -> None:
    op = stmlang.compile(f"scan s on {topology} {{ source = 1; transition = 0.5; mark[in] = neighbour(in) }}")
    with pytest.raises(stmlang.SpecError, match="STM5211"):
        op.init_state()


@pytest.mark.parametrize("case", cases(0))
def test_value_and_gradient(case: Case) -> None:
    """Value, final states and, along a change of each argument, gradient are those of the recurrence."""
    op, known = compiled(case), expected(case)

    def product(tree: Tree) -> Any:
        h, state = by_steps(op, tree)
        weights = known.cotangent[0], selected(known.cotangent[1], state)
        terms = jax.tree.map(lambda a, b: jnp.sum(a * b), (h, state), weights)
        return sum(jax.tree.leaves(terms)), (h, state)

    (_, (h, state)), gradient = jax.jit(jax.value_and_grad(product, has_aux=True))(as_tree(known.arguments))
    agrees(h, state, known)
    weights = known.cotangent[0], selected(known.cotangent[1], state)
    for array, change, tangent in zip(jax.tree.leaves(gradient), known.changes, known.tangents, strict=True):
        slope = dot(weights, (tangent.h, selected(tangent.state, state)))
        moved = np.asarray(array) * change
        assert abs(float(np.sum(moved)) - slope) < 1e-10 * max(abs(slope), float(np.linalg.norm(moved)), 1e-3)


@pytest.mark.parametrize("case", cases(1))
def test_value(case: Case) -> None:
    """Value and final states are those of the recurrence."""
    op, known = compiled(case), expected(case)
    agrees(*jax.jit(lambda tree: by_steps(op, tree))(as_tree(known.arguments)), known)


def agrees(h: Any, state: Any, known: Expected) -> None:
    assert error(h, known.result.h) < 1e-12
    for number, ports in enumerate(state):
        for port, array in ports.items():
            assert error(array, known.result.state[number][port]) < 1e-12


def selected(states: Any, like: Any) -> Any:
    """Of states those at the ports that another has: steps along an axis end with what leaves along it."""
    return tuple({port: ports[port] for port in kept} for ports, kept in zip(states, like, strict=True))
