"""What JAX spends on compiling, said under the topic `compile`: all of it, since a scan is mostly a part of more."""

from __future__ import annotations

from functools import cache

import jax.monitoring

from stmlang.log import COMPILE, on

STEPS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "StableHLO",
    "/jax/core/compile/backend_compile_duration": "XLA",
}


@cache
def listen() -> None:
    """Say from now on what JAX compiles and how long it takes."""
    jax.monitoring.register_event_duration_secs_listener(_told)


def _told(event: str, duration_secs: float, **kwargs: str | int) -> None:
    step = STEPS.get(event)
    if step is not None and on(COMPILE):
        COMPILE.info("%s of %s: %.3f s", step, kwargs.get("fun_name") or "a program", duration_secs)
