"""Every strategy against the recurrence in float64: value and gradient, on the device, in each type of numbers.

A case is a strategy on its smallest scan (`tests/helpers/smallest.py`) in one of

    float64                 as the tests have it on a CPU
    float32                 products at the highest precision, as everything of ours asks for
    bfloat16                sums in float32
    TF32                    float32 where JAX is told that products may round their factors to 10 bits

Errors are of the result, by the largest number of it, and of the slope along a random change of all arguments. TF32 is not
judged: it shows whether a program lets that setting through.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from benchmarks.gpu.settings import Options

SHARE, TITLE = 0.3, "Every strategy against the recurrence"
ENVIRONMENT = {"JAX_ENABLE_X64": "1"}
HEADER = ("strategy", "numbers", "error of value", "error of gradient", "allowed", "")
NUMBERS = {"float64": "float64", "float32": "float32", "bfloat16": "bfloat16", "TF32": "float32"}
"""Kinds of numbers, and the data type that a scan is compiled with for them."""
DRY = ("recurrent", "separable")


def cases(options: Options) -> list[str]:
    from stmlang.strategies.registry import strategies

    names = [strategy.name for strategy in strategies() if not options.dry or strategy.name in DRY]
    kinds = [kind for kind in NUMBERS if not options.dry or kind in ("float64", "bfloat16")]
    return [f"{name} {kind}" for kind in kinds for name in names]


def measure(case: str, options: Options) -> dict[str, Any]:
    """How far a strategy is off."""
    del options
    import jax

    from stmlang.runtime.verdict import TOLERANCE

    name, kind = case.split(" ")
    precision = "tensorfloat32" if kind == "TF32" else "highest"
    with jax.default_matmul_precision(precision):
        value, gradient = errors(name, NUMBERS[kind])
    allowed = None if kind == "TF32" else TOLERANCE[kind]
    good = allowed is None or max(value, gradient) <= allowed
    return {"value": value, "gradient": gradient, "allowed": allowed, "ok": bool(good and np.isfinite([value, gradient]).all())}


def errors(strategy: str, dtype: str) -> tuple[float, float]:
    """Of the value and of the gradient of a strategy's smallest scan in a type of numbers."""
    import jax
    import jax.numpy as jnp

    from tests.helpers import smallest

    example, config = smallest.example_of(strategy)
    subject: Any = smallest.smallest(strategy)
    op: Any = smallest.compiled(example, dtype=dtype, strategy=strategy, config=config)

    def rounded(array: Any) -> Any:
        return jnp.asarray(array, dtype)

    def every(number: int) -> bool:
        return number >= 0

    given: Any = jax.tree.map(rounded, subject.trees[0])
    exact: Any = jax.tree.map(_numbers, given)
    wanted, cotangent = subject.result(exact).h, np.asarray(subject.cotangent[0])
    real = subject.real

    def product(tree: Any) -> Any:
        h: Any = op(*tree)
        return jnp.sum(h.astype(jnp.float64) * cotangent), h

    (_, h), pulled = cast(Any, jax.jit(jax.value_and_grad(product, has_aux=True)))(given)
    value = _error(_numbers(h).reshape(wanted.shape)[_rows(real, wanted)], wanted[_rows(real, wanted)])
    along: Any = subject.changed(every)
    change = np.asarray(subject.derivative(exact, along).h)
    slope = float(np.vdot(cotangent, change))
    pairs = zip(jax.tree.leaves(pulled), jax.tree.leaves(along), strict=True)
    found = float(sum(np.vdot(_numbers(back), _numbers(moved)) for back, moved in pairs))
    scale = float(np.linalg.norm(cotangent) * np.linalg.norm(change)) or 1.0
    return value, abs(found - slope) / scale


def row(case: str, found: dict[str, Any]) -> tuple[str, ...]:
    name, kind = case.split(" ")
    allowed = "-" if found["allowed"] is None else f"{found['allowed']:.0e}"
    return name, kind, f"{found['value']:.1e}", f"{found['gradient']:.1e}", allowed, "" if found["ok"] else "WRONG"


def _numbers(array: Any) -> np.ndarray:
    return np.asarray(array).astype(np.float64)


def _rows(real: np.ndarray, wanted: np.ndarray) -> Any:
    """The nodes that are no padding; of regular topologies all."""
    return real if real.shape == wanted.shape[:1] and not real.all() else slice(None)


def _error(found: np.ndarray, wanted: np.ndarray) -> float:
    scale = float(np.abs(wanted).max(initial=0.0)) or 1.0
    return float(np.abs(found - wanted).max(initial=0.0)) / scale
