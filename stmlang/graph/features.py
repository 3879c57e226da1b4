"""Features of several graphs as those of their union, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from stmlang.graph.refusal import kind_of, refusal

if TYPE_CHECKING:
    from jaxtyping import Int32, Int64, Shaped

NO_NUMBERS = "OSUMm"
"""Kinds of numpy types that hold no numbers: objects, texts, dates and times."""


def stacked(
    what: str, features: Sequence[Any], start: Int64[np.ndarray, " count_and_one"], size: int
) -> Shaped[np.ndarray, "size ..."]:
    """Arrays of `start[i + 1] - start[i]` rows, one after the other, zeros up to `size` rows. Raises SpecError (STM3509)."""
    try:
        arrays = [_array(f"the {what} features of graph {number}", array) for number, array in enumerate(features)]
    except TypeError:
        message = f"{what} features come as a list of arrays, one for each graph, not as {kind_of(features)}"
        raise refusal("STM3509", message, f"give a list: `batch.{what}s([...])`") from None
    if len(arrays) != len(start) - 1:
        message = f"the batch has {len(start) - 1:,} graphs, and there are {len(arrays):,} arrays of {what} features"
        raise refusal("STM3509", message, "give one array for each graph, in the order of the batch")
    for number, (array, rows) in enumerate(zip(arrays, np.diff(start).tolist(), strict=True)):
        if len(array) != rows:
            message = f"graph {number} has {rows:,} {what}s, and its {what} features have {len(array):,} rows"
            raise refusal("STM3509", message, f"give one row for each {what}, in the order of the DAG's {what}s")
        if array.shape[1:] != arrays[0].shape[1:]:
            message = f"a row of {what} features has the shape {arrays[0].shape[1:]} in graph 0, {array.shape[1:]} in {number}"
            raise refusal("STM3509", message, "give all graphs features of the same shape")
    if not arrays:
        return np.zeros((size, 0), np.float32)
    padded = np.zeros((size, *arrays[0].shape[1:]), np.result_type(*arrays))
    np.concatenate(arrays, out=padded[: start[-1]])
    return padded


def filled(what: str, values: Any, count: int, size: int) -> Shaped[np.ndarray, "size ..."]:
    """An array of `count` rows with zeros up to `size` rows. Raises SpecError (STM3509)."""
    array = _array(f"the values for each {what}", values)
    if len(array) != count:
        message = f"the batch has {count:,} {what}s, and there are {len(array):,} values"
        raise refusal("STM3509", message, f"give one for each {what}, in the order of the batch")
    padded = np.zeros((size, *array.shape[1:]), array.dtype)
    padded[:count] = array
    return padded


def split(what: str, array: Any, start: Int64[np.ndarray, " count_and_one"], size: int) -> list[Any]:
    """Rows `start[i] ... start[i + 1] - 1` of an array of `size` rows, for each `i`. Raises SpecError (STM3509)."""
    shape = getattr(array, "shape", None)
    if shape is None:
        message = f"only an array can be split into the {what}s of graphs, not {kind_of(array)}"
        raise refusal("STM3509", message, "give the array that a call on the batch returned")
    if len(shape) == 0 or shape[0] != size:
        message = f"the batch has {size:,} {what}s, padding included, and this array the shape {tuple(shape)}"
        raise refusal("STM3509", message, f"give an array with one row for each {what} of the bucket")
    return [array[first:end] for first, end in pairwise(start.tolist())]


def padded(values: Int64[np.ndarray, " real"], size: int, pad: int | np.int32) -> Int32[np.ndarray, " size"]:
    """The values, then `pad` up to a size."""
    table = np.full(size, pad, np.int32)
    table[: len(values)] = values
    return table


def _array(what: str, given: Any) -> Shaped[np.ndarray, "rows ..."]:
    """An array of numbers with at least one axis."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError):
        raise refusal("STM3509", f"{what} are no array: {kind_of(given)}", "give an array, rows of one length") from None
    if isinstance(given, np.ma.MaskedArray):
        raise refusal("STM3509", f"{what} are an array with a mask", "fill what is masked: `x.filled(0)`")
    if array.ndim == 0 or array.dtype.kind in NO_NUMBERS or array.dtype.names is not None:
        message = f"{what} must be an array of numbers with at least one axis, not of {array.dtype} and shape {array.shape}"
        raise refusal("STM3509", message, "give numbers, `(rows, width)`")
    return array
