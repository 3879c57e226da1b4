"""A finding in two files, NAME.stm and NAME.npz, which hold all that is needed to run its check again on the same numbers.

NAME.stm is the spec, as text. NAME.npz holds plain arrays, no pickle among them: what the scan was called with, and `about`, a
text in JSON: the check, the way, what was found, the graphs of a spec that leaves them to run time, and hashes of both files'
contents, so that files that do not belong together are told apart. Both are written to temporary files and renamed, the .npz
last. The same finding gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from stmlang.cost.settings import Config, freeze
from stmlang.ending import held
from stmlang.fuzz.trial import Finding, Listed, Trial, Way
from stmlang.oracle.derivative import Arguments
from stmlang.oracle.functions import Floats
from stmlang.runtime.compiled import CompiledScan
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.writing import temporary_file

FORMAT = 2
LARGEST = 1 << 28
"""The most bytes that the arrays of a finding may claim, unpacked."""

Numbers = Mapping[str, Floats]
"""Arguments by name: `q`, `k`, `v`, `gate NAME`, `state NUMBER PORT`."""


@dataclass(frozen=True)
class Recorded(Trial):
    """A trial whose arguments are known numbers, which `digest` stands for where trials are compared. Scans that take other
    shapes (what a check made of this one) draw theirs."""

    numbers: Numbers = field(default_factory=dict[str, Floats], compare=False, repr=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", _hash_of(self.numbers))

    def arguments(self, op: CompiledScan) -> Arguments:
        shapes = {name: array.shape for name, array in _expected(op).items()}
        if {name: array.shape for name, array in self.numbers.items()} != shapes:
            return super().arguments(op)
        gates = {name: self.numbers[f"gate {name}"] for name in op.signature.gates}
        initial = [
            {port: self.numbers[f"state {number} {port}"] for port in ports}
            for number, ports in enumerate(op.signature.initial)
        ]
        return Arguments(self.numbers["q"], self.numbers["k"], self.numbers["v"], gates, initial)


@dataclass(frozen=True)
class Saved:
    """A finding with all that it takes to see it again. `numbers` is None where there are none: the check is one of texts, or
    the scan cannot even be compiled. `optimized` says whether XLA was to optimize."""

    trial: Trial
    way: Way
    finding: Finding
    optimized: bool
    numbers: Numbers | None

    @property
    def recorded(self) -> Trial:
        """The trial, with exactly these numbers."""
        trial = self.trial
        if self.numbers is None:
            return trial
        own = (trial.text, trial.generator, trial.values, trial.seed, trial.graphs, trial.draw)
        return Recorded(*own, self.numbers)


def numbers_of(arguments: Arguments) -> Numbers:
    """Arguments as named arrays."""
    named: dict[str, Any] = {"q": arguments.q, "k": arguments.k, "v": arguments.v}
    named |= {f"gate {name}": array for name, array in arguments.gates.items()}
    for number, ports in enumerate(arguments.initial or ()):
        named |= {f"state {number} {port}": array for port, array in ports.items()}
    return {name: np.asarray(array, np.float64) for name, array in named.items()}


def _expected(op: CompiledScan) -> dict[str, Floats]:
    """Arrays, of no content, of the shapes that a scan takes."""
    named = {**op.signature.inputs, **{f"gate {name}": shape for name, shape in op.signature.gates.items()}}
    for number, ports in enumerate(op.signature.initial):
        named |= {f"state {number} {port}": shape for port, shape in ports.items()}
    return {name: np.broadcast_to(np.zeros(()), shape) for name, shape in named.items()}


# --- writing ---------------------------------------------------------------------------------------------------------


def name_of(check: str, way: Way, trial: Trial) -> str:
    """A name for files, the same for the same finding: `grad-chunkwise-1f3a9c0b`."""
    values = trial.seed if trial.draw == 0 else [trial.seed, trial.draw]
    told = json.dumps([check, way.label, trial.text, trial.values, values, trial.graphs])
    words = re.sub(r"[^a-z0-9]+", "-", f"{check} {way.strategy}".lower()).strip("-")
    return f"{words}-{_hash(told.encode())[:8]}"


def keep(folder: Path, name: str, saved: Saved) -> Path:
    """Write both files, in place of those of the same name, and return the path of NAME.stm. Raises SpecError (STM5101)."""
    text, numbers = saved.trial.text.encode("utf-8", "surrogateescape"), saved.numbers
    place = folder / f"{name}.stm"
    about: dict[str, Any] = {
        "format": FORMAT,
        "check": saved.finding.check,
        "strategy": saved.way.strategy,
        "config": dict(freeze(saved.way.config)),
        "generator": saved.trial.generator,
        "values": saved.trial.values,
        "seed": saved.trial.seed,
        "draw": saved.trial.draw,
        "graphs": saved.trial.graphs,
        "optimized": saved.optimized,
        "finding": {**asdict(saved.finding), "error": repr(saved.finding.error), "allowed": repr(saved.finding.allowed)},
        "arguments": None if numbers is None else _hash_of(numbers),
        "text": _hash(text),
    }
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {"about": np.array(json.dumps(about, sort_keys=True)), **(numbers or {})}
    np.savez_compressed(buffer, **arrays)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            first = stack.enter_context(_temporary(folder, text))
            second = stack.enter_context(_temporary(folder, buffer.getvalue()))
            with held():  # an interruption that comes between the two would leave a pair that does not belong together
                try:
                    os.replace(first, place)
                finally:  # also where Python itself raises an interruption, in a process that is not ours
                    if not os.path.exists(first):
                        os.replace(second, place.with_suffix(".npz"))
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise SpecError([Diagnostic("STM5101", f"cannot write `{place}`: {reason}", None)]) from None
    return place


@contextmanager
def _temporary(folder: Path, content: bytes) -> Generator[str]:
    """A file with a content in a folder, gone at the end unless it was renamed."""
    with temporary_file(folder) as (stream, name):
        stream.write(content)
        stream.close()
        os.chmod(name, 0o644)
        yield name


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _hash_of(numbers: Numbers) -> str:
    """One hash of all arrays, their names and shapes."""
    pieces = [
        f"{name} {numbers[name].shape} ".encode() + np.ascontiguousarray(numbers[name], "<f8").tobytes()
        for name in sorted(numbers)
    ]
    return _hash(b"".join(pieces))


# --- reading ---------------------------------------------------------------------------------------------------------


def load(path: Path) -> Saved:
    """The finding of a pair of files, given as either of them. Nothing in them is executed or unpickled.

    Raises SpecError: STM5501 where a file cannot be read or is no such file, STM5502 where the pair is damaged or was changed,
    STM5503 where it is of another version.
    """
    if path.suffix not in (".stm", ".npz"):
        raise _error("STM5501", f"`{path}` is no saved finding: one is a pair of files, NAME.stm and NAME.npz")
    text, content = (_bytes(path.with_suffix(suffix)) for suffix in (".stm", ".npz"))
    name = path.with_suffix(".npz")
    about, numbers = _unpack(name, content)
    if about.get("format") != FORMAT:
        version = about.get("format")
        raise _error("STM5503", f"`{name}` has format {version!r}; this version of stmlang reads format {FORMAT}")
    if about.get("text") != _hash(text):
        raise _error("STM5502", f"`{path.with_suffix('.stm')}` is not the text that was saved with `{name}`")
    if about.get("arguments") != (_hash_of(numbers) if numbers else None):
        raise _error("STM5502", f"`{name}` is damaged: its arrays are not those that were saved")
    try:
        return _saved(about, text.decode("utf-8", "surrogateescape"), numbers)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _error("STM5502", f"`{name}` is damaged: {type(error).__name__} in what it says: {error}") from None


def _bytes(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        help = "the two files NAME.stm and NAME.npz belong together: keep them in one folder"
        raise _error("STM5501", f"cannot read `{path}`: {(error.strerror or str(error)).lower()}", help) from None
    if len(content) > LARGEST:
        raise _error("STM5502", f"`{path}` is larger than {LARGEST >> 20} MiB, which no saved finding is")
    return content


def _unpack(path: Path, content: bytes) -> tuple[dict[str, Any], dict[str, Floats]]:
    """What `about` says, and the other arrays."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
                raise ValueError(f"its arrays claim to be over {LARGEST >> 20} MiB")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            if "about" not in archive.files:
                raise _error("STM5501", f"`{path}` is no saved finding: it has no `about`")
            arrays = {name: archive[name] for name in archive.files}
        about: Any = json.loads(str(arrays.pop("about")))
        numbers = {name: np.asarray(array) for name, array in arrays.items()}
        if not isinstance(about, dict) or any(array.dtype != np.float64 for array in numbers.values()):
            raise ValueError("it holds something else than was saved")
    except zipfile.BadZipFile as error:
        raise _error("STM5501", f"`{path}` is no saved finding, or was cut short: {str(error).lower()}") from None
    except (OSError, ValueError, EOFError, RuntimeError, MemoryError, RecursionError, zlib.error) as error:
        raise _error("STM5502", f"`{path}` is damaged: {error}") from None
    return cast("dict[str, Any]", about), numbers


def _saved(about: dict[str, Any], text: str, numbers: dict[str, Floats]) -> Saved:
    """Raises KeyError, TypeError, ValueError or AttributeError where something is missing or of another type."""
    told: dict[str, Any] = dict(about["finding"])
    error, allowed = float(told.pop("error")), float(told.pop("allowed"))
    words = {key: _word(told[key]) for key in ("check", "way", "what")}
    return Saved(
        Trial(
            text,
            _word(about["generator"]),
            _word(about["values"]),
            int(about["seed"]),
            _graphs(about["graphs"]),
            int(about.get("draw", 0)),  # findings that were saved when there was one set of values have none
        ),
        Way(_word(about["strategy"]), dict(_config(dict(about["config"])))),
        Finding(**words, error=error, allowed=allowed),
        bool(about["optimized"]),
        numbers or None,
    )


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _graphs(value: Any) -> tuple[Listed, ...] | None:
    if value is None:
        return None
    return tuple((_whole(nodes), tuple((_whole(tail), _whole(head)) for tail, head in edges)) for nodes, edges in value)


def _whole(value: object) -> int:
    """A number of nodes, or of a node; -1 would be an open end."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise ValueError(f"{value!r} is no number of a node")
    return value


def _config(values: dict[str, Any]) -> Config:
    """JSON has no tuples: a list is one."""
    config: dict[str, int | tuple[int, ...]] = {}
    for key, value in values.items():
        config[_word(key)] = (
            tuple(int(number) for number in cast("list[Any]", value)) if isinstance(value, list) else int(value)
        )
    return freeze(config)


def require_folder(folder: Path) -> None:
    """Raises SpecError (STM5101) where a finding certainly could not be saved, before one is looked for."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise SpecError([Diagnostic("STM5101", f"cannot write into `{folder}`: `{place}` is not a folder", None)])
    if not os.access(place, os.W_OK | os.X_OK):
        raise SpecError([Diagnostic("STM5101", f"cannot write into `{folder}`: permission denied", None)])


def _error(code: str, message: str, help: str | None = None) -> SpecError:
    return SpecError([Diagnostic(code, message, None, help=help)])
