"""From a spec to a compiled scan."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal

import jax
from jax.sharding import Mesh
from jax.typing import DTypeLike

from stmlang.compiler import Call, Request, load
from stmlang.cost.settings import ConfigValue, Settings, freeze
from stmlang.facts import Facts, analyse
from stmlang.runtime.compiled import CompiledScan, compile_scan
from stmlang.runtime.cut import division_of
from stmlang.runtime.graphs import GraphScan
from stmlang.runtime.lengths import Lengths, require_open
from stmlang.runtime.open import OpenScan
from stmlang.runtime.options import call_options, plain, search_path, settings, spec_text, target_name
from stmlang.runtime.sharded import ShardedScan, shard_scan
from stmlang.runtime.sharded_graphs import ShardedGraphScan
from stmlang.runtime.signature import call_error
from stmlang.scan.sizes import unbound
from stmlang.scan.topology import Runtime
from stmlang.source.diagnostic import Severity, StabilityWarning, render


def compile(
    source: str | PathLike[str],
    *,
    target: str = "auto",
    dtype: DTypeLike = "float32",
    mode: Literal["training", "inference"] = "training",
    memory_limit: int | None = None,
    batch: int | Literal["mapped"] = "mapped",
    strategy: str | None = None,
    config: Mapping[str, ConfigValue] | Settings | None = None,
    scan: str | None = None,
    tuned: bool = True,
    mesh: Mesh | None = None,
    shard: Mapping[str, str] | None = None,
    path: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    **sizes: int | float | Lengths,
) -> CompiledScan | OpenScan | GraphScan | ShardedScan | ShardedGraphScan:
    """Compile a spec: `std:...`, a path, or the text itself.

    `sizes` are the sizes and numbers that the spec leaves open or gives defaults for. `target` is the machine to plan for,
    `auto` the one JAX runs on; `dtype` float32, float64 or bfloat16, by name or as JAX and numpy have it (`jnp.bfloat16`);
    `mode` whether a backward pass counts: of "training" only calls that are differentiated follow that plan, and any other that
    for inference; `batch` how many scans a call will be mapped over, if that is to be
    the same for all calls, else each call is planned for the batch that `jax.vmap` maps it over; `memory_limit` in bytes.
    `strategy` and `config` overrule the planner; `config` holds the strategy's settings, by name or as its dataclass, such as
    a plan's `settings`. `scan` names one of several scans in a file (the last by default). `path` is a
    folder, or several, where imports and graph files are looked for behind the folder of the file that names them, and before
    those of the environment variable STMLANG_PATH. What `stmlang tune` measured on this machine comes before what is predicted,
    unless `tuned` is off.

    With `mesh` and `shard={"time": "x"}`, or `shard={"rows": "x", "cols": "y"}`, the nodes of a chain or grid lie on several
    devices, along one or more of its axes and as many of the mesh's, which gives a `ShardedScan`. With
    `shard={"graphs": "x"}` graphs that come at run time are divided among the devices, which gives a `ShardedGraphScan`.

    A spec with an axis whose size is not known yet gives an `OpenScan`, which is compiled for the sizes that its first call
    has, and again for others; with `time=stmlang.Lengths()` it is compiled for few sizes, to which it fills up what it is
    given. One whose graphs come at run time gives a `GraphScan`, whose `at` gives it graphs. Raises SpecError for a wrong spec,
    unknown sizes, or a scan that no strategy can evaluate. Warns (`StabilityWarning`) where `stabilize` is not said and a
    mode had to be inserted, so that numbers may be others than the equations say.
    """
    text, mapped = spec_text(source), isinstance(batch, str) and batch == "mapped"
    options = call_options(dtype, mode, 1 if mapped else batch, memory_limit, strategy, tuned, scan)
    kind, mode, number, memory_limit, strategy, tuned, scan = options
    chosen, target = settings(config), target_name(target)
    require_dtype(kind)
    lengths = {name: size for name, size in sizes.items() if isinstance(size, Lengths)}
    known = {name: plain(size) for name, size in sizes.items() if name not in lengths}
    checked = load(text, known, scan, search_path(path))
    require_open(checked, lengths)
    call = Call(kind, mode, memory_limit, number)
    request = Request(target, strategy, None if chosen is None else freeze(chosen), tuned, one_batch=not mapped)
    if (mesh is not None or shard is not None) and isinstance(checked.topology, Runtime):
        along = division_of(checked, mesh, shard)
        _warn(analyse(checked))
        return ShardedGraphScan(GraphScan(checked, call, request), along)
    if mesh is not None or shard is not None:
        sharded = shard_scan(checked, call, request, mesh, shard)
        _warn(sharded.facts)
        return sharded
    if isinstance(checked.topology, Runtime):
        _warn(analyse(checked))
        return GraphScan(checked, call, request)
    if unbound(checked):
        _warn(analyse(checked))
        return OpenScan(checked, call, request, lengths)
    op = compile_scan(checked, call, request)
    _warn(op.facts)
    return op


def _warn(facts: Facts) -> None:
    """Tell the caller of `compile` that a mode was inserted unasked."""
    for change in facts.changes:
        if change.severity is Severity.WARNING:
            warnings.warn(f"\n{render(change)}", StabilityWarning, stacklevel=3)


def require_dtype(dtype: str) -> None:
    """Raises SpecError (STM5207) for float64 while JAX has it switched off."""
    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise call_error(
            "STM5207",
            "float64 was asked for, but JAX computes in 32 bits",
            help='switch it on before anything else: `jax.config.update("jax_enable_x64", True)`, or JAX_ENABLE_X64=1',
        )
