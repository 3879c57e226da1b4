"""An artifact of a scan, ready to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import jax
import jax.export
import jax.numpy as jnp
from jaxtyping import Array

from stmlang.graph.shapes import Shape
from stmlang.program.states import State
from stmlang.runtime.arguments import arrays_for
from stmlang.runtime.artifact import STEP_MEMBERS, arguments_of
from stmlang.runtime.calling import program_call
from stmlang.runtime.primitives import Program
from stmlang.runtime.reading import arrays_of, check_platform, compare_program
from stmlang.runtime.signature import Signature, call_error, widest
from stmlang.source import short


@dataclass(frozen=True, eq=False, repr=False)
class LoadedScan:
    """An artifact ready to run. `manifest`, `plan` (as JSON text) and `source` are what the file says, `members` its parts;
    `steps` is the scan of one step, if the artifact holds it."""

    path: str
    manifest: dict[str, Any]
    signature: Signature
    plan: str
    source: str
    stablehlo: str
    tables: list[Array]
    exported: jax.export.Exported
    members: Mapping[str, bytes]
    steps: LoadedScan | None = None

    __pdoc__ = short.text

    def __repr__(self) -> str:
        batch = {None: "no batch", "symbolic": "any batch"}.get(self.manifest["batch"], f"batch {self.manifest['batch']}")
        return f"<LoadedScan {self.path}: {self.signature.dtype} on {', '.join(self.manifest['platforms'])}, {batch}>"

    def __eq__(self, other: object) -> bool:
        """By value: two are equal whose manifests are, which hold the hashes of everything else."""
        return isinstance(other, LoadedScan) and self.manifest == other.manifest

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.manifest["sha256"].items())))

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedScan:
        del memo
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return scan_from, (self.path, self.manifest, dict(self.members))

    @cached_property
    def _call(self) -> Program:
        symbolic, source = (
            self.manifest["batch"] == "symbolic",
            'compile it for training: `stmlang.compile(spec, mode="training")`',
        )
        return program_call(self.exported, self.tables, symbolic=symbolic, path=self.path, source=source)

    def __call__(self, q: Any, k: Any, v: Any, gates: Mapping[str, Any], initial: State | None = None) -> Any:
        """The result, batched as exported: all arguments have the batch axis in front, unless the artifact has none. `jax.vmap`
        adds another one, and `jax.grad` differentiates it once if it was compiled for training.

        Artifacts with state take `initial` and return `(result, final state)`. Raises SpecError (STM5310-STM5313) for another
        platform, data type, shape or name than the artifact was made for, naming both; STM5314 for derivatives that it does not
        hold.
        """
        inputs, dtype = {"q": q, "k": k, "v": v}, self.signature.dtype
        check_platform(self.path, self.manifest)
        arrays = self._check(inputs, self.signature.inputs, "arguments", dtype)
        arrays += self._check(gates, self.signature.gates, "gate leaves", dtype)
        arrays += self._check_state(initial)
        self._check_batch(arrays)
        state = () if initial is None else (tuple(dict(ports) for ports in initial),)
        results = self._call(jax.tree.leaves(cast(Any, (inputs, dict(gates), *state))))
        return jax.tree.unflatten(cast(Any, self.exported).out_tree, results)

    def init_state(self, batch: int | None = None) -> State:
        """The state before the first step, zero; `batch` is how many there are, where the artifact takes any batch. Raises
        SpecError: STM5312 where the batch is missing or another, STM5313 where the artifact does not hold the step."""
        steps, own = self._steps(), self.manifest["batch"]
        if (own == "symbolic") != (batch is not None) and own != batch:
            batches = "any batch: say how many" if own == "symbolic" else "no batch" if own is None else f"batches of {own}"
            raise call_error("STM5312", f"artifact `{self.path}` takes {batches}; given was `batch={batch}`")
        size = own if isinstance(own, int) else batch
        kind, lead = widest(self.signature.dtype), () if size is None else (size,)
        return tuple(
            {port: jnp.zeros((*lead, *shape), kind) for port, shape in ports.items()} for ports in steps.signature.initial
        )

    def step(self, state: State, q: Any, k: Any, v: Any, gates: Mapping[str, Any]) -> tuple[Array, State]:
        """The result of the next node of a chain, or row of a grid, and the state behind it. Arrays are those of a call without
        the first axis of nodes. Raises SpecError as a call does, and STM5313 where the artifact does not hold the step."""
        return self._steps()(q, k, v, gates, state)

    def _steps(self) -> LoadedScan:
        if self.steps is None:
            help = "write it with its step: `op.export(path, step=True)`, `stmlang compile --step`"
            raise call_error("STM5313", f"artifact `{self.path}` does not hold the scan's step", help=help)
        return self.steps

    def _check_state(self, initial: Any) -> list[Any]:
        """The arrays of an initial state."""
        with_state, expected = self.manifest["with_state"], self.signature.initial
        if with_state != (initial is not None):
            verb = "takes" if with_state else "was exported without"
            help = "give it one, of zeros if there is none" if with_state else "export it with states: `with_state=True`"
            raise call_error("STM5313", f"artifact `{self.path}` {verb} an initial state", help=help)
        if initial is None:
            return []
        if not isinstance(initial, (tuple, list)) or len(cast(Sequence[Any], initial)) != len(expected):
            count = len(cast(Sequence[Any], initial)) if isinstance(initial, (tuple, list)) else type(initial).__name__
            message = f"`initial` of artifact `{self.path}` is a tuple of {len(expected)} dictionaries; given was {count}"
            raise call_error("STM5312", message, help="one for each direction, with an array for each port")
        accumulator = str(widest(self.signature.dtype))
        directions = zip(cast(Sequence[Any], initial), expected, strict=True)
        return [array for state, shapes in directions for array in self._check(state, shapes, "ports of a state", accumulator)]

    def _check(self, mapping: Any, expected: Mapping[str, Shape], what: str, dtype: str) -> list[Any]:
        """The arrays given, in the order of the artifact's."""
        return arrays_for(self.path, mapping, expected, what, dtype, batched=self.manifest["batch"] is not None)

    def _check_batch(self, arrays: Sequence[Any]) -> None:
        batch = self.manifest["batch"]
        if batch is None:
            return
        sizes = {array.shape[0] for array in arrays}
        if len(sizes) > 1:
            help = "every argument has the batch axis in front"
            raise call_error("STM5312", f"all arguments must have one batch size; given were {sorted(sizes)}", help=help)
        size = sizes.pop()
        if isinstance(batch, int) and size != batch:
            help = 'export it for any batch size: `batch="symbolic"`'
            raise call_error("STM5312", f"artifact `{self.path}` has the batch size {batch}; given was {size}", help=help)
        if size < 1:
            raise call_error(
                "STM5312", f"artifact `{self.path}` takes batches of at least 1; given was 0", help="skip the call"
            )


def scan_from(path: str, manifest: dict[str, Any], members: Mapping[str, bytes]) -> LoadedScan:
    """The scan in the members of an artifact. What reading them raises is of any kind."""
    exported = jax.export.deserialize(bytearray(members["program.bin"]))
    tables = [jnp.asarray(table) for table in arrays_of(members["tables.npz"])]
    signature = signature_from(manifest["signature"])
    batch = manifest["batch"]
    lead = () if batch is None else ("batch" if batch == "symbolic" else batch,)
    expected = arguments_of(signature, tables, tuple(jax.export.symbolic_shape("batch")) if batch == "symbolic" else lead, True)
    expected = expected if manifest["with_state"] else expected[:3]
    result = (tuple(str(size) for size in (*lead, *signature.result)), signature.dtype)
    compare_program(exported, manifest, expected, [result])
    plan, source, text = (members[member].decode() for member in ("plan.json", "source.stm", "program.mlir"))
    return LoadedScan(path, manifest, signature, plan, source, text, tables, exported, members, _steps(path, manifest, members))


def _steps(path: str, manifest: dict[str, Any], members: Mapping[str, bytes]) -> LoadedScan | None:
    """The scan of one step, if an artifact holds it."""
    if manifest.get("step") is None:
        return None
    described = {**manifest, "signature": manifest["step"], "with_state": True, "step": None}
    return scan_from(path, described, {**members, **{name: members[at] for name, at in STEP_MEMBERS.items()}})


def signature_from(stored: Mapping[str, Any]) -> Signature:
    """A signature as an artifact stores it. Raises an error of any kind for anything else."""

    def shape(entry: Sequence[Any]) -> Shape:
        if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in entry):
            raise ValueError(f"{entry!r:.40} is not a shape")
        return tuple(entry)

    def shapes(entry: Mapping[str, Sequence[Any]]) -> dict[str, Shape]:
        return {name: shape(sizes) for name, sizes in entry.items()}

    return Signature(
        shapes(stored["inputs"]),
        shapes(stored["gates"]),
        shape(stored["result"]),
        tuple(shapes(entry) for entry in stored["initial"]),
        tuple(shapes(entry) for entry in stored["final"]),
        str(stored["dtype"]),
    )
