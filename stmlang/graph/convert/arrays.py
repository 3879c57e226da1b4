"""Arrays of node numbers, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stmlang.graph.limits import LARGEST, refuse_above_largest, refuse_above_memory
from stmlang.graph.refusal import kind_of, refusal, shown
from stmlang.source.diagnostic import SpecError

if TYPE_CHECKING:
    from jaxtyping import Int64

NODE_BYTES = 48
"""Bytes held for each node while a graph is numbered and oriented."""


def array_of(source: object, what: str) -> np.ndarray[Any, Any]:
    """An array from what has one. Raises SpecError (STM3502) for what cannot be read here, for masks and for records."""
    if isinstance(source, np.ma.MaskedArray):
        raise refusal("STM3502", f"{what} are an array with a mask", "leave out what is masked: `edges.compressed()`")
    for away in ("detach", "cpu"):  # a tensor of PyTorch with a gradient, or on another device, is no array yet
        if hasattr(type(source), away):
            source = getattr(source, away)()
    try:
        array: np.ndarray[Any, Any] = np.asarray(source)
    except (TypeError, ValueError, RuntimeError):
        message = f"{what} cannot be read as an array: {kind_of(source)}"
        raise refusal("STM3502", message, "give a numpy array, rows of one length") from None
    if array.dtype.names is not None:
        raise refusal("STM3502", f"{what} are an array of records, {array.dtype}", "give an array of node numbers")
    return array


def integer_ends(array: np.ndarray[Any, Any]) -> Int64[np.ndarray, "edges 2"]:
    """Rows of two node numbers. Raises SpecError: STM3502 unless they are whole, STM3503 and STM3303 for too large or many."""
    if array.dtype.kind not in "iu" and array.size:
        message = f"the ends of edges are node numbers, and this array holds {array.dtype}"
        raise refusal("STM3502", message, "give whole numbers: `edges.astype(int)`")
    refuse_above_largest("edges", len(array))
    if array.dtype.kind == "u":
        _refuse_beyond(array, "a signed type")
    return array.astype(np.int64)


def numbered(ends: Int64[np.ndarray, "edges 2"], nodes: int | None, instead: str) -> range:
    """The nodes of edges between numbers: so many, or else up to the largest number; `instead` says how else to give them.

    Raises SpecError: STM3503 for an end that is none of them, STM3303 and STM3305 for more than can be numbered or held.
    """
    if nodes is None:
        _refuse_beyond(ends, instead)
    elif nodes < 0:
        raise refusal("STM3503", f"a graph cannot have {shown(nodes)} nodes", "give a number of at least 0")
    count = int(ends.max(initial=-1)) + 1 if nodes is None else nodes
    refuse_above_largest("nodes", count)
    refuse_above_memory(f"the tables of {count:,} nodes", NODE_BYTES * count)
    wrong = np.flatnonzero(((ends < 0) | (ends >= count)).any(axis=1))
    if wrong.size:
        edge = int(wrong[0])
        node = next(node for node in ends[edge].tolist() if not 0 <= node < count)
        there = f"nodes are 0 ... {count - 1}" if count else "there are no nodes"
        help = "number the nodes from 0" if node < 0 else f"there have to be {int(ends.max()) + 1} nodes or more"
        raise refusal("STM3503", f"edge {edge} names node {node}, and {there}", help)
    return range(count)


def _refuse_beyond(ends: np.ndarray[Any, Any], instead: str) -> None:
    if ends.size and int(ends.max()) >= LARGEST:
        edge, end = np.argwhere(ends >= LARGEST)[0].tolist()
        raise beyond(edge, int(ends[edge, end]), instead)


def beyond(edge: int, node: int, instead: str) -> SpecError:
    """For a node of a number that is too large."""
    message = f"edge {edge} names node {shown(node)}, and nodes are numbered up to {LARGEST - 1:,}"
    return refusal("STM3503", message, f"number the nodes one after the other, or list their ids, {instead}")
