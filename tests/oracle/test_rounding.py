"""What values and derivatives may be off by where they are formed from what cancels: never nothing by chance, and little enough
that a wrong one is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

from stmlang.fuzz.checks import CHECKS
from stmlang.fuzz.checks.point import as_tree, point
from stmlang.fuzz.trial import Trial, Way
from stmlang.oracle.derivative import turned
from stmlang.oracle.functions import Floats
from stmlang.oracle.gates import DirectionGates, evaluate_gates
from stmlang.oracle.rounding import STEP, WAYS, Rounding
from stmlang.oracle.tolerance import sizes_of
from stmlang.program import expressions
from tests.fuzz.faults import Fault, objection, planted
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]

BODY = "{ transition = 5 * param(0.5); source = 1; k = l2norm(k); v = v * sigmoid(linear(x)); read after"
SMALL = f"scan drawn(heads = 2, key = 2, value = 3) on grid(rows = 2, cols = 3) {BODY} }}"
NORMALIZED = f"scan drawn(heads = 2, key = 2, value = 3) on grid(rows = 2, cols = 8, deep = 1) {BODY}; directions all }}"
"""Its transition is divided by three times itself, being stabilized: the derivative is zero, of two terms that are not."""
DRAWN = {"kept": (28, 44), "saturated": (32, 40, 44), "random": (8,)}


def test_a_derivative_that_cancels_is_allowed_its_rounding() -> None:
    """Keys of length one, some large values, and a transition whose derivative cancels."""
    for values, draws in DRAWN.items():
        for draw in draws:
            assert CHECKS["jvp"](replace(Trial(NORMALIZED, "case", values, 49), draw=draw), Way("recurrent", {})) is None


def test_terms_that_cancel_are_counted_in_every_draw() -> None:
    """Of the derivative of the transition by its parameter, which is all that moves: at least a unit of one of the terms."""
    for draw in Trial(SMALL, "case", "random", 3).draws(64):
        here = point(draw, "float64", False)
        parameter = here.arrays[1].index("leaf `transition`")
        along = replace(here.along(None), q=np.zeros_like(here.at.q), k=np.zeros_like(here.at.k), v=np.zeros_like(here.at.v))
        inputs, _ = turned(here.at, along)
        gates = evaluate_gates(here.scan, here.dag, *inputs)[0]
        noisy = [evaluate_gates(here.scan, here.dag, *inputs, evaluator=partial(Rounding, way))[0] for way in WAYS]
        sizes = sizes_of(here.scan, gates, noisy, np.zeros((1, 2, 2, 3)))
        arrays = jax.tree.leaves(as_tree(here.at)), jax.tree.leaves(as_tree(along))
        value, change = (np.abs(array[parameter]) for array in arrays)
        term = np.where(value > 1 / 10, change / np.maximum(2 * value, 1 / 5), 5 * change)  # of the quotient, or undivided
        assert np.all(sizes.change_errors.transition.array[0] >= term)


TAKEN_BACK = """scan apart(heads = 2, key = 2, value = 2) on chain(time = 9) {
    source     = tanh(linear(x)) - tanh(linear(x))
    transition = sigmoid(linear(x)) / (1 + sigmoid(linear(x)))
    mark       = mean(k, over = key)
}"""


def test_terms_take_back_nothing_in_any_draw() -> None:
    """A difference and a mean are off by a unit of each of their terms at least, a quotient by two of its own."""
    for draw in Trial(TAKEN_BACK, "case", "random", 3).draws(16):
        here = point(draw, "float64", False)
        arguments = (here.scan, here.dag, here.at.q, here.at.k, here.at.v, here.at.gates)
        gates = evaluate_gates(*arguments)[0]
        noisy = [evaluate_gates(*arguments, evaluator=partial(Rounding, way))[0] for way in WAYS]

        def off(name: str, gates: DirectionGates = gates, noisy: list[DirectionGates] = noisy) -> Floats:
            exact = getattr(gates, name).array
            return np.max([np.abs(getattr(way, name).array - exact) for way in noisy], axis=0) / STEP

        first, second = (np.abs(np.tanh(here.at.gates[name])).reshape(9, 2) for name in ("source", "source.2"))
        almost = 1 - 1e-3
        assert np.all(off("source") >= almost * (first + second))
        assert np.all(off("mark") >= almost * np.abs(here.at.k).mean(-1))
        assert np.all(off("transition") >= 2 * almost * gates.transition.array)


# --- wrong derivatives


def fixed_length(_: Callable[..., Any]) -> Callable[..., Any]:
    """The length of what is normalized is taken for a constant."""

    def wrong(kind: str, array: jax.Array, total: Callable[[jax.Array], jax.Array]) -> jax.Array:
        assert kind == "l2"
        return array * jax.lax.stop_gradient(jax.lax.rsqrt(total(array * array) + expressions.L2_EPSILON))

    return wrong


@pytest.mark.parametrize("check", ["jvp", "grad"])
def test_a_wrong_derivative_of_a_normalization_is_caught(check: str) -> None:
    trial = Trial(SMALL, "case", "kept", 49)
    fault = Fault("the length of a key taken for a constant", expressions, "_rescale", fixed_length, trial, "recurrent")
    assert objection(check, fault) is None
    with planted(fault):
        assert objection(check, fault) is not None
