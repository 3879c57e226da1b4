"""A scan in several programs of one artifact, for several batch sizes and platforms: each call runs the one that fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jaxtyping import Array

from stmlang.program.states import State
from stmlang.runtime.loaded import LoadedScan, scan_from
from stmlang.runtime.reading import check_platform, running_platform
from stmlang.runtime.signature import Signature, call_error, is_array
from stmlang.source import short
from stmlang.source.wording import listing


@dataclass(frozen=True, eq=False, repr=False)
class LoadedScans:
    """An artifact of several programs, ready to run. `parts` are all that the file holds, `manifest` what it says, `members`
    what it is made of. A call takes what a `LoadedScan` takes: the program of exactly its batch size comes before that for any.
    """

    path: str
    manifest: dict[str, Any]
    parts: tuple[LoadedScan, ...]
    members: Mapping[str, bytes]

    __pdoc__ = short.text

    def __repr__(self) -> str:
        programs = ", ".join(f"{_batches([part])} on {listing(part.manifest['platforms'], 'and')}" for part in self.parts)
        return f"<LoadedScans {self.path}: {self.signature.dtype}, {programs}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoadedScans) and self.manifest == other.manifest

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.manifest["sha256"].items())))

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedScans:
        del memo
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return scans_from, (self.path, self.manifest, dict(self.members))

    @property
    def signature(self) -> Signature:
        """What a call takes, without its batch axis."""
        return self.parts[0].signature

    @property
    def source(self) -> str:
        """The spec as written."""
        return self.parts[0].source

    def __call__(self, q: Any, k: Any, v: Any, gates: Mapping[str, Any], initial: State | None = None) -> Any:
        """The result, by the program for the batch size of `q`. Raises SpecError as a `LoadedScan` does."""
        return self._for(q, self.signature.inputs["q"])(q, k, v, gates, initial)

    def for_batch(self, batch: int | None) -> LoadedScan:
        """The program for a batch size, None for no batch axis, on the platform that JAX runs on. Raises SpecError: STM5310
        where the artifact is for other platforms, STM5312 where it is for other batch sizes, naming both."""
        check_platform(self.path, self.manifest)
        fitting = {part.manifest["batch"]: part for part in self._here}
        found = fitting.get(batch) or (None if batch is None or batch < 1 else fitting.get("symbolic"))
        if found is not None:
            return found
        given = "no batch axis" if batch is None else f"a batch of {batch}"
        message = f"artifact `{self.path}` holds programs for {_batches(self._here)} on {running_platform()}; given was {given}"
        raise call_error("STM5312", message, help='compile it for this size too, or for any: `batch="symbolic"`')

    def init_state(self, batch: int | None = None) -> State:
        """The state before the first step, zero, of `batch` scans side by side. Raises SpecError as `LoadedScan` does."""
        part = self.for_batch(batch)
        return part.init_state(batch)

    def step(self, state: State, q: Any, k: Any, v: Any, gates: Mapping[str, Any]) -> tuple[Array, State]:
        """The result of the next node or row, and the state behind it. Raises SpecError as `LoadedScan` does."""
        steps = self.parts[0].steps
        return self._for(q, self.signature.inputs["q"] if steps is None else steps.signature.inputs["q"]).step(
            state, q, k, v, gates
        )

    def _for(self, q: Any, shape: tuple[int, ...]) -> LoadedScan:
        """The program for an array `q`; for what is none, or has other axes, any: it says what is wrong."""
        check_platform(self.path, self.manifest)
        lead = len(q.shape) - len(shape) if is_array(q) else None
        if lead not in (0, 1):
            return self._here[0]
        return self.for_batch(q.shape[0] if lead else None)

    @cached_property
    def _here(self) -> tuple[LoadedScan, ...]:
        """The programs for the platform that JAX runs on."""
        return tuple(part for part in self.parts if running_platform() in part.manifest["platforms"])


def scans_from(path: str, manifest: dict[str, Any], members: Mapping[str, bytes]) -> LoadedScans:
    """The programs in the members of an artifact. What reading them raises is of any kind."""
    parts = tuple(scan_from(path, *part) for part in parts_of(manifest, members))
    first = parts[0]
    if any((part.signature, part.source) != (first.signature, first.source) for part in parts):
        raise ValueError("its parts are programs of different scans")
    return LoadedScans(path, manifest, parts, members)


def parts_of(manifest: Mapping[str, Any], members: Mapping[str, bytes]) -> list[tuple[dict[str, Any], dict[str, bytes]]]:
    """Each part of an artifact as if it were alone: its manifest, and its members by the names that they have there."""
    found: list[tuple[dict[str, Any], dict[str, bytes]]] = []
    for part in manifest["parts"]:
        own = {name: members[place] for name, place in part["members"].items()}
        hashes = {name: manifest["sha256"][place] for name, place in part["members"].items()}
        found.append(({**manifest, **part, "sha256": hashes, "parts": None}, own))
    return found


def _batches(parts: Any) -> str:
    words = {None: "no batch axis", "symbolic": "any batch"}
    return listing([words.get(part.manifest["batch"], f"batches of {part.manifest['batch']}") for part in parts], "and")
