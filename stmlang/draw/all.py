"""Which pictures there are, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from stmlang.draw.gates import gates_picture
from stmlang.draw.names import What
from stmlang.draw.picture import Picture, Pictures, cannot_draw
from stmlang.draw.plan import memory_picture, plan_picture
from stmlang.draw.receptive import receptive_picture, too_many
from stmlang.draw.topology import topology_picture
from stmlang.facts import Facts
from stmlang.graph.dag import DAG
from stmlang.plan.plan import Plan
from stmlang.scan.scan import Scan

T = TypeVar("T")


def pictures_of(
    what: What,
    facts: Facts,
    dag: DAG | None,
    plan: Plan | None,
    *,
    node: int | None = None,
    leaves: Mapping[str, np.ndarray] | None = None,
) -> Pictures:
    """The pictures that are asked for. Of `all` those that there are: without a graph, which comes at run time, there is no
    receptive field and no plan, and where too many nodes read of the one in the middle (`too_many`) no receptive
    field. Raises SpecError (STM5213) where a single one that was asked for, or the field of a `node`, cannot be drawn."""
    scan = facts.scan
    drawn: list[Picture] = []
    every = what == "all"
    if every or what == "topology":
        drawn.append(topology_picture(scan, dag))
    if every or what == "gates":
        drawn.append(gates_picture(facts))
    if what == "receptive" or (every and dag is not None and (node is not None or too_many(scan, dag, None) is None)):
        drawn.append(receptive_picture(scan, _known(dag, "receptive field", scan), node, leaves))
    if what == "plan" or (every and plan is not None):
        drawn.append(plan_picture(_known(plan, "plan", scan)))
    if what == "memory" or (every and plan is not None):
        drawn.append(memory_picture(_known(plan, "plan", scan)))
    return Pictures(scan.name, tuple(drawn))


def _known(value: T | None, what: str, scan: Scan) -> T:
    if value is None:
        message = f"the graphs of scan `{scan.name}` come at run time: it has no {what} without them"
        raise cannot_draw(message, "draw the scan on its graphs: `op.at(graphs).draw()`")
    return value
