"""Where values live on a ragged topology: at which site an expression has its values, and how they come to a finer one.

A value is the same everywhere, or it is one for each node, for each edge seen from the node that it leaves (`out`) or enters
(`in`), or for each line edge. From a node the way leads to its edges, and from edges of either kind to line edges only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array

from stmlang.lower.tables import Indices
from stmlang.lower.values import Frame, Site, Value
from stmlang.scan.expression import Index
from stmlang.scan.scan import Leaf

Port = Literal["out", "in"]

# --- at which site ---------------------------------------------------------------------------------------------------


def leaf_site(leaf: Leaf) -> Site:
    """Where a leaf's array lives."""
    return "constant" if leaf.kind == "param" else port_site(leaf.indices)


def port_site(indices: Collection[Index]) -> Site:
    """Where a value lives that has one number for each choice of its port indices."""
    out, into = "out" in indices, "in" in indices
    return "line" if out and into else "out" if out else "in" if into else "node"


def finest(sites: Iterable[Site]) -> Site:
    """The coarsest site that is finer than all of these."""
    among = set(sites)
    if "line" in among or {"out", "in"} <= among:
        return "line"
    return "out" if "out" in among else "in" if "in" in among else "node" if "node" in among else "constant"


def grouped_sites(site: Site, over: Port) -> tuple[Site, Site]:
    """Where a value is expanded to that is reduced over the edges which leave or enter, and where its groups live."""
    if site in ("constant", "node", over):
        return over, "node"
    return "line", "in" if over == "out" else "out"


# --- from one site to another ----------------------------------------------------------------------------------------


def at_site(frame: Frame, value: Value, target: Site) -> Value:
    """The same value seen from finer sites: from a node to its edges, from edges to the line edges they are part of."""
    sites = frame.sites
    if sites is None or value.site in ("constant", target):
        return value
    if target == "line":
        assert sites.line is not None
        places = {"node": sites.line.node, "out": sites.line.out, "in": sites.line.into}[value.site]
        return Value(jnp.take(value.array, places, axis=0, mode="clip"), target)
    match (value.site, target):
        case ("node", "out"):
            table = sites.tail
        case ("node", "in"):
            table = sites.head
        case _:
            raise AssertionError(f"no way from {value.site} to {target}")
    return Value(jnp.take(value.array, table, axis=0, mode="clip"), target)


def common(frame: Frame, values: list[Value]) -> tuple[list[Array], Site]:
    """Arrays brought to the coarsest site that is finer than all of theirs."""
    site = finest(value.site for value in values)
    return [at_site(frame, value, site).array for value in values], site


def group_by(frame: Frame, value: Value, over: Port) -> tuple[Value, Indices, int, Site]:
    """The value expanded along a ragged port index, the group of each entry, the number of groups, the site of the groups."""
    sites = frame.sites
    assert sites is not None
    target, groups = grouped_sites(value.site, over)
    if value.site == "constant":
        value = Value(jnp.broadcast_to(value.array, (frame.nodes, *value.array.shape[1:])), "node")
    expanded = at_site(frame, value, target)
    if target != "line":
        return expanded, sites.tail if over == "out" else sites.head, frame.nodes, groups
    assert sites.line is not None
    return expanded, sites.line.into if over == "out" else sites.line.out, sites.tail.shape[0], groups
