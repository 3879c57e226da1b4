"""A finding in two files: what is read is what was written, and nothing else is read."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stmlang.fuzz import saved
from stmlang.fuzz.saved import Saved, load, name_of, numbers_of
from stmlang.fuzz.trial import Finding, Trial, Way
from stmlang.source.diagnostic import SpecError

TEXT = """
scan s(heads = 1, key = 2, value = 1) on grid(rows = 2, cols = 1) {
    source[out] = sigmoid(linear(x))
    transition[out, in] = given(-1, 1)
}
"""
TRIAL = Trial(TEXT, "grid", "random", 7)
WAY = Way("chunkwise", {"tile": (1, 1)})


@pytest.fixture(scope="module")
def finding() -> Saved:
    numbers = numbers_of(TRIAL.arguments(TRIAL.compiled(None, "float64")))
    found = Finding("grad", WAY.label, "gradient of `q` is off", float("nan"), 1e-9)
    return Saved(TRIAL, WAY, found, True, numbers)


@pytest.fixture
def pair(finding: Saved, tmp_path: Path) -> Path:
    return saved.keep(tmp_path / "found", name_of("grad", WAY, TRIAL), finding)


def code(path: Path) -> str:
    with pytest.raises(SpecError) as caught:
        load(path)
    (diagnostic,) = caught.value.diagnostics
    assert str(path.with_suffix("")) in diagnostic.message
    return diagnostic.code


def rewrite(path: Path, **changed: object) -> None:
    """The arrays of a finding, some of them others."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(path, **{**arrays, **changed})


@pytest.mark.parametrize("suffix", [".stm", ".npz"])
def test_what_is_read_is_what_was_written(pair, finding, suffix):
    found = load(pair.with_suffix(suffix))
    assert (found.trial, found.way, found.optimized) == (finding.trial, finding.way, finding.optimized)
    assert repr(found.finding) == repr(finding.finding)
    assert pair.read_text() == TEXT
    op = TRIAL.compiled(None, "float64")
    wanted, own = numbers_of(TRIAL.arguments(op)), numbers_of(found.recorded.arguments(op))
    assert wanted.keys() == own.keys()
    assert all(np.array_equal(wanted[name], own[name]) for name in wanted)


def test_the_numbers_are_those_that_were_saved_and_not_drawn_again(finding, tmp_path):
    moved = {name: array + 1 for name, array in finding.numbers.items()}
    other = saved.keep(tmp_path, "moved", Saved(TRIAL, WAY, finding.finding, False, moved))
    op = TRIAL.compiled(None, "float64")
    own = numbers_of(load(other).recorded.arguments(op))
    assert all(np.array_equal(own[name], moved[name]) for name in moved)
    # What a check sets beside them is drawn, and not the same numbers again.
    beside, drawn = (numbers_of(trial.another().arguments(op)) for trial in (load(other).recorded, TRIAL))
    assert all(np.array_equal(beside[name], drawn[name]) for name in drawn)
    assert not np.array_equal(beside["q"], own["q"])
    # A check that makes another scan of the trial has no use for numbers of other shapes.
    wider = Trial(TEXT.replace("rows = 2", "rows = 3"), "grid", "random", 7).compiled(None, "float64")
    drawn = numbers_of(load(other).recorded.arguments(wider))
    assert all(np.array_equal(array, drawn[name]) for name, array in numbers_of(TRIAL.arguments(wider)).items())


def test_the_same_finding_gives_the_same_bytes(pair, finding, tmp_path):
    again = saved.keep(tmp_path / "again", pair.stem, finding)
    for suffix in (".stm", ".npz"):
        assert again.with_suffix(suffix).read_bytes() == pair.with_suffix(suffix).read_bytes()


def test_graphs_that_come_at_run_time(finding, tmp_path):
    text = "scan s(key = 2) on dag(nodes <= 3, edges <= 2) { source = 1; transition[out, in] = given(-1, 1) }"
    trial = Trial(text, "run-time dag", "random", 7, ((3, ((2, 0), (0, 1))), (0, ())))
    numbers = numbers_of(trial.arguments(trial.compiled(None, "float64")))
    path = saved.keep(tmp_path, "batch", Saved(trial, Way("recurrent", {}), finding.finding, True, numbers))
    found = load(path)
    assert found.trial == trial
    own = numbers_of(found.recorded.arguments(found.recorded.compiled(None, "float64")))
    assert all(np.array_equal(own[name], numbers[name]) for name in numbers)
    assert len({name_of("grad", WAY, one) for one in (trial, replace(trial, graphs=((3, ()),)))}) == 2
    with np.load(path.with_suffix(".npz")) as archive:
        about = json.loads(str(archive["about"]))
    for graphs in (3, [[3]], [[3, [[0]]]], [["a", []]], [[3, [[0, -1]]]], [[True, []]], [[1 << 40, []]]):
        rewrite(path.with_suffix(".npz"), about=np.array(json.dumps({**about, "graphs": graphs})))
        assert code(path) == "STM5502", graphs


def test_a_text_without_numbers(tmp_path):
    text = b"scan \xff\xfe {".decode("utf-8", "surrogateescape")
    found = Saved(Trial(text, "texts", "", 0), Way("front end", {}), Finding("answers", "", "raised", 1.0, 0.0), False, None)
    path = saved.keep(tmp_path, "text", found)
    assert path.read_bytes() == b"scan \xff\xfe {"
    assert load(path) == found


def test_a_smaller_one_takes_the_place_and_leaves_nothing_else(pair, finding):
    smaller = Saved(Trial(TEXT.replace("rows = 2", "rows = 1"), "grid", "exact", 0), WAY, finding.finding, True, None)
    assert saved.keep(pair.parent, pair.stem, smaller) == pair
    assert load(pair).trial == smaller.trial
    assert sorted(path.name for path in pair.parent.iterdir()) == [pair.with_suffix(".npz").name, pair.name]


def test_an_interruption_between_the_two_renames_loses_nothing(pair, finding, monkeypatch):
    smaller = Saved(Trial("another text", "grid", "exact", 0), WAY, finding.finding, True, None)
    rename = os.replace

    def interrupted(source: Path, target: Path) -> None:
        rename(source, target)
        monkeypatch.setattr(os, "replace", rename)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        saved.keep(pair.parent, pair.stem, smaller)
    assert load(pair).trial == smaller.trial


@pytest.mark.parametrize("kept", [0, 1, 20, 200, -1])
def test_a_file_that_was_cut_short(pair, kept):
    path = pair.with_suffix(".npz")
    path.write_bytes(path.read_bytes()[:kept])
    assert code(path) == "STM5501"


def test_a_byte_that_was_changed(pair, finding):
    """It is found, or it is none that matters."""
    path = pair.with_suffix(".npz")
    content, refused = path.read_bytes(), Counter[str]()
    for place in range(0, len(content), 37):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            found = load(path)
            assert repr(found) == repr(finding)
            assert all((found.numbers[name] == array).all() for name, array in finding.numbers.items())
        except SpecError as error:
            refused.update(one.code for one in error.diagnostics)
    assert set(refused) <= {"STM5501", "STM5502", "STM5503"}
    assert refused.total() > len(content) // 37 // 2


def test_what_was_changed_by_hand(pair):
    path = pair.with_suffix(".npz")
    original = path.read_bytes()
    with np.load(path) as archive:
        about, q = json.loads(str(archive["about"])), archive["q"]
    rewrite(path, q=q + 1e-9)
    assert code(path) == "STM5502"
    for change, expected in (
        ({"format": 99}, "STM5503"),
        ({"check": 3, "finding": []}, "STM5502"),
        ({"config": {"tile": ["a"]}}, "STM5502"),
        ({"seed": "none"}, "STM5502"),
        ({"arguments": None}, "STM5502"),
    ):
        path.write_bytes(original)
        rewrite(path, about=np.array(json.dumps({**about, **change})))
        assert code(path) == expected, change
    path.write_bytes(original)
    pair.write_text(TEXT + "\n")
    assert code(pair) == "STM5502"


def test_files_of_another_kind(pair, tmp_path):
    foreign = tmp_path / "foreign.npz"
    foreign.with_suffix(".stm").write_text(TEXT)
    np.savez(foreign, q=np.zeros(3))
    assert code(foreign) == "STM5501"
    foreign.write_text("not an archive")
    assert code(foreign) == "STM5501"
    with zipfile.ZipFile(foreign, "w") as archive:
        archive.writestr("about.npy", b"not an array")
    assert code(foreign) == "STM5502"
    assert code(tmp_path / "missing.stm") == "STM5501"
    assert code(tmp_path / "spec.txt") == "STM5501"
    pair.unlink()
    assert code(pair.with_suffix(".npz")) == "STM5501"


class Bomb:
    """What must never come to life."""

    def __reduce__(self) -> tuple[object, ...]:
        return (os.abort, ())


def test_nothing_is_unpickled(pair):
    path = pair.with_suffix(".npz")
    rewrite(path, q=np.array([Bomb()], object))
    assert code(path) == "STM5502"
    path.write_bytes(pickle.dumps(Bomb()))
    assert code(path) == "STM5501"


def test_arrays_that_claim_to_be_huge(pair, monkeypatch):
    monkeypatch.setattr(saved, "LARGEST", 1 << 20)
    path = pair.with_suffix(".npz")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("about.npy", "w") as member:
        member.write(bytes(1 << 21))
    assert path.stat().st_size < 1 << 20
    assert code(path) == "STM5502"


def test_places_that_cannot_be_written(tmp_path, finding):
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        with pytest.raises(SpecError) as caught:
            saved.require_folder(folder)
        assert caught.value.diagnostics[0].code == "STM5101"
        with pytest.raises(SpecError) as caught:
            saved.keep(folder, "name", finding)
        assert caught.value.diagnostics[0].code == "STM5101"
    saved.require_folder(tmp_path / "new" / "deeper")
    assert not (tmp_path / "new").exists()
