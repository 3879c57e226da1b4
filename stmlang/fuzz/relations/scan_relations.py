"""Relations about any scan: its parts, its directions, its batch, its values, its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from stmlang.fuzz.relations.compare import same
from stmlang.fuzz.relations.graph_relations import cut_graph, nothing_read_of_dead_entries
from stmlang.fuzz.relations.graphs import line_pairs, oriented, topological_order
from stmlang.fuzz.relations.grid_relations import cut_grid, padding_of_nan, prefix
from stmlang.fuzz.relations.instance import (
    Bools,
    Floats,
    Given,
    Instance,
    Ints,
    Outcome,
    State,
    port_indices,
    reads,
    refuse_borders,
    single,
    site_rank,
)
from stmlang.fuzz.relations.subject import Subject, another, evaluate, one_direction, random, rounding, subject
from stmlang.fuzz.trial import Finding, NotApplicable, Trial, Way, ways
from stmlang.graph.dag import OPEN
from stmlang.scan.expression import Expr, InputRef, Number, Product, Sum, inside
from stmlang.scan.scan import Leaf, Scan, adds_direct_once

# --- parts


def cut_and_resumed(trial: Trial, way: Way) -> Finding | None:
    """A scan cut in two at any place, the second part resumed from the final state of the first."""
    original = one_direction(trial, way)
    refuse_borders(original.op.scan)
    if original.op.scan.epsilon:
        raise NotApplicable("an epsilon counts the terms of one call")
    cut = cut_graph if original.op.dag.regular is None else cut_grid
    resumed = cut(original.instance, way, random(trial, "cut"))
    return same("cut and carry the state over", way, resumed, original.outcome, original.rounding)


def prefix_property(trial: Trial, way: Way) -> Finding | None:
    """A chain or grid that ends earlier gives the same up to there."""
    original = one_direction(trial, way)
    refuse_borders(original.op.scan)
    beginning, window = prefix(original.instance, random(trial, "prefix"))
    expected, allowed = (Outcome(outcome.h[window], ()) for outcome in (original.outcome, original.rounding))
    return same("prefix", way, Outcome(evaluate(beginning, way).h, ()), expected, allowed)


PLACES = 6
"""Where the later nodes begin: so many places are tried, since no call compiles anything."""


def causality(trial: Trial, way: Way) -> Finding | None:
    """What comes later, in an order in which every edge leads to a later node, changes no bit of what came before."""
    original, generator = one_direction(trial, way), random(trial, "causality")
    dag, other = original.op.dag, another(trial, original.op)
    order = topological_order(dag, original.op.scan.directions[0], generator)
    for place in generator.permutation(len(order))[:PLACES]:
        later = np.zeros(dag.node_count, bool)
        later[order[place:]] = True
        changed = original.call(_changed(original.instance, other, later))
        outcomes = [Outcome(outcome.h.reshape(dag.node_count, -1)[~later], ()) for outcome in (changed, original.outcome)]
        if finding := same("causality", way, outcomes[0], outcomes[1], None):
            return finding
    return None


def _changed(instance: Instance, other: Given, later: Bools) -> Given:
    """Arguments with others at some nodes."""
    scan, dag, mine = instance.scan, instance.dag, instance.given
    _, head = oriented(dag, scan.directions[0])

    def chosen(where: Bools, new: Floats, old: Floats, sites: int) -> Floats:
        flat = where.reshape(-1, *(1,) * (old.ndim - sites))
        return np.where(flat, *(array.reshape(-1, *array.shape[sites:]) for array in (new, old))).reshape(old.shape)

    def leaf(declared: Leaf) -> Floats:
        old = mine.leaves[declared.name]
        if declared.kind == "param":
            return old
        return chosen(later[_node_of(instance, declared)], other.leaves[declared.name], old, site_rank(dag, declared))

    initial: dict[str, Floats] = {}
    for number, port in enumerate(dag.ports):
        edges = np.flatnonzero((oriented(dag, scan.directions[0])[0] == OPEN) & (dag.port == number))
        at = head[edges]
        old, new = mine.initial[0][port], other.initial[0][port]
        initial[port] = chosen((at != OPEN) & later[at], new, old, len(dag.node_shape) - 1 if dag.regular is not None else 1)
    rank = len(dag.node_shape)
    inputs = {name: chosen(later, other.inputs[name], array, rank) for name, array in mine.inputs.items()}
    return Given(inputs, {declared.name: leaf(declared) for declared in scan.leaves}, (initial,))


def _node_of(instance: Instance, leaf: Leaf) -> Ints:
    """The node that each site of a leaf belongs to; for the ends of edges that have none, any."""
    dag = instance.dag
    tail, head = oriented(dag, instance.scan.directions[0])
    if dag.regular is not None or not port_indices(leaf):
        return np.arange(dag.node_count)
    if len(port_indices(leaf)) == 1:
        return tail if port_indices(leaf) == ("out",) else head
    pairs = np.asarray(line_pairs(dag), np.int64).reshape(-1, 2)
    return dag.head[pairs[:, 0]]


def padding(trial: Trial, way: Way) -> Finding | None:
    """NaN in a margin's queries, or on edges where arrays are not read, changes nothing."""
    relation = nothing_read_of_dead_entries if subject(trial, way).op.dag.regular is None else padding_of_nan
    return relation(trial, way)


# --- directions


def sum_of_directions(trial: Trial, way: Way) -> Finding | None:
    """All directions together give the sum of each by itself, or all of them side by side where they are concatenated."""
    original = subject(trial, way)
    scan, instance = original.instance.scan, original.instance
    count = len(scan.directions)
    if count == 1:
        raise NotApplicable("it has one direction")
    if scan.combine == "sum" and scan.normalize != "none":
        raise NotApplicable("a quotient of sums is no sum")
    alone = [single(instance, number) for number in range(count)]
    if adds_direct_once(scan):
        alone = [alone[0], *(replace(single, scan=_without_direct(single.scan)) for single in alone[1:])]
    each = [evaluate(single, way) for single in alone]
    results = [outcome.h for outcome in each]
    h = np.sum(results, axis=0) if scan.combine == "sum" else np.concatenate(results, axis=len(instance.dag.node_shape))
    expected = Outcome(h, tuple(outcome.state[0] for outcome in each))
    return same("sum of directions", way, original.outcome, expected, original.rounding)


def _without_direct(scan: Scan) -> Scan:
    """The direct gate zero: where directions share it, it is added once."""

    gates = tuple(
        replace(gate, clauses=tuple(replace(clause, value=Number(0.0, clause.value.span)) for clause in gate.clauses))
        if gate.name == "direct"
        else gate
        for gate in scan.gates
    )
    return replace(scan, gates=gates)


# --- values


def linearity(trial: Trial, way: Way) -> Finding | None:
    """Results and states of `a v + b w` are a times those of v plus b times those of w, initial states with them. What a
    normalized scan divides by does not depend on values."""
    original = subject(trial, way)
    op = original.op
    if not _linear_in_value(op.scan):
        raise NotApplicable("its gates depend on the value")
    others, sums = _with_other_values(trial, way), _with_sums(trial, way)
    first, last = original.outcome, original.call(others.given)
    expected = Outcome(_mixed(first.h, last.h), _each(partial(_mixed_state, op.scan), first.state, last.state))
    allowed = [
        original.rounding,
        rounding("other values", trial, lambda draw: _with_other_values(draw, way)),
        rounding("sums of values", trial, lambda draw: _with_sums(draw, way)),
    ]
    return same("linearity in v", way, original.call(sums.given), expected, _total(allowed))


def _with_other_values(trial: Trial, way: Way) -> Instance:
    """A trial's scan with other values, and initial states of others; what a normalized scan divides by stays."""
    original = subject(trial, way)
    mine, other, normalized = original.instance.given, another(trial, original.op), original.op.scan.normalize != "none"

    def state(first: Floats, second: Floats) -> Floats:
        return np.concatenate([second[..., :-1], first[..., -1:]], axis=-1) if normalized else second

    changed = Given(mine.inputs | {"v": other.inputs["v"]}, mine.leaves, _each(state, mine.initial, other.initial))
    return replace(original.instance, given=changed)


def _with_sums(trial: Trial, way: Way) -> Instance:
    """The same with sums of its own and the other values."""
    instance = subject(trial, way).instance
    mine, other = instance.given, _with_other_values(trial, way).given
    values = {"v": _mixed(mine.inputs["v"], other.inputs["v"])}
    states = _each(partial(_mixed_state, instance.scan), mine.initial, other.initial)
    return replace(instance, given=Given(mine.inputs | values, mine.leaves, states))


def _mixed(first: Floats, second: Floats) -> Floats:
    return 0.75 * first + -0.5 * second


def _mixed_state(scan: Scan, first: Floats, second: Floats) -> Floats:
    mixed = _mixed(first, second)
    return mixed if scan.normalize == "none" else np.concatenate([mixed[..., :-1], first[..., -1:]], axis=-1)


def _total(outcomes: Sequence[Outcome]) -> Outcome:
    """The sum of outcomes."""
    first, *rest = outcomes
    for outcome in rest:
        first = Outcome(first.h + outcome.h, _each(np.add, first.state, outcome.state))
    return first


def _each(change: Callable[[Floats, Floats], Floats], first: State, second: State) -> State:
    return tuple(
        {port: change(array, others[port]) for port, array in ports.items()}
        for ports, others in zip(first, second, strict=True)
    )


def _linear_in_value(scan: Scan) -> bool:
    """Whether values are used in no gate but their own redefinition, and there in products with other things."""
    if reads(scan, "v") - {"v"}:
        return False
    return all(_is_linear(clause.value) for gate in scan.gates if gate.name == "v" for clause in gate.clauses)


def _is_linear(expr: Expr) -> bool:
    match expr:
        case InputRef(name="v"):
            return True
        case Product(factors=factors):
            among = [(inverted, factor) for inverted, factor in factors if any(map(_is_value, inside(factor)))]
            return len(among) == 1 and not among[0][0] and _is_linear(among[0][1])
        case Sum(terms=terms):
            return all(_is_linear(term) for _, term in terms)
        case _:
            return False


def _is_value(expr: Expr) -> bool:
    return isinstance(expr, InputRef) and expr.name == "v"


# --- settings and runs


def other_settings(trial: Trial, way: Way) -> Finding | None:
    """The sizes of chunks, tiles and blocks, and with them the depth of hierarchies, change nothing."""
    original = subject(trial, way)
    rivals = [other for other in ways(original.op) if other.strategy == way.strategy and other.label != way.label]
    if not rivals:
        raise NotApplicable(f"`{way.strategy}` has no other settings")
    for rival in rivals:
        computed = Subject(trial.compiled(rival, "float64"), original.instance).outcome
        if finding := same("chunk size and depth", way, computed, original.outcome, original.rounding):
            return replace(finding, what=f"{finding.what} with {rival.label}")
    return None


def batch_order(trial: Trial, way: Way) -> Finding | None:
    """The members of a batch in another order give their results in that order."""
    original = subject(trial, way)
    first, second = original.instance.given, another(trial, original.op)
    others = rounding("other arguments", trial, lambda draw: _with_others(draw, way))
    ordered, swapped = (original.call_both(*members) for members in ([first, second], [second, first]))
    pairs = zip(swapped, ordered[::-1], (others, original.rounding), strict=True)
    findings = (same("batch order", way, computed, other, allowed) for computed, other, allowed in pairs)
    return next((finding for finding in findings if finding is not None), None)


def _with_others(trial: Trial, way: Way) -> Instance:
    original = subject(trial, way)
    return replace(original.instance, given=another(trial, original.op))


def same_bits(trial: Trial, way: Way) -> Finding | None:
    """The same inputs give the same bits."""
    original = subject(trial, way)
    return same("same bits", way, original.call(original.instance.given), original.outcome, None)
