"""Faults seeded in the lowering, and which checks catch each: proof that the checks can fail.

A fault replaces one function of the compiler for as long as it is planted. `python -m tests.fuzz.faults` plants every one,
asks every check and relation, and prints the table of docs/verification.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import jax.numpy as jnp
import numpy as np

from stmlang.facts import bounding
from stmlang.fuzz.checks import CHECKS
from stmlang.fuzz.checks.programs import quick_compilation
from stmlang.fuzz.memory import forget
from stmlang.fuzz.relations import RELATIONS
from stmlang.fuzz.trial import Check, NotApplicable, Trial, Way
from stmlang.lower import adapters, adjoint, attention, chunks, contractions, inverse, line_grid, merge, merge_tree, operands
from stmlang.lower import level_recurrence as levels
from stmlang.lower.operands import Operands
from stmlang.lower.segment_products import paths
from stmlang.program import execute, states
from stmlang.runtime import graphs
from stmlang.scan.expression import Apply, Function, Number, Power, Reduce
from stmlang.scan.scan import Direction
from stmlang.strategies.chunkwise import lower as chunkwise
from stmlang.strategies.delta import lower as delta
from stmlang.strategies.dense_nodes import lower as dense_nodes
from stmlang.strategies.impulse import lower as impulse
from stmlang.strategies.linear import lower as linear
from stmlang.strategies.raster import lower as raster
from stmlang.strategies.raster import tile
from stmlang.strategies.recurrent import lower as recurrent
from stmlang.strategies.rows import lower as rows
from tests.helpers.cases import ALL, CONSTANT, DELTA, FACTORS, GIVEN, NONE, ONE_TURN, SMALL, SUM

EVERYTHING: Mapping[str, Check] = {**CHECKS, **RELATIONS}


# --- what is compiled


def trial(topology: str, body: str, values: str = "random", graphs: Any = None) -> Trial:
    """A small scan."""
    return Trial(f"scan fault(heads = 1, key = 2, value = 2) on {topology} {{\n{body}}}\n", "fault", values, 1, graphs)


CHAIN = trial("chain(t = 7)", GIVEN + NONE)
HELD = trial("chain(t = 7)", GIVEN + NONE, "critical")
OVERWRITTEN = trial("chain(t = 7)", DELTA)
SUMMED = trial("chain(t = 5)", SUM)
GRID = trial("grid(rows = 3, cols = 3)", GIVEN + "    directions +rows -cols\n" + NONE)
DIRECTED = trial("grid(rows = 2, cols = 3)", GIVEN + "    directions +rows -cols, -rows +cols\n" + NONE)
TURNED = trial("grid(rows = 3, cols = 4)", ONE_TURN.format("cols", "rows") + NONE)
RESPONSE = trial("grid(rows = 3, cols = 2)", CONSTANT + ALL + NONE)
GRAPH = trial(SMALL, GIVEN + NONE)
FACTORED = trial(SMALL, FACTORS + NONE)
STABLE = trial("chain(t = 5)", "    source = 1\n    transition[key, key'] = given(-1, 1)\n", "kept")
TWO = trial("dag(nodes <= 3, edges <= 2)", GIVEN + NONE, graphs=((2, ((0, 1),)), (3, ((2, 1), (1, 0)))))


@dataclass(frozen=True, eq=False)
class Fault:
    """What is wrong in words, where it is planted (`owner.attribute`), and a scan and a way that meet it. `change` makes the
    faulty function of the right one."""

    name: str
    owner: Any
    attribute: str
    change: Callable[[Any], Any]
    trial: Trial
    strategy: str
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def way(self) -> Way:
        return Way(self.strategy, self.config)


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """The compiler with a fault: scans are compiled anew, since equal ones share what was traced, and the oracles asked anew,
    since they judge the scan that runs, which may have a faulty stabilizer. Nothing that was made meanwhile outlives it."""
    _forget_programs()
    try:
        with patch.object(fault.owner, fault.attribute, fault.change(getattr(fault.owner, fault.attribute))):
            yield
    finally:
        _forget_programs()


def _forget_programs() -> None:
    forget()
    tile.exchange.cache_clear()
    jax.clear_caches()


def objection(check: str, fault: Fault) -> str | None:
    """What a check says of a fault's scan; None where it has nothing to object or to say."""
    try:
        finding = EVERYTHING[check](fault.trial, fault.way)
    except NotApplicable:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if finding is None else f"{finding.what}: {finding.error:.1e} where {finding.allowed:.1e} is allowed"


# --- the faults


def wrong_turn(right: Any) -> Any:
    """Of a turn's two ports each is taken for the other."""

    def wrong(context: Any, parts: Operands, first: int) -> Any:
        return right(context, _ports_exchanged(parts), first)

    return wrong


def _ports_exchanged(parts: Operands) -> Operands:
    axis = parts.value.ndim - 1
    return parts._replace(transition=jnp.swapaxes(parts.transition, axis, axis + 1))


def transposed_transition(right: Any) -> Any:
    def wrong(tables: Any, parts: Operands, *others: Any) -> Any:
        return right(tables, _ports_exchanged(parts), *others)

    return wrong


def dropped_edge(right: Any) -> Any:
    def wrong(parts: Any, axis: int) -> Any:
        return right([part.at[..., -1, :].set(0) if axis == -2 else part.at[..., -1].set(0) for part in parts], axis)

    return wrong


def late_chunk(right: Any) -> Any:
    def wrong(number: Any, size: int, first: int) -> Any:
        return right(number, size, first) + (number > 0)

    return wrong


def no_direct_term(right: Any) -> Any:
    def wrong(*arguments: Any) -> Any:
        return jnp.zeros_like(right(*arguments))

    return wrong


def mask_by_sign(_: Any) -> Any:
    """Products of decays by differences of their logarithms' sums; pairs with a positive difference are taken to be those
    whose source is later. Where all decays between them are one it is zero for both."""

    def wrong(decay: Any) -> Any:
        found = paths(decay)
        log = jnp.log(jnp.abs(decay))
        total = jnp.cumsum(log, axis=-1)
        difference = (total - log)[..., :, None] - total[..., None, :]
        return found._replace(inside=jnp.where(difference <= 0, jnp.exp(difference), 0))

    return wrong


def stale_decay(right: Any) -> Any:
    def wrong(decay: Any) -> Any:
        return right(decay)._replace(through=jnp.prod(decay[..., :-1], axis=-1))

    return wrong


def wrong_sense(right: Any) -> Any:
    def wrong(response: Any, directions: Any) -> Any:
        return right(response, [Direction((-one.senses[0], *one.senses[1:])) for one in directions])

    return wrong


def lost_key_cotangent(right: Any) -> Any:
    def wrong(*arguments: Any) -> Any:
        back, found = right(*arguments)
        return back, found._replace(key=jnp.zeros_like(found.key))

    return wrong


def half_an_adjoint(_: Any) -> Any:
    """`dT R` in place of `R dT R`."""

    def wrong(arguments: Any, inverse: Any, cotangent: Any) -> Any:
        del arguments
        return (contractions.matmul(contractions.transposed(inverse), cotangent),)

    return wrong


def swapped_ports(right: Any) -> Any:
    """Where both have as many states: elsewhere a shape would tell, and no check need look at numbers."""

    def wrong(*arguments: Any) -> Any:
        found = right(*arguments)
        alike = len({array.shape for array in found.values()}) == 1
        return dict(zip(found, reversed(found.values()), strict=True)) if alike else found

    return wrong


def in_bfloat16(right: Any) -> Any:
    """As products of bfloat16 are written down. How they are added up is the machine's, and XLA may keep more digits than a
    conversion asks for; of this rounding it keeps none."""

    def wrong(a: Any, b: Any) -> Any:
        kind = jnp.finfo(jnp.bfloat16)
        return jax.lax.reduce_precision(right(a, b), kind.nexp, kind.nmant)

    return wrong


def crossed_edges(right: Any) -> Any:
    def wrong(a: Any, b: Any) -> Any:
        wiring, border = right(a, b)
        return wiring._replace(taken=wiring.taken[::-1]), border

    return wrong


def walls_of_padding(right: Any) -> Any:
    def wrong(parts: Any, sizes: Any, target: Any) -> Any:
        padded = right(parts, sizes, target)
        beyond = _beyond(sizes, target, padded.transition)
        return padded._replace(transition=jnp.where(beyond, 0, padded.transition))

    return wrong


def uncleared_padding(right: Any) -> Any:
    """Whatever lay in memory, another number in each run."""

    def wrong(parts: Any, sizes: Any, target: Any) -> Any:
        padded = right(parts, sizes, target)
        number = jax.ShapeDtypeStruct((), padded.key.dtype)

        def lying_there() -> Any:
            return np.asarray(np.random.default_rng().normal(), number.dtype)

        found = jax.pure_callback(lying_there, number, vmap_method="sequential")
        filled = {
            name: jnp.where(_beyond(sizes, target, getattr(padded, name)), found, getattr(padded, name))
            for name in ("source", "key", "value")
        }
        return padded._replace(**filled)

    return wrong


def _beyond(sizes: Any, target: Any, like: Any) -> Any:
    """The nodes of an enlarged grid that are not the grid's own, to broadcast with an operand."""
    inside = np.zeros(target, bool)
    inside[tuple(slice(0, size) for size in sizes)] = True
    return ~inside.reshape(1, 1, *target, *(1,) * (like.ndim - 2 - len(target)))


def turned_on_entering(_: Any) -> Any:
    def wrong(where: Any, gate: Any) -> Any:
        del where
        return gate

    return wrong


def not_transposed(_: Any) -> Any:
    return lambda array: array


def no_turns(_: Any) -> Any:
    def wrong(problem: Any) -> Any:
        every = (True,) * len(problem.axes)
        return every, every

    return wrong


def one_doubling_less(right: Any) -> Any:
    def wrong(*arguments: Any) -> Any:
        count = right(*arguments)
        return 1 if count is None else max(count - 1, 1)

    return wrong


def by_number(_: Any) -> Any:
    return lambda dag: np.arange(dag.node_count)


def first_for_all(right: Any) -> Any:
    def wrong(array: Any, axis: Any, size: int) -> Any:
        batch = right(array, axis, size)
        return jnp.broadcast_to(batch[:1], batch.shape)

    return wrong


def scaled_by_the_largest(right: Any) -> Any:
    def wrong(query: Any, key: Any, value: Any, gating: Any) -> Any:
        scale = jnp.max(jnp.abs(query))
        return right(query / scale, key, value, gating) * scale

    return wrong


def gates_of_the_first(right: Any) -> Any:
    def wrong(directions: Any, part: Any, first: int) -> Any:
        return right(directions, lambda _: part(0), first)

    return wrong


def as_they_come(_: Any) -> Any:
    return lambda _, wanted: np.arange(len(wanted), dtype=np.int32)


def tables_of_the_first(_: Any) -> Any:
    return lambda compilation, _: compilation.program.tables


def frobenius(_: Any) -> Any:
    def norm(_: Any, __: Any, expr: Any, pairs: Any) -> Any:
        total: Any = Power(expr, Number(2.0, expr.span), expr.span)
        for index in (index for pair in pairs for index in pair):
            total = Reduce("sum", index, total, expr.span)
        return Apply(Function.SQRT, (total,), expr.span)

    return norm


def wider_epsilon(_: Any) -> Any:
    return 1e-6


FAULTS = (
    Fault("the wrong one of two turns", line_grid, "_port_gates", wrong_turn, TURNED, "separable", {"rows": 2}),
    Fault(
        "the last edge between two runs of rows dropped",
        rows,
        "_side_by_side",
        dropped_edge,
        GRID,
        "rows",
        {"axis": 0, "rows": 1, "targets": 2},
    ),
    Fault("chunks begin one node late", chunks, "_start", late_chunk, CHAIN, "linear", {"chunk": 3}),
    Fault("transition transposed", recurrent, "_run_grid", transposed_transition, GRID, "recurrent"),
    Fault("no direct term", execute, "_direct_term", no_direct_term, GRAPH, "dense"),
    Fault("causality by the sign of a logarithm", linear, "paths", mask_by_sign, HELD, "linear", {"chunk": 3}),
    Fault("one axis walked in the other sense", impulse, "profile", wrong_sense, RESPONSE, "impulse", {"tile": (2, 2)}),
    Fault("a chunk's last decay left out between chunks", linear, "paths", stale_decay, CHAIN, "linear", {"chunk": 3}),
    Fault("adjoint without the keys of sources", levels, "_step_back", lost_key_cotangent, FACTORED, "nodes"),
    Fault("adjoint of an inverse without one factor", inverse, "_adjoint", half_an_adjoint, GRAPH, "dense"),
    Fault("another epsilon in the normalizer", execute, "NORMALIZER_EPSILON", wider_epsilon, SUMMED, "recurrent"),
    Fault("final states of two ports exchanged", states, "_taken_apart", swapped_ports, GRID, "parallel"),
    Fault("scores in bfloat16", attention, "times_transposed", in_bfloat16, GRID, "parallel"),
    Fault("edges between two blocks crossed", merge, "wire", crossed_edges, GRAPH, "chunkwise", {"block": 4}),
    Fault("padding passes no states on", chunkwise, "pad_grid", walls_of_padding, GRID, "chunkwise", {"tile": (2, 2)}),
    Fault("padding not cleared", raster, "pad_grid", uncleared_padding, GRID, "raster", {"tile": (2, 2), "segments": 1}),
    Fault("entering states turned as if a node had sent them", levels, "straight", turned_on_entering, FACTORED, "nodes"),
    Fault("a triangular system not transposed", delta, "transposed", not_transposed, OVERWRITTEN, "delta", {"chunk": 3}),
    Fault("turns taken for zero", raster, "unturned", no_turns, GRID, "raster", {"tile": (2, 2), "segments": 1}),
    Fault("paths followed half as far", dense_nodes, "doublings", one_doubling_less, FACTORED, "dense_nodes"),
    Fault("nodes in the order of their numbers", merge_tree, "topological_order", by_number, GRAPH, "parallel"),
    Fault("open edges in the order in which blocks meet them", merge_tree, "_positions", as_they_come, GRAPH, "parallel"),
    Fault("gates of the first direction for all", operands, "_oriented", gates_of_the_first, DIRECTED, "recurrent"),
    Fault("the first of a batch for all", adjoint, "in_front", first_for_all, CHAIN, "linear", {"chunk": 3}),
    Fault("tables of the first graphs for all of their room", graphs, "tables_on", tables_of_the_first, TWO, "recurrent"),
    Fault(
        "scores scaled by the largest query of all nodes", adapters, "masked_attention", scaled_by_the_largest, GRID, "parallel"
    ),
    Fault("matrices divided by their Frobenius norm", bounding, "_norm", frobenius, STABLE, "recurrent"),
)


def catchers(fault: Fault) -> list[str]:
    """The checks that catch a fault, compiled quickly whoever asks. Raises AssertionError for one that objects without it."""
    with quick_compilation():
        for check in EVERYTHING:
            wrongly = objection(check, fault)
            assert wrongly is None, f"{fault.strategy}, {check}, without a fault: {wrongly}"
        with planted(fault):
            return [check for check in EVERYTHING if objection(check, fault) is not None]


def row(fault: Fault, found: list[str]) -> str:
    """A line of the table."""
    return f"| {fault.name} | `{fault.strategy}` | {', '.join(found) or 'nothing'} |"


HEAD = "| fault | strategy | caught by |\n|---|---|---|"


def main() -> None:
    """Print the table."""
    print(HEAD, flush=True)
    for fault in FAULTS:
        print(row(fault, catchers(fault)), flush=True)


if __name__ == "__main__":
    main()
