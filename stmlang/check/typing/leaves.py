"""Leaves: `linear`, `param` and `given`, what the caller of a scan supplies."""

from __future__ import annotations

import math
from dataclasses import replace

from stmlang.check.clauses import with_index
from stmlang.check.problems import listed
from stmlang.check.typing.arguments import arguments, resolved
from stmlang.check.typing.context import Context
from stmlang.check.typing.degrees import written_in
from stmlang.check.typing.indices import index_word
from stmlang.check.typing.scope import Scope, Site
from stmlang.check.typing.values import Value, combined
from stmlang.check.vocabulary import ALLOWED, FEATURES, INPUTS
from stmlang.scan.expression import PORT_INDICES, WRITTEN_INDICES, Index, LeafRef, Product, Sum
from stmlang.scan.scan import Feature, Initial, Leaf
from stmlang.source.advice import Advice, Edit, Rewrite, replaced, written
from stmlang.source.span import Span
from stmlang.syntax import tree

WEIGHT = math.sqrt(0.4)
"""The default of `weight`: a weight's initial standard deviation times the square root of the number of features it reads."""


def leaf(context: Context, call: tree.Call, scope: Scope, depth: int) -> Value | None:
    """A call of `linear`, `param` or `given` becomes a leaf of the scan with the indices of its equation."""
    site = context.site
    if site is None:
        what = context.world.constant or "a constant"
        context.error("STM1011", f"`{call.function.text}` is not known before the scan runs", call.span, f"{what} is a number")
        return None
    depth += 1  # a leaf in a leaf is refused, but typed first, and takes as much of Python's stack as two operations
    match call.function.text:
        case "linear":
            return _linear(context, call, scope, site, depth)
        case "param":
            made = _param(context, call, scope, site, depth)
        case _:
            made = _given(context, call, scope, site, depth)
    return None if made is None else _placed(site, made, call.span)


def _placed(site: Site, made: Leaf, span: Span) -> Value:
    """The value of a new leaf."""
    site.leaves.append(made)
    return Value(LeafRef(made.name, made.indices, span), frozenset(made.indices))


def _name(site: Site) -> str:
    count = len(site.leaves) + 1
    return site.label if count == 1 else f"{site.label}.{count}"


def _linear(context: Context, call: tree.Call, scope: Scope, site: Site, depth: int) -> Value | None:
    """A leaf for the features of nodes and edges, and the bias; one more for the weight of each number made of degrees."""
    written = [argument.value for argument in call.arguments if argument.name is None]
    named = tree.Call(call.function, tuple(argument for argument in call.arguments if argument.name is not None), call.span)
    features = _features(context, written, scope, site, call.span, depth)
    options = arguments(context, named, ("bias", "weight"), required=0)
    if options is None:
        return None
    bias = _initial(context, options["bias"], scope, depth) if "bias" in options else Initial(0.0, 0.0)
    weight = context.constant(options["weight"], scope, depth, "a weight") if "weight" in options else WEIGHT
    if weight is not None and weight < 0:
        note = "`weight` is the initial standard deviation of the weights times the square root of how many there are to a sum"
        context.error("STM2025", f"`weight` is {weight:g}, below zero", options["weight"].span, note)
        return None
    if features is None or bias is None or weight is None:
        return None
    read = tuple(feature for feature in features if isinstance(feature, Feature))
    made = Leaf(_name(site), "linear", site.indices, False, read, bias, weight, span=call.span)
    terms = [_placed(site, made if read else replace(made, kind="param", weight=0.0), call.span)]
    counted = [feature for feature in features if isinstance(feature, Value)]
    for number in counted:
        gain = weight / math.sqrt(len(counted))
        slope = _placed(site, Leaf(_name(site), "param", site.indices, False, weight=gain, span=call.span), call.span)
        terms.append(combined(Product(((False, slope.expr), (False, number.expr)), call.span), [slope, number]))
    if not counted:
        return terms[0]
    return context.made(combined(Sum(tuple((False, term.expr) for term in terms), call.span), terms))


def _features(
    context: Context, written: list[tree.Expression], scope: Scope, site: Site, span: Span, depth: int
) -> tuple[Feature | Value, ...] | None:
    """The features of a map: those of nodes and edges, and numbers made of degrees."""
    if not written:
        note = "`linear` maps features to the indices of its equation"
        context.error("STM2021", "`linear` is given no features", span, note, help="write `linear(x)`")
        return None
    features: list[Feature | Value] = []
    sound = True
    for expression in written:
        feature = _feature(context, *resolved(expression, scope), site, depth)
        if feature in features:
            context.error(
                "STM2021", f"`{expression.span.text}` is read twice", expression.span, "one weight for it says as much"
            )
        sound = sound and feature is not None and feature not in features
        features += [] if feature is None else [feature]
    return tuple(features) if sound else None


def _feature(context: Context, expression: tree.Expression, scope: Scope, site: Site, depth: int) -> Feature | Value | None:
    match expression:
        case tree.Reference(name=tree.Name(text="x")):
            return Feature("x")
        case tree.Reference(name=tree.Name(text="e")):
            note = "an edge's features are read by one of its two nodes: `e[out]` where it leaves, `e[in]` where it enters"
            context.error("STM2021", "`e` needs an index", expression.span, note, help=_either_edge(site, expression.span))
        case tree.Indexed(base=tree.Reference(name=tree.Name(text="e"))):
            return _edge_feature(context, expression, site)
        case _ if written_in(expression, scope):
            value = context.type(expression, scope, depth + 1)
            if value is None or value.degrees:
                return value
            note = "a feature made of degrees is made of nothing else but numbers: `linear(x, log(1 + degree(in)))`"
            context.error("STM2021", "this is not a feature", expression.span, note)
        case _:
            note = "`linear` reads the node features `x`, the edge features `e[out]` and `e[in]`, and numbers made of degrees"
            help: str | Advice | None = None
            if isinstance(expression, tree.Call) and expression.function.text == "linear":
                help = "one map is enough, a map of a map being one: `linear(x)`"
            elif isinstance(expression, tree.Reference) and expression.name.text in INPUTS:
                help = f"`{expression.name.text}` is a map of `x` already: read `x`, or compute with it directly"
            elif isinstance(expression, tree.Reference):
                help = context.problems.near(expression.name.text, FEATURES, at=expression.span)
                if (name := expression.name.text) in context.world.gates:
                    help = f"a gate is not mapped again: write `... + param(0) * {name}`, or what it is in its place"
            context.error("STM2021", "this is not a feature", expression.span, note, help=help)
    return None


def _edge_feature(context: Context, expression: tree.Indexed, site: Site) -> Feature | None:
    entries = [(entry, index_word(context, entry.index)) for entry in expression.indices]
    if any(word is None for _, word in entries):
        return None
    if len(entries) != 1 or entries[0][0].port is not None or entries[0][1] not in ("in", "out"):
        context.error("STM2021", "`e` has one index", expression.span, help=_either_edge(site, expression.span))
        return None
    index = entries[0][1]
    if context.world.regular and context.world.topology is not None:
        note = "the edges of chains and grids have no features; a gate's `out` tells ports apart already"
        help = _without_edges(expression.span)
        context.error("STM2022", "there are no edge features on this topology", expression.span, note, help=help)
        return None
    if index not in site.indices:
        has = f"`{site.gate}` has {listed(site.indices)} here" if site.indices else f"`{site.gate}` has no index here"
        note = f"which edge `e[{index}]` means is said by the index `{index}` of the equation; {has}"
        help = _with_index(site, index)
        context.error(
            "STM2023", f"`{site.gate}` does not range over the edges of `e[{index}]`", expression.span, note, help=help
        )
        return None
    return Feature("e", index)


def _without_edges(place: Span) -> Advice:
    """`linear(x)` for a map that also reads edges: without them and the comma before, or with `x` in their place."""
    before = place.file.text[max(0, place.start - 100) : place.start]
    text_before = before.rstrip()
    comma = text_before.endswith(",")
    start = place.start - (len(before) - len(text_before) + 1) if comma else place.start
    return replaced("write `linear(x)`", Span(place.file, start, place.end), "" if comma else "x")


def _either_edge(site: Site, span: Span) -> Advice:
    """An edge's features with either index, first the one that the equation has or can have."""
    order = sorted(
        PORT_INDICES, key=lambda index: (index not in site.indices, index not in ALLOWED.get(site.gate, WRITTEN_INDICES))
    )
    return Advice("write `e[out]` or `e[in]`", tuple(Rewrite((Edit(span, f"e[{index}]"),)) for index in order))


def _with_index(site: Site, index: Index) -> str | Advice:
    """How a gate that reads the features of edges comes to range over these edges."""
    if index not in ALLOWED.get(site.gate, WRITTEN_INDICES):
        others: list[str] = [f"e[{other}]" for other in PORT_INDICES if other in ALLOWED[site.gate]]
        own = f"`{site.gate}` can read `{others[0]}`; " if others else ""
        return (
            f"{own}a gate of the edges is `g[{index}] = linear(e[{index}])`, and `mean(g, over = {index})` what it says of all"
        )
    head = with_index(site.span, index)
    return written(head.span, head.text)


def _param(context: Context, call: tree.Call, scope: Scope, site: Site, depth: int) -> Leaf | None:
    bound = arguments(context, call, ("start",), required=1)
    start = None if bound is None else _initial(context, bound["start"], scope, depth)
    return None if start is None else Leaf(_name(site), "param", site.indices, False, bias=start, span=call.span)


def _given(context: Context, call: tree.Call, scope: Scope, site: Site, depth: int) -> Leaf | None:
    bound = arguments(context, call, ("low", "high"), required=0)
    if bound is None:
        return None
    low = context.constant(bound["low"], scope, depth, "a bound") if "low" in bound else -math.inf
    high = context.constant(bound["high"], scope, depth, "a bound") if "high" in bound else math.inf
    if low is None or high is None:
        return None
    if low > high:
        context.error(
            "STM2025", f"no number lies between {low:g} and {high:g}", call.span, "`given(low, high)`: low comes first"
        )
        return None
    return Leaf(_name(site), "given", site.indices, False, low=low, high=high, span=call.span)


def _initial(context: Context, expression: tree.Expression, scope: Scope, depth: int) -> Initial | None:
    """Where a learned number starts: a constant, or `spread(low, high)` over the heads."""
    expression, scope = resolved(expression, scope)
    if isinstance(expression, tree.Call) and expression.function.text == "spread":
        bound = arguments(context, expression, ("low", "high"), required=2)
        if bound is None:
            return None
        low = context.constant(bound["low"], scope, depth, "an initial value")
        high = context.constant(bound["high"], scope, depth, "an initial value")
        return None if low is None or high is None else Initial(low, high)
    value = context.constant(expression, scope, depth, "an initial value")
    return None if value is None else Initial(value, value)
