"""The pLSTM that every study on folds trains, and models by their random key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from jaxtyping import Array

import stmlang
from stmlang.models.graph.inputs import GraphModel
from stmlang.models.graph.plstm import PLSTM

P_SPEC = "std:plstm/graph_p"
D_SPEC = "std:plstm/graph_d"


class Sized(Protocol):
    """Settings that say how large a pLSTM is: `dim` features in its stream, `width` numbers for keys and values in each of
    `heads`, `pairs` of layers, perceptrons `expansion` times as wide as the stream."""

    @property
    def dim(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def pairs(self) -> int: ...
    @property
    def expansion(self) -> int: ...


def plstm(settings: Sized, **sizes: Any) -> Callable[..., GraphModel]:
    """What makes a pLSTM of its random key, `key`; `sizes` are those of the data. All that it makes share their scans."""
    heads, width = settings.heads, settings.width
    p, d = (stmlang.compile(spec, heads=heads, key=width, value=width) for spec in (P_SPEC, D_SPEC))
    return partial(PLSTM, p, d, dim=settings.dim, pairs=settings.pairs, expansion=settings.expansion, **sizes)


def keyed(make: Callable[..., GraphModel]) -> Callable[[Array], GraphModel]:
    """What takes a random key by position and makes a model of it."""

    def made(key: Array) -> GraphModel:
        return make(key=key)

    return made
