"""Every strategy there is: a new one is a folder beside this file and a line in this list. Earlier ones win ties, and the first
is the reference, which the others are compared with: the recurrence as it is written."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from stmlang.cost.errors import plan_error
from stmlang.cost.settings import NoSettings, Settings, parse_settings
from stmlang.source.suggest import did_you_mean
from stmlang.strategies.base import AnyStrategy
from stmlang.strategies.chunkwise import cost as chunkwise
from stmlang.strategies.corners import cost as corners
from stmlang.strategies.delta import cost as delta
from stmlang.strategies.delta_dense import cost as delta_dense
from stmlang.strategies.delta_separable import cost as delta_separable
from stmlang.strategies.dense import cost as dense
from stmlang.strategies.dense_nodes import cost as dense_nodes
from stmlang.strategies.impulse import cost as impulse
from stmlang.strategies.kernel_chain import cost as kernel_chain
from stmlang.strategies.kernel_rows import cost as kernel_rows
from stmlang.strategies.kernel_separable import cost as kernel_separable
from stmlang.strategies.linear import cost as linear
from stmlang.strategies.nodes import cost as nodes
from stmlang.strategies.packed import cost as packed
from stmlang.strategies.packed_nodes import cost as packed_nodes
from stmlang.strategies.parallel import cost as parallel
from stmlang.strategies.raster import cost as raster
from stmlang.strategies.recurrent import cost as recurrent
from stmlang.strategies.rows import cost as rows
from stmlang.strategies.separable import cost as separable
from stmlang.strategies.tracks import cost as tracks
from stmlang.strategies.walk import cost as walk

STRATEGIES: tuple[AnyStrategy, ...] = (
    recurrent.STRATEGY,
    parallel.STRATEGY,
    chunkwise.STRATEGY,
    dense.STRATEGY,
    nodes.STRATEGY,
    dense_nodes.STRATEGY,
    linear.STRATEGY,
    impulse.STRATEGY,
    raster.STRATEGY,
    rows.STRATEGY,
    separable.STRATEGY,
    delta.STRATEGY,
    delta_dense.STRATEGY,
    delta_separable.STRATEGY,
    tracks.STRATEGY,
    packed.STRATEGY,
    packed_nodes.STRATEGY,
    walk.STRATEGY,
    corners.STRATEGY,
    kernel_separable.STRATEGY,
    kernel_rows.STRATEGY,
    kernel_chain.STRATEGY,
)

_known = {strategy.name: strategy for strategy in STRATEGIES}


def strategies() -> tuple[AnyStrategy, ...]:
    """Those of the list, and those that are registered besides."""
    return tuple(_known.values())


def without_kernels() -> tuple[AnyStrategy, ...]:
    """Those that any machine runs."""
    return tuple(strategy for strategy in strategies() if not strategy.kernel)


@contextmanager
def registered(strategy: AnyStrategy) -> Generator[None]:
    """One strategy more, or another in the place of one of its name, as long as the context lasts."""
    before = dict(_known)
    _known[strategy.name] = strategy
    try:
        yield
    finally:
        _known.clear()
        _known.update(before)


def strategy_named(name: str) -> AnyStrategy:
    """The strategy of a name. Raises SpecError (STM5006) for an unknown one."""
    if name in _known:
        return _known[name]
    known = list(_known)
    raise plan_error(
        "STM5006", f"unknown strategy `{name}`", help=did_you_mean(name, known) or f"choose one of {', '.join(known)}"
    )


def reference_strategy() -> AnyStrategy:
    """The one that others are compared with: the recurrence as it is written."""
    return next(iter(_known.values()))


def gating_strategy() -> AnyStrategy:
    """One that forms the gating matrix of any scan that has one."""
    return next(entry for entry in _known.values() if entry.offers.gating and entry.settings is NoSettings)


def stored_settings(strategy: str, values: Mapping[str, object]) -> Settings:
    """Settings as they were stored, of a strategy by name. Raises ValueError for anything else."""
    entry = _known.get(strategy)
    settings = None if entry is None else parse_settings(entry.settings, values)
    if settings is None:
        raise ValueError(f"`{strategy}` has no settings such as {dict(values)!r}")
    return settings
