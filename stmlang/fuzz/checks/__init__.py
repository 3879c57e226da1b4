"""Checks of a compiled scan against the oracles: each takes a trial and a way, and is None where there is nothing to object.

All of them need JAX's 64 bits. What the oracles say of a trial is kept for the next way. Compiling takes most of their time:
within `programs.quick_compilation()` it takes a quarter of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from stmlang.fuzz.checks.agreement import oracles
from stmlang.fuzz.checks.batches import vmap
from stmlang.fuzz.checks.curvature import hvp
from stmlang.fuzz.checks.declared import declared
from stmlang.fuzz.checks.evaluation import jit, value
from stmlang.fuzz.checks.gradients import bfloat16, float32, grad, jvp, remat
from stmlang.fuzz.trial import Check

CHECKS: Mapping[str, Check] = {
    "value": value,
    "grad": grad,
    "jit": jit,
    "remat": remat,
    "jvp": jvp,
    "vmap": vmap,
    "hvp": hvp,
    "float32": float32,
    "bfloat16": bfloat16,
    "declared": declared,
    "oracles": oracles,
}
"""All checks by name, cheap ones first."""
