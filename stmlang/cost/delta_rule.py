"""Which scans are evaluated by what they erase."""

from __future__ import annotations

from stmlang.cost.problem import Problem
from stmlang.facts.overwriting import DeltaRule, delta_rule
from stmlang.scan.expression import PORT_INDICES

FORM = "scale[out, in] * (eye[key, key'] - strength * u[key] * u[key'])"


def delta_gates(problem: Problem) -> DeltaRule | str:
    """The forms of the gates, or why the scan is none of the delta rule. On a regular topology source and mark may also act on
    keys or on values, the same at all ports; on a chain there is one port."""
    rule = delta_rule(problem.scan)
    if rule is None:
        return f"it needs a transition of the form {FORM}"
    if problem.key == 1:
        # A number that is zero where all is erased leaves nothing. Of what is written less what is erased, each as large as if
        # nothing had been, rounding is left.
        return "it needs keys of two entries or more: with one a transition is a number"
    for name, matrix in (("source", False), ("mark", True)):
        state = problem.state_of(name)
        by_port = not set(PORT_INDICES).isdisjoint(problem.scan.gate(name).indices)
        if not state or (matrix and rule.mark is not None):
            continue
        if not (state in ({"key"}, {"value"}) or (matrix and state == {"key", "key'"})):
            listed = ", ".join(sorted(state))
            return f"it needs a {name} that is one number, or one per entry of key or value, not ({listed})"
        if problem.axes is None or (len(problem.axes) > 1 and by_port):
            return f"it needs a {name} that is one number for each edge, or the same at all of a node's edges"
    return rule
