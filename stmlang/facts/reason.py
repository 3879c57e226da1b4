"""Proofs and failed proofs in words."""

from __future__ import annotations

from math import lgamma, log, prod

from stmlang.facts.bounds import ROUNDING, Bounds
from stmlang.facts.factored import Factored, factored_value
from stmlang.facts.interval import HUGE
from stmlang.facts.rewrite import factors
from stmlang.facts.turns import MOST_SHOWN
from stmlang.scan.expression import Apply, Expr, Function, GateRef, LeafRef, Normalize, Number, Power, Split, Sum
from stmlang.scan.scan import Scan
from stmlang.scan.show import show_expr
from stmlang.scan.sizes import regular_part
from stmlang.scan.topology import Regular, Topology, kind_of

LONGEST = 60
"""Characters of an expression that are shown."""


def show_bound(value: float) -> str:
    """A bound to six digits; what rounding left beside a whole number goes."""
    return f"{round(value, 12):.6g}" if bounded(value) else "any number"


def bounded(value: float) -> bool:
    """Whether a bound says more than that a leaf is finite."""
    return abs(value) <= HUGE


def listed(names: list[str]) -> str:
    """Some names, the first few of them if they are many."""
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + more


def named(expr: Expr) -> str:
    """An expression as it is called in a sentence."""
    text = expr.gate if isinstance(expr, GateRef) else show_expr(expr)
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def column_steps(bounds: Bounds) -> list[str]:
    """Why every column of the transition sums to at most what it does."""
    worst = float(bounds.columns.max())
    end = f"every column of transition sums to at most {show_bound(worst)}"
    gate = bounds.scan.gate("transition")
    if bounds.classes.single:
        return [*entry_steps(bounds), f"with one port a column is one entry: {end}"]
    if len(gate.clauses) == 1:
        steps = _product_steps(bounds, gate.clauses[0].value)
        if steps:
            return [*steps, f"so {end}"]
    return [*entry_steps(bounds), f"so {end}"]


def _product_steps(bounds: Bounds, value: Expr) -> list[str]:
    """A factor that sums to at most one over `out`, and the others in magnitude."""
    multiplied = [factor for _, factor in factors(value)[1]]
    sums = [float(bounds.simplex.of(factor).total.max()) for factor in multiplied]
    spread = [k for k, factor in enumerate(multiplied) if sums[k] <= 1 + ROUNDING and _shares(bounds, factor)]
    if not spread:
        return []
    chosen = spread[0]
    others = [
        magnitude_step(bounds, factor) for k, factor in enumerate(multiplied) if k != chosen and not isinstance(factor, Number)
    ]
    return [*others, _sum_step(bounds, multiplied[chosen], sums[chosen])]


def _shares(bounds: Bounds, factor: Expr) -> bool:
    """Whether a factor differs between the outgoing edges, or is known to be small for their number."""
    operator = bounds.operators.of(factor)
    return "out" in operator.free or bool((bounds.simplex.of(factor).total < bounds.simplex.summed(operator.norm)).any())


def _sum_step(bounds: Bounds, expr: Expr, total: float) -> str:
    exact = bool(bounds.simplex.of(expr).simplex.all())
    claim = f"sums to {'1' if exact else f'at most {show_bound(total)} in magnitude'} over out"
    definition = _definition(bounds, expr)
    why = f" because {_form(definition)}" if definition is not expr or isinstance(definition, Split | Normalize) else ""
    return f"{named(expr)} {claim}{why}"


def _definition(bounds: Bounds, expr: Expr) -> Expr:
    """What a reference stands for, if its gate has a single equation."""
    if isinstance(expr, GateRef):
        gate = bounds.scan.gate(expr.gate)
        if len(gate.clauses) == 1:
            return gate.clauses[0].value
    return expr


def _form(expr: Expr) -> str:
    match expr:
        case Split():
            return "a split divides one between the ports"
        case Normalize(kind="softmax"):
            return "a softmax sums to 1"
        case Normalize(kind="l1"):
            return "l1norm divides by the sum of magnitudes"
        case _:
            return f"it is {named(expr)}"


def entry_steps(bounds: Bounds) -> list[str]:
    """Why the entries of the transition are at most what they are: once for all equations, or each equation for itself."""
    gate = bounds.scan.gate("transition")
    norm = "|transition|" if not bounds.pairs else "the spectral norm of transition"
    worst = float(bounds.entries.max(initial=0.0))
    if len(gate.clauses) == 1:
        return [_because(bounds, norm, gate.clauses[0].value, worst)]
    steps: list[str] = []
    for clause in gate.clauses:
        place = ", ".join(f"{index} = {port}" for index, port in clause.ports) or ""
        where = f" at [{place}]" if place else " elsewhere"
        if bounds.zeros.everywhere(clause.value):
            steps.append(f"transition is zero{where}")
        else:
            own = float(bounds.operators.of(clause.value).norm.max())
            steps.append(_because(bounds, f"{norm}{where}", clause.value, own))
    return steps


def magnitude_step(bounds: Bounds, expr: Expr) -> str:
    """`|decay| <= 1 because tanh lies in [-1, 1]`."""
    return _because(bounds, f"|{named(expr)}|", expr, float(bounds.operators.of(expr).norm.max()))


def _because(bounds: Bounds, subject: str, expr: Expr, bound: float) -> str:
    claim = f"{subject} <= {show_bound(bound)}" if bounded(bound) else f"{subject} has no bound"
    reasons = [text for factor in _named_factors(bounds, expr) if (text := _range(bounds, factor)) is not None]
    if not bounded(bound) or not reasons:
        return claim
    return f"{claim} because {' and '.join(dict.fromkeys(reasons))}"


def _named_factors(bounds: Bounds, expr: Expr) -> list[Expr]:
    """The factors of an expression, each reference to a gate followed once or twice."""
    definitions = [_definition(bounds, factor) for _, factor in factors(expr)[1]]
    return [_definition(bounds, factor) for whole in definitions for _, factor in factors(whole)[1]]


def _range(bounds: Bounds, expr: Expr) -> str | None:
    """What bounds the values of a form by itself."""
    match expr:
        case Number():
            return None
        case Apply(function=Function.CLIP | Function.MINIMUM | Function.MAXIMUM):
            return f"{named(expr)} is bounded by its limits"
        case Apply(function=function):
            return f"{function.value} lies in {_interval(bounds, expr)}"
        case Normalize(kind=kind):
            return f"{'softmax' if kind == 'softmax' else kind + 'norm'} lies in {_interval(bounds, expr)}"
        case Split():
            return "the parts of a split lie in [0, 1]"
        case LeafRef(leaf=leaf):
            return f"{leaf} is given in {_interval(bounds, expr)}"
        case Power(base=base):
            return _range(bounds, base)
        case Sum() if (form := factored_value(expr, bounds.operators.equations)) is not None:
            return _turn(bounds, form, float(bounds.operators.of(expr).norm.max()))
        case _:
            if bounds.operators.of(expr).pairs:
                return f"{named(expr)} has norm at most {show_bound(float(bounds.operators.of(expr).norm.max()))}"
            return f"{named(expr)} lies in {_interval(bounds, expr)}"


def _turn(bounds: Bounds, form: Factored, norm: float) -> str:
    """What bounds a matrix of the delta rule's form."""
    length = show_bound(float(bounds.lengths.length(form.u, form.pair[0]).max()))
    strength = f"{named(form.strength)} in {_interval(bounds, form.strength)}"
    scale = [] if form.scale == Number(1.0, form.scale.span) else [f"{named(form.scale)} in {_interval(bounds, form.scale)}"]
    times = f"{named(form.scale)} times (" if scale else ""
    return (
        f"{times}identity minus {named(form.strength)} times {named(form.u)} {named(form.u)}^T{')' if scale else ''}, with "
        f"{' and '.join([*scale, strength])} and |{named(form.u)}| <= {length}, has norm at most {show_bound(norm)}"
    )


def _interval(bounds: Bounds, expr: Expr) -> str:
    interval = bounds.intervals.of(expr)
    low, high = float(interval.low.min()), float(interval.high.max())
    left = f"[{show_bound(low)}" if bounded(low) else "(-inf"
    return f"{left}, {show_bound(high)}]" if bounded(high) else f"{left}, inf)"


def path_growth(scan: Scan, bounds: Bounds) -> str:
    """How much an unbounded scan may grow, in words: by the size of its entries along a path, and by the number of paths."""
    regular = regular_part(scan)
    if bounds.classes.single:
        return "states may grow as the product of the transitions along the chain"
    if regular is None or len(regular.axes) == 1 or not isinstance(scan.topology, type(regular)):
        return f"on this {kind_of(scan.topology)} the number of paths may grow exponentially with their length"
    return f"the number of paths between opposite corners grows as {_path_count(scan.topology)}"


def _path_count(topology: Topology) -> str:
    """The multinomial coefficient of the displacement, worked out where all sizes are known."""
    assert isinstance(topology, Regular)
    names = [axis.name for axis in topology.axes]
    steps = [axis.size - 1 for axis in topology.axes if axis.size]
    if len(names) == 2:
        formula = f"binomial({names[0]} + {names[1]} - 2, {names[0]} - 1)"
    else:
        formula = f"multinomial({', '.join(f'{name} - 1' for name in names)})"
    if len(steps) < len(names) or prod(steps) == 0:
        return formula
    digits = (lgamma(sum(steps) + 1) - sum(lgamma(step + 1) for step in steps)) / log(10)
    return f"{formula} = {10**digits:.3g}" if digits < 15 else f"{formula}, about 10^{digits:.0f}"
