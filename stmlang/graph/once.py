"""Analyses that are done once for each graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from stmlang.graph.dag import DAG

Analysis = TypeVar("Analysis", bound=Callable[[DAG], Any])


def once(analysis: Analysis) -> Analysis:
    """The function, which computes what it says of a graph when it is first asked, and forgets it with the graph.

    Graphs are told apart by identity, as `DAG` compares them. What is kept must not refer to its graph, or neither would go.
    """
    known: WeakKeyDictionary[DAG, Any] = WeakKeyDictionary()

    @wraps(analysis)
    def remembered(dag: DAG) -> Any:
        if dag not in known:
            known[dag] = analysis(dag)
        return known[dag]

    return remembered  # pyright: ignore[reportReturnType]
