"""A chain node by node, a grid row by row: each step the same compiled program.

A chain or grid is cut across its first axis. A step is the same scan on one row, `(1, *other axes)`, planned for that size; the
state is what crosses the cut, in the layout of initial and final states, so that steps and whole passes may follow each other.
It is in float32 at least, whatever the data type of the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from stmlang.program.program import Bundle
from stmlang.program.states import LOG_SCALE, State, at_scale_one, unit_scale
from stmlang.runtime.compilation import Compilation, on_device
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import Signature, check_arguments, check_state
from stmlang.runtime.steps import require_advance, row_step
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Regular

Gates = Mapping[str, Array]


class RowStream(eqx.Module):
    """A chain node by node, or a grid row by row along its first axis. `compilation` is that of the scan on one row.

    A state is a tuple with a dictionary for each direction; it holds the states that enter the next row, under the name of the
    first axis: `(*other axes, head, [track], key, value)`, as in an initial and in a final state. Where a normalized chain has
    a scale of its own (SPEC.md, section 14), `"log scale"`, `(head,)`, is beside it: states are `exp` of it times the array.
    """

    tables: tuple[Bundle, ...]
    compilation: Compilation = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    @property
    def scan(self) -> Scan:
        """The scan on one row."""
        return self.compilation.facts.scan

    @property
    def port(self) -> str:
        """The axis along which steps go."""
        return self.compilation.program.dag.ports[0]

    @property
    def signature(self) -> Signature:
        """What a step takes and gives: arrays of one row, without the first axis."""
        whole, fixed, port = self.compilation.signature, _constants(self.scan), self.port
        return Signature(
            inputs={name: shape[1:] for name, shape in whole.inputs.items()},
            gates={name: shape if name in fixed else shape[1:] for name, shape in whole.gates.items()},
            result=whole.result[1:],
            initial=tuple({port: shapes[port]} for shapes in whole.initial),
            final=tuple({port: shapes[port]} for shapes in whole.final),
            dtype=whole.dtype,
            scale=whole.scale,
        )

    def init_state(self, initial: State | None = None) -> State:
        """The state before the first step: zero, or what enters there, as an initial or a final state of a whole pass has it,
        of which what belongs to other axes is left out. Raises SpecError (STM52xx) for anything else."""
        if initial is None:
            kind = self.compilation.program.accumulator
            zero = ({port: jnp.zeros(shape, kind) for port, shape in ports.items()} for ports in self.signature.initial)
            return self._held("initial", tuple(zero))
        return self._held("initial", initial)

    def _held(self, name: str, state: Any) -> State:
        signature, kind = self.signature, self.compilation.program.accumulator
        beside = {} if signature.scale is None else {LOG_SCALE: unit_scale(signature.scale, kind)}
        others = self.compilation.program.dag.ports[1:]
        if isinstance(state, (tuple, list)):
            state = tuple(_without(ports, others) for ports in cast(Sequence[Any], state))
        check_state(name, signature, state)
        return tuple({port: jnp.asarray(array, kind) for port, array in {**beside, **ports}.items()} for ports in state)

    def final_state(self, state: State) -> State:
        """What a whole pass over all rows so far hands over for the first axis, at scale one."""
        return at_scale_one(self._held("state", state))

    def step(
        self,
        state: State,
        q: Float[Array, "*row head key"],
        k: Float[Array, "*row head key"],
        v: Float[Array, "*row head value"],
        gates: Gates,
        *,
        entering: State | None = None,
        advance: Bool[Array, ""] | bool | None = None,
        donate: bool = False,
    ) -> tuple[Float[Array, "*row head value"], State]:
        """The result of the next row and the state behind it.

        Arrays are those of a whole pass without its first axis. `entering` are the states that enter the row across the borders
        of the other axes, zero if None: for each direction a dictionary with an array for each of those axes, as in an initial
        state, without the first axis. Where `advance` is false nothing happens: the result is zero, and the state stays. With
        `donate` the state's memory is used for the next, and the one given may not be used again.

        Raises SpecError (STM52xx) for missing, unknown or misshapen arguments.
        """
        check_arguments(self.signature, {"q": q, "k": k, "v": v}, gates, None, what="op.step")
        inputs, lifted = {"q": q[None], "k": k[None], "v": v[None]}, self.lifted(state, gates)
        return self.stepped(state, inputs, lifted, entering=entering, advance=advance, donate=donate)

    def stepped(
        self,
        state: State,
        inputs: Gates,
        gates: Gates,
        *,
        entering: State | None = None,
        advance: Any = None,
        donate: bool = False,
    ) -> tuple[Array, State]:
        """`step` with the arrays that the scan on one row takes: with a first axis of size one."""
        sides = self._sides(entering)
        held = self._held("state", state)
        return row_step(donate, self.compilation, self.tables, held, dict(inputs), dict(gates), sides, require_advance(advance))

    def whole_state(self, state: State, signature: Signature) -> State:
        """The state as the initial one of a whole pass: nothing enters across the other borders."""
        kind = self.compilation.program.accumulator
        others = ({port: shape for port, shape in shapes.items() if port != self.port} for shapes in signature.initial)
        return tuple(
            {**states, **{port: jnp.zeros(shape, kind) for port, shape in shapes.items()}}
            for states, shapes in zip(self._held("state", state), others, strict=True)
        )

    def of_whole(self, state: State) -> State:
        """The state after a whole pass, of all that it hands over."""
        return tuple({name: array for name, array in states.items() if name in (self.port, LOG_SCALE)} for states in state)

    def arguments(self, step: Any, q: Array, k: Array, v: Array, gates: Gates) -> tuple[Array, Array, Array, dict[str, Array]]:
        """Of the arrays of a whole pass those of one row."""
        fixed = _constants(self.scan)
        rows = {name: array if name in fixed else jnp.asarray(array)[step] for name, array in gates.items()}
        return jnp.asarray(q)[step], jnp.asarray(k)[step], jnp.asarray(v)[step], rows

    def tables_at(self, state: State) -> tuple[Bundle, ...]:
        """The tables of the scan on one row."""
        del state
        return self.tables

    def edges_at(self, state: State, features: Array | None) -> Array | None:
        """Features of edges as the scan on one row takes them: it has none."""
        del state
        return features

    def lifted(self, state: State, gates: Gates) -> dict[str, Array]:
        """A row's leaves as the scan on one row takes them: with a first axis of size one."""
        del state
        fixed = _constants(self.scan)
        return {name: array if name in fixed else array[None] for name, array in gates.items()}

    def _sides(self, entering: State | None) -> State:
        """What enters the row across the borders of the other axes, as the scan on one row takes it."""
        kind = self.compilation.program.accumulator
        shapes = tuple(
            {port: shape for port, shape in states.items() if port != self.port}
            for states in self.compilation.signature.initial
        )
        if entering is None:
            return tuple({port: jnp.zeros(shape, kind) for port, shape in states.items()} for states in shapes)
        rows = tuple({port: shape[1:] for port, shape in states.items()} for states in shapes)
        check_state("entering", replace(self.signature, initial=rows, scale=None), entering)
        return tuple({port: jnp.asarray(array, kind)[None] for port, array in states.items()} for states in entering)


def row_stream(compilation: Compilation) -> RowStream:
    """A compiled chain or grid, row by row. Raises SpecError where no strategy fits."""
    row = compilation.planned_for(_one_row(compilation.declared))
    return RowStream(on_device(row.program.tables), row)


def _one_row(scan: Scan) -> Scan:
    """A scan of a chain or grid whose first axis has size one."""
    assert isinstance(scan.topology, Regular)
    first, *others = scan.topology.axes
    return replace(scan, topology=replace(scan.topology, axes=(replace(first, size=1), *others)))


def _constants(scan: Scan) -> set[str]:
    return {leaf.name for leaf in scan.leaves if leaf.kind == "param"}


def _without(states: Any, ports: tuple[str, ...]) -> Any:
    """A direction's states without those of some ports; what is no dictionary stays as it is."""
    if not isinstance(states, Mapping):
        return states
    known = cast(Mapping[Any, Any], states)
    return {name: array for name, array in known.items() if name not in ports}
