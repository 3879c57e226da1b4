"""Binding open axes of a checked scan."""

from __future__ import annotations

import pytest

from stmlang.check import load
from stmlang.scan.sizes import bind, unbound
from stmlang.scan.topology import Axis, Product, Regular
from stmlang.source.diagnostic import SpecError


def scan(on: str):
    return load(f"scan s on {on} {{\nsource = 1\ntransition = 1\n}}")


def refused(on: str, **sizes: object) -> list[str]:
    with pytest.raises(SpecError) as caught:
        bind(scan(on), sizes)
    return [one.code for one in caught.value.diagnostics]


def test_open_axes_are_bound() -> None:
    open_scan = scan("grid(rows, cols = 3)")
    assert unbound(open_scan) == ("rows",)
    bound = bind(open_scan, {"rows": 5})
    assert unbound(bound) == ()
    assert bound.topology == Regular((Axis("rows", 5), Axis("cols", 3)), open_scan.span)
    assert bind(bound, {"rows": 5}) == bound
    assert bind(open_scan, {}) is open_scan


def test_in_a_product() -> None:
    bound = bind(scan("dag { a -> b } * chain(time)"), {"time": 0})
    assert isinstance(bound.topology, Product)
    assert unbound(bound) == ()


def test_a_topology_without_axes_has_nothing_to_bind() -> None:
    assert unbound(scan("tree(arity = 2, depth = 3)")) == ()
    assert refused("tree(arity = 2, depth = 3)", depth=4) == ["STM2041"]


def test_refusals() -> None:
    assert refused("grid(rows, cols = 3)", row=3) == ["STM2041"]
    assert refused("grid(rows, cols = 3)", cols=4) == ["STM2041"]
    assert refused("grid(rows, cols = 3)", rows=-1, cols=2.5) == ["STM2029", "STM2029"]
    assert refused("grid(rows, cols = 3)", rows=True) == ["STM2029"]
    assert refused("grid(rows, cols)", rows=2**16, cols=2**16) == ["STM3303"]
