"""Edge lists: sequences of pairs and arrays of shape (edges, 2), with nodes that are numbers or have ids of any kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stmlang.graph.convert.arrays import array_of, beyond, integer_ends, numbered
from stmlang.graph.convert.given import GivenGraph, Listing, numbers_or
from stmlang.graph.limits import LARGEST, refuse_above_largest
from stmlang.graph.refusal import kind_of, named, refusal, shown, whole
from stmlang.source.diagnostic import SpecError
from stmlang.source.wording import quoted

if TYPE_CHECKING:
    from jaxtyping import Int64

IDS = "an id is a whole number, a text, or anything else that can be a key of a dictionary and is no float"
PAIRS = "give pairs, `[(tail, head), ...]`"
UNORDERED: tuple[type, ...] = (set, frozenset)


def of_pairs(edges: object, nodes: object, listing: Listing) -> GivenGraph:
    """Edges from pairs of ids. `nodes` is the number of nodes, or their ids in the order of their numbers, or None.

    Where all ids are whole numbers and `nodes` is no list, they are the numbers of the nodes, which without `nodes` go up to
    the largest one. Other ids are numbered as `nodes` lists them, or in the order in which the edges first name them. Arrays
    have the shape (edges, 2), also where they are (2, 2): a row is an edge.

    Raises SpecError: STM3501 for what is no list, STM3502 for what is no pair or no id, STM3503 for ids that are not there.
    """
    if hasattr(type(edges), "__array__"):
        return _of_array(edges, nodes, listing)
    flat = _flat(edges)
    kinds = set(map(type, flat))
    if _is_count(nodes) and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return _of_numbers(_integers(flat), nodes, listing)
    return _of_ids(flat, kinds, nodes, listing)


def _of_array(edges: object, nodes: object, listing: Listing) -> GivenGraph:
    array = array_of(edges, "the edges")
    if array.ndim == 1 and not array.size:
        array = array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        turned = array.ndim == 2 and array.shape[0] == 2
        help = "turn it, `edges.T`, or call `from_edge_index`" if turned else "give one row of two nodes for each edge"
        raise refusal("STM3502", f"an array of edges has the shape (edges, 2), not {array.shape}", help)
    if array.dtype.kind in "OUS":
        rows: list[Any] = array.tolist()
        return of_pairs(rows, nodes, listing)
    ends = integer_ends(array)
    if _is_count(nodes):
        return _of_numbers(ends, nodes, listing)
    return _of_ids(ends.reshape(-1).tolist(), {int}, nodes, listing)


def _is_count(nodes: object) -> bool:
    return nodes is None or whole(nodes) is not None


def _of_numbers(ends: Int64[np.ndarray, "edges 2"], nodes: object, listing: Listing) -> GivenGraph:
    """Edges between numbers, with the number of nodes or None."""
    return GivenGraph(ends, numbered(ends, whole(nodes), "`nodes=[...]`"), listing)


def _of_ids(flat: list[Any], kinds: set[type[Any]], nodes: object, listing: Listing) -> GivenGraph:
    """Edges between ids of any kind, end after end, numbered as `nodes` lists them or by first appearance."""
    _refuse_kinds(flat, kinds, _edge)
    number = _numbers(flat, _edge) if nodes is None else _listed(nodes)
    try:
        ends = np.fromiter(map(number.__getitem__, flat), np.int64, len(flat)).reshape(-1, 2)
    except TypeError:
        place = next(place for place, name in enumerate(flat) if not _hashable(name))
        raise _no_id(_edge(place), flat[place]) from None
    except KeyError:
        place = next(place for place, name in enumerate(flat) if name not in number)
        message = f"{_edge(place)} names node {quoted(named(flat[place]))}, which `nodes` does not list"
        raise refusal("STM3503", message, "list it, or leave the edge out") from None
    return GivenGraph(ends, numbers_or(tuple(number)), listing)


def _listed(nodes: object) -> dict[Hashable, int]:
    """Ids and their numbers from a list of all nodes. Raises SpecError (STM3502, STM3503)."""
    flat = _list(nodes)
    if flat is None:
        message = f"`nodes` is of type {kind_of(nodes)} and does not list the ids that the edges name"
        help = "give a list of all ids in the order of their numbers; a number of nodes goes with ids that are whole numbers"
        raise refusal("STM3503", message, help)
    _refuse_kinds(flat, set(map(type, flat)), _entry)
    number = _numbers(flat, _entry)
    if len(number) < len(flat):
        place = next(place for place, name in enumerate(flat) if number[name] != place)
        raise refusal("STM3503", f"`nodes` lists {quoted(named(flat[place]))} twice, again at {place}", "list every node once")
    return number


def _numbers(names: list[Any], where: Callable[[int], str]) -> dict[Hashable, int]:
    """Different ids and their numbers, in order of first appearance. Raises SpecError (STM3502) for what is no key."""
    try:
        return {name: number for number, name in enumerate(dict.fromkeys(names))}
    except TypeError:
        place = next(place for place, name in enumerate(names) if not _hashable(name))
        raise _no_id(where(place), names[place]) from None


def _flat(edges: object) -> list[Any]:
    """The ends of all edges, one after the other."""
    pairs = _list(edges)
    if pairs is None:
        help = "sort it: `sorted(edges)`" if type(edges) in UNORDERED else PAIRS
        raise refusal("STM3501", f"no graph can be made of {kind_of(edges)}", help)
    kinds: list[type[Any]] = list(map(type, pairs))
    others = {kind for kind in set(kinds) if not _is_row(kind)}
    if others:
        place = next(place for place, kind in enumerate(kinds) if kind in others)
        raise refusal("STM3502", f"edge {place} is no pair: {shown(pairs[place])}", PAIRS)
    try:
        lengths = list(map(len, pairs))
    except TypeError:  # a numpy array without an axis
        raise refusal("STM3502", "an edge without an end is no pair", PAIRS) from None
    if not set(lengths) <= {2}:
        place = next(place for place, length in enumerate(lengths) if length != 2)
        message = f"edge {place} is no pair, it has {lengths[place]} entries: {shown(pairs[place])}"
        raise refusal("STM3502", message, f"{PAIRS}; features of edges are arrays of their own")
    refuse_above_largest("edges", len(pairs))
    return list(chain.from_iterable(pairs))


def _list(argument: object) -> list[Any] | None:
    """What somebody gave as a list, None where it is none, or has no order."""
    if isinstance(argument, (str, bytes, Mapping, *UNORDERED)):
        return None
    try:
        return list(cast("Iterable[Any]", argument.tolist() if isinstance(argument, np.ndarray) else argument))
    except TypeError:
        return None


def _integers(flat: list[int]) -> Int64[np.ndarray, "edges 2"]:
    try:
        return np.fromiter(flat, np.int64, len(flat)).reshape(-1, 2)
    except OverflowError:
        place = next(place for place, node in enumerate(flat) if abs(node) > LARGEST)
        raise beyond(place // 2, flat[place], "`nodes=[...]`") from None


def _refuse_kinds(flat: list[Any], kinds: set[type[Any]], where: Callable[[int], str]) -> None:
    """Refuses ids by which nobody means a node: floats, truth values, None, arrays."""
    if not any(_is_no_id(kind) for kind in kinds):
        return
    kind_at: list[type[Any]] = list(map(type, flat))
    place = next(place for place, kind in enumerate(kind_at) if _is_no_id(kind))
    raise _no_id(where(place), flat[place])


def _is_row(kind: type[Any]) -> bool:
    return issubclass(kind, Sequence | np.ndarray) and not issubclass(kind, str | bytes)


def _is_no_id(kind: type[Any]) -> bool:
    array = hasattr(kind, "__array__") and not issubclass(kind, np.integer | np.str_ | np.bytes_)
    return array or issubclass(kind, bool | float | complex | type(None))


def _no_id(where: str, name: object) -> SpecError:
    return refusal("STM3502", f"{where} names a node by {shown(name)}, of type {kind_of(name)}", "give it another id", IDS)


def _hashable(name: object) -> bool:
    try:
        hash(name)
    except TypeError:
        return False
    return True


def _edge(place: int) -> str:
    """Where an end stands, in words."""
    return f"edge {place // 2}"


def _entry(place: int) -> str:
    return f"entry {place} of `nodes`"
