"""What `stmlang tune` measured: records in the user's cache, one for each scan, size, way of calling, machine and version.

    tuned-SCAN-KEY.json   {"schema": 2, "key": {...}, "baseline": ..., "winner": ..., "checked": ..., "measured": [...]}

SCAN is a hash of the scan's text without its sizes, so that records of the same scan at other sizes are found too; KEY one of
everything that a measurement depends on. Measuring needs jax, and so is done elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from stmlang.cost.cache import cache_folder, installed, locked, read_json, write_json
from stmlang.cost.calibration import machine_key, usable_cores
from stmlang.cost.problem import Problem
from stmlang.log import CACHE
from stmlang.scan.scan import Scan
from stmlang.scan.show import show_scan
from stmlang.scan.topology import Axis, CompleteTree, FromFile, Product, Regular, Runtime, Static, Topology
from stmlang.source.drawing import printable

SCHEMA = 2
TIE = 0.05
"""Times that differ by less, noise aside, are equal."""
SHOWN = 3
"""As many records that do not fit are explained."""

Key = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Device:
    """What programs run on: JAX's platform, the kind of device, and the cores that feed it."""

    platform: str
    kind: str
    cores: int

    @classmethod
    def cpu(cls) -> Device:
        """This machine's CPU."""
        key = machine_key()
        return cls("cpu", f"{key['machine']} {key['processor']}", usable_cores())


@dataclass(frozen=True, slots=True)
class Measured:
    """A candidate, by its label. `seconds` is the median of a call, `ratio` its time to the baseline's, the median of `turns`,
    uncertain by `noise` of it; of what was timed in one turn nothing is known, and `noise` is 1. `fault` says what is wrong
    with its numbers, and is empty if nothing is; a faulty candidate was not timed."""

    label: str
    seconds: float
    ratio: float
    noise: float
    compile_seconds: float
    temporary_bytes: int
    fault: str = ""
    turns: int = 1


@dataclass(frozen=True, slots=True)
class Record:
    """All that was measured for a key, in the order of prediction. `checked` says what numbers were compared with."""

    key: Key
    baseline: str
    winner: str
    checked: str
    measured: tuple[Measured, ...]

    def of(self, label: str) -> Measured | None:
        """What was measured of a candidate."""
        return next((entry for entry in self.measured if entry.label == label), None)


@dataclass(frozen=True, slots=True)
class Found:
    """The record that fits, if there is one, and a line for each that does not."""

    record: Record | None
    notes: tuple[str, ...] = ()


IGNORED = Found(None, ("they were not looked for, as asked",))


# --- keys ------------------------------------------------------------------------------------------------------------


def key_of(problem: Problem, device: Device) -> Key:
    """Everything that a measurement depends on. The memory limit is not among it: it decides what may be used."""
    scan = problem.scan
    return {
        "scan": fingerprint(scan),
        "axes": None if problem.axes is None else list(problem.axes),
        "graph": _graph(problem),
        "heads": scan.heads,
        "key": scan.key,
        "value": scan.value,
        "track": scan.track,
        "dtype": problem.dtype,
        "mode": problem.mode,
        "batch": problem.batch,
        **asdict(device),
        **{name: installed(name) for name in ("stmlang", "jax", "jaxlib")},
    }


def fingerprint(scan: Scan) -> str:
    """A hash of a scan's text without its name and sizes."""
    bare = replace(scan, name="scan", topology=_unsized(scan.topology), heads=0, key=0, value=0, track=0)
    return _hash(show_scan(bare))


def _unsized(topology: Topology) -> Topology:
    match topology:
        case Regular(axes=axes):
            return replace(topology, axes=tuple(Axis(axis.name, None) for axis in axes))
        case CompleteTree():
            return replace(topology, arity=None, depth=None)
        case Product(factors=factors):
            return replace(topology, factors=tuple(cast(Any, _unsized(factor)) for factor in factors))
        case Static() | FromFile() | Runtime():
            return topology


def _graph(problem: Problem) -> str | None:
    """A hash of a ragged topology's edges."""
    if problem.axes is not None or problem.dag is None:
        return None
    arrays = (problem.dag.tail, problem.dag.head, problem.dag.port)
    return _hash(b"".join(array.astype("<i8").tobytes() for array in arrays))


def _hash(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]


def place_of(key: Key) -> Path:
    """Where the record of a key lies."""
    return cache_folder() / f"tuned-{key['scan']}-{_hash(json.dumps(dict(key), sort_keys=True))}.json"


# --- reading ---------------------------------------------------------------------------------------------------------


def look_up(problem: Problem, device: Device | None) -> Found:
    """The record for a problem on a device, or why none of those of the same scan fits. None stands for a machine that is
    not this one."""
    folder = cache_folder()
    if not any(folder.glob("tuned-*.json")):
        CACHE.info("what was tuned: nothing, in %s", folder)
        return Found(None)
    own = key_of(problem, Device.cpu() if device is None else device)
    place = place_of(own)
    notes: list[str] = []
    for path in sorted(folder.glob(f"tuned-{own['scan']}-*.json"), key=lambda path: (path != place, path.name)):
        record = read(path)
        if record is None or (path == place and record.key != own):
            notes.append(f"`{path}` is damaged, or of another version of stmlang")
        elif device is None:
            notes.append("they are used for this machine, and the plan is for another")
        elif path == place:
            CACHE.info("what was tuned: a record that fits, %s", path)
            return Found(record)
        else:
            notes.append(_difference(record.key, own))
    CACHE.info("what was tuned: no record that fits, %s", place)
    notes = list(dict.fromkeys(notes))
    if len(notes) > SHOWN:
        notes[SHOWN:] = [f"and {len(notes) - SHOWN} more"]
    return Found(None, tuple(notes))


def read(path: Path) -> Record | None:
    """A record, or None where there is none or the file cannot be trusted."""
    try:
        return _record(read_json(path))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None


def _record(stored: dict[str, Any]) -> Record:
    """What a file says, each value of the kind and size that is written. Raises what `read` knows."""
    if stored["schema"] != SCHEMA or not isinstance(stored["measured"], list):
        raise ValueError("another schema")
    measured = tuple(_measured(entry) for entry in cast(list[dict[str, Any]], stored["measured"]))
    baseline, winner, checked = (_text(stored[name]) for name in ("baseline", "winner", "checked"))
    record = Record(_key(stored["key"]), baseline, winner, checked, measured)
    for label in (record.baseline, record.winner):
        entry = record.of(label)
        if entry is None or entry.fault:
            raise ValueError(f"{label} was not measured")
    return record


def _key(stored: dict[str, Any]) -> Key:
    key: dict[str, Any] = {name: _text(stored[name]) for name in TEXTS} | {name: _whole(stored[name]) for name in SIZES}
    axes, graph = stored["axes"], stored["graph"]
    if axes is not None and not isinstance(axes, list):
        raise ValueError("axes are a list of sizes")
    key["axes"] = None if axes is None else [_whole(size) for size in cast(list[Any], axes)]
    return key | {"graph": None if graph is None else _text(graph)}


def _measured(entry: dict[str, Any]) -> Measured:
    numbers = [_number(entry[name]) for name in ("seconds", "ratio", "noise", "compile_seconds")]
    fault = _text(entry["fault"])
    least = 0.0 if fault else 1e-12
    if min(numbers[:2]) < least:
        raise ValueError("times are positive numbers")
    memory, turns = _whole(entry["temporary_bytes"]), _whole(entry["turns"])
    return Measured(_text(entry["label"]), *numbers, temporary_bytes=memory, fault=fault, turns=turns)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
        raise ValueError("not a text that was written here")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("not a count")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < MOST:
        raise ValueError("not a time")
    return float(value)


TEXTS = ("scan", "dtype", "mode", "platform", "kind", "stmlang", "jax", "jaxlib")
SIZES = ("heads", "key", "value", "track", "batch", "cores")
LONGEST = 2000
"""Characters of the longest text in a record."""
MOST = 1e12
"""No time is as long, in seconds or to another."""

WORDS = {
    "heads": "heads {}",
    "key": "key {}",
    "value": "value {}",
    "track": "track {}",
    "dtype": "{}",
    "mode": "{}",
    "batch": "batch {}",
    "platform": "platform {}",
    "kind": "device {}",
    "cores": "cores {}",
    "stmlang": "stmlang {}",
    "jax": "jax {}",
    "jaxlib": "jaxlib {}",
}


def _difference(theirs: Key, own: Key) -> str:
    """`for 24 x 24, batch 4; here 14 x 14, batch 1`."""
    names = [name for name in WORDS if theirs.get(name) != own[name]]
    there = [WORDS[name].format(theirs.get(name)) for name in names]
    here = [WORDS[name].format(own[name]) for name in names]
    if theirs.get("axes") != own["axes"]:
        there.insert(0, " x ".join(map(str, theirs.get("axes") or ("?",))))
        here.insert(0, " x ".join(map(str, own["axes"] or ("?",))))
    elif theirs.get("graph") != own["graph"]:
        there.insert(0, "another graph")
    return f"measured for {', '.join(there)}" + (f"; here {', '.join(here)}" if here else "")


# --- writing ---------------------------------------------------------------------------------------------------------


def keep(
    key: Key, baseline: str, checked: str, timed: Sequence[Measured], order: Sequence[str], previous: str | None
) -> Record:
    """Add what was measured to the record of a key, and return all of it.

    Measurements relative to another baseline than the record's replace it. `order` has the labels as predicted, `previous`
    the winner of an earlier run. Raises OSError where the cache cannot be written.
    """
    place = place_of(key)
    with locked(place):
        old = read(place)
        entries = {entry.label: entry for entry in old.measured} if old is not None and old.baseline == baseline else {}
        entries |= {entry.label: replace(entry, fault=printable(entry.fault)[:LONGEST]) for entry in timed}
        listed = [label for label in order if label in entries]
        listed += [label for label in entries if label not in order]
        measured = tuple(entries[label] for label in listed)
        record = Record(key, baseline, winner(measured, previous), checked, measured)
        write_json(place, {"schema": SCHEMA, **asdict(record)})
    return record


def winner(measured: Sequence[Measured], previous: str | None = None) -> str:
    """The fastest whose numbers are right; of equally fast ones, as far as the noise lets one tell, the first. The winner of an
    earlier run stays unless it is clearly beaten, so that two runs agree."""
    right = [entry for entry in measured if not entry.fault]
    best = min(right, key=lambda entry: entry.ratio * (1 + entry.noise))

    def ties(entry: Measured, margin: float) -> bool:
        return entry.ratio <= best.ratio * (1 + margin + best.noise + entry.noise)

    if any(entry.label == previous and ties(entry, 2 * TIE) for entry in right):
        return str(previous)
    return next((entry.label for entry in right if ties(entry, TIE)), best.label)
