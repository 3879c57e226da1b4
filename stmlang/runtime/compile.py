"""From a spec to a compiled scan."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast

import jax

from stmlang.check import load
from stmlang.facts import analyse
from stmlang.graph.build import dag_of
from stmlang.lower.program import Program
from stmlang.plan.candidate import ConfigValue
from stmlang.plan.choose import make_plan
from stmlang.plan.problem import DtypeName, Problem
from stmlang.plan.target import Target, target_of
from stmlang.runtime.compiled import Compilation, CompiledScan, build
from stmlang.runtime.open import OpenScan
from stmlang.runtime.signature import Signature, call_error
from stmlang.scan.scan import Scan
from stmlang.scan.sizes import unbound

GPU_KINDS = (("H200", "h200"), ("H100", "h100"), ("A100", "a100"))


def compile(
    source: str | PathLike[str],
    *,
    target: str = "auto",
    dtype: DtypeName = "float32",
    mode: Literal["training", "inference"] = "training",
    memory_limit: int | None = None,
    batch: int = 1,
    strategy: str | None = None,
    config: Mapping[str, ConfigValue] | None = None,
    scan: str | None = None,
    **sizes: int | float,
) -> CompiledScan | OpenScan:
    """Compile a spec: `std:...`, a path, or the text itself.

    `sizes` are the sizes and numbers that the spec leaves open or gives defaults for. `target` is the machine to plan for,
    `auto` the one JAX runs on; `mode` whether a backward pass counts; `batch` how many scans a call will be mapped over;
    `memory_limit` in bytes. `strategy` and `config` overrule the planner. `scan` names one of several scans in a file (the
    last by default).

    A spec with an axis whose size is not known yet gives an `OpenScan`, which is compiled for the sizes that its first call
    has, and again for others. Raises SpecError for a wrong spec, unknown sizes, or a scan that no strategy can evaluate.
    """
    checked = load(source if isinstance(source, str) else Path(source), sizes, scan=scan)
    require_dtype(dtype)
    chosen = target_of(machine() if target == "auto" else target)

    def finish(bound: Scan) -> CompiledScan:
        circumstances = {"mode": mode, "memory_limit": memory_limit, "batch": batch}
        return compile_scan(bound, chosen, dtype=dtype, strategy=strategy, config=config, **circumstances)

    return OpenScan(checked, dtype, finish) if unbound(checked) else finish(checked)


def compile_scan(
    scan: Scan,
    target: Target,
    *,
    dtype: DtypeName,
    strategy: str | None = None,
    config: Mapping[str, ConfigValue] | None = None,
    **circumstances: Any,
) -> CompiledScan:
    """Compile a checked scan whose sizes are bound."""
    dag = dag_of(scan.topology)
    facts = analyse(scan, dag)
    problem = Problem.of(facts.scan, dag, dtype, facts=facts, **circumstances)
    plan = make_plan(problem, target, strategy=strategy, config=config)
    program = Program(problem, dag, plan.chosen.candidate)
    return build(Compilation(scan, facts, plan, program, Signature.of(facts.scan, dag, dtype)))


def machine() -> str:
    """The name of the target that JAX runs on."""
    if jax.default_backend() != "gpu":
        return "cpu"
    kind = cast(str, jax.devices()[0].device_kind)
    return next((name for word, name in GPU_KINDS if word in kind), "gpu")


def require_dtype(dtype: str) -> None:
    """Raises SpecError (STM5207) for float64 while JAX has it switched off."""
    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise call_error(
            "STM5207",
            "float64 was asked for, but JAX computes in 32 bits",
            help='switch it on before anything else: `jax.config.update("jax_enable_x64", True)`, or JAX_ENABLE_X64=1',
        )
