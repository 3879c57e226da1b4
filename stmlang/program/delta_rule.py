"""Gates of the delta rule's form, evaluated by their parts: the matrix itself is never made."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Array

from stmlang.facts.overwriting import DeltaRule, Overwriting, Sharing, is_key
from stmlang.lower.operands import STATE_AXES, Delta, Deltas, Shares, laid_out, oriented_gate
from stmlang.lower.sites import at_site
from stmlang.lower.tables import Indices
from stmlang.lower.values import Environment, Frame, Site, Value
from stmlang.program.evaluate import gate_value
from stmlang.program.expressions import Context, expression
from stmlang.scan.expression import Expr, Index

SITES: dict[tuple[Index, ...], Site] = {(): "node", ("out",): "out", ("in",): "in", ("out", "in"): "line"}
"""Where a gate with these port indices lives on a ragged topology."""


class _Layout:
    """How many nodes, edges and line edges a topology has, and in which order the last ones come."""

    def __init__(self, frame: Frame, nodes: Sequence[int], edges: int, lines: int, order: Indices | None) -> None:
        self.frame = frame
        self.sizes = {"node": nodes, "out": (edges,), "in": (edges,), "line": (lines,)}
        self.order = order

    def numbers(self, value: Value, ports: tuple[Index, ...]) -> Array:
        """One for each choice of ports at every site, `(direction, head, *sites, *ports)`."""
        array = self.states(value, ports)
        return array.reshape(array.shape[:-STATE_AXES])

    def states(self, value: Value, ports: tuple[Index, ...]) -> Array:
        frame, site = self.frame, SITES[ports]
        if frame.sites is None:
            return oriented_gate(frame, (), value, self.sizes["node"], ports)
        array = laid_out(frame, (), value if site == "node" else at_site(frame, value, site), self.sizes[site], ())
        return array if site != "line" or self.order is None else array.take(self.order, axis=2)


def deltas(
    context: Context,
    environment: Environment,
    rule: DeltaRule,
    nodes: Sequence[int],
    edges: int,
    lines: int,
    order: Indices | None,
) -> Deltas:
    """A scan's gates in the form, on a topology of so many `edges` and `lines` edges, the latter in an `order`."""
    layout = _Layout(context.frame, nodes, edges, lines, order)
    transition = _delta(context, environment, layout, rule.transition, ("out", "in"))
    mark = None if rule.mark is None else _delta(context, environment, layout, rule.mark, ("in",))
    shares = None if rule.sharing is None else _shares(context, environment, layout, rule.sharing)
    return Deltas(transition, mark, shares)


def _delta(context: Context, environment: Environment, layout: _Layout, form: Overwriting, ports: tuple[Index, ...]) -> Delta:
    def at_nodes(expr: Expr) -> Value:
        return expression(context, environment, expr)

    scale = None if form.plain else layout.numbers(gate_value(context, environment, form.scale), ports)
    u = None
    if not is_key(context.frame.scan, form.u):
        u = layout.states(at_nodes(form.u), ())
        u = u.reshape(*u.shape[:-STATE_AXES], context.frame.scan.key)
    return Delta(scale, layout.numbers(at_nodes(form.strength), ()), u)


def _shares(context: Context, environment: Environment, layout: _Layout, sharing: Sharing) -> Shares:
    factors: tuple[tuple[Expr, tuple[Index, ...]], ...]
    factors = ((sharing.share, ("out",)), (sharing.into, ("in",)), (sharing.written, ()))
    return Shares(*(layout.numbers(expression(context, environment, expr), ports) for expr, ports in factors))
