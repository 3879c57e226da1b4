"""`stmlang doctor`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from stmlang.cli import doctor


def test_this_installation_fits_together(stmlang):
    result = stmlang("doctor")
    assert result.status == 0, result.out
    for word in ("jax ", "jaxlib", "equinox", "float64", "matmul precision", "cpu calibration", "everything fits together"):
        assert word in result.out


def test_json(stmlang):
    found = json.loads(stmlang("doctor", "--json").out)
    assert found["ok"] is True
    assert found["jax"]["devices"][0]["platform"] == "cpu"
    assert found["packages"]["jax"]


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("0.10.2", ">=0.10.2,<0.12", True),
        ("0.12.0", "<0.12,>=0.10.2", False),
        ("0.10.1", "<0.12,>=0.10.2", False),
        ("2.4", ">=2.0", True),
        ("2", ">=2.0", True),
        ("0.11.0rc1", "<0.12", True),
        ("1.9", "==1.9.0", True),
        ("3.0", "!=3.0", False),
        ("anything", "", True),
    ],
)
def test_ranges(version, wanted, fits):
    assert doctor.within(version, wanted) is fits


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"jax": "0.9.0", "jaxlib": "0.9.0"}, "outside of the supported range"),
        ({"jaxlib": "99.0"}, "is newer than jax"),
        ({"numpy": None}, "numpy is not installed"),
    ],
)
def test_what_does_not_fit_is_a_problem(stmlang, monkeypatch, changes, words):
    real = doctor.installed
    monkeypatch.setattr(doctor, "installed", lambda name: changes.get(name, real(name)))
    monkeypatch.setattr(doctor, "supported_ranges", lambda: {"jax": ">=0.10.2,<0.12"})
    result = stmlang("doctor")
    assert result.status == 1
    assert words in result.out


def test_a_jax_that_does_not_start_is_reported(stmlang, monkeypatch):
    def fail(_: str) -> None:
        raise RuntimeError("no backend\nmore")

    monkeypatch.setattr(doctor, "import_module", fail)
    result = stmlang("doctor")
    assert result.status == 1
    assert "jax does not start: RuntimeError: no backend" in result.out


def test_calibration_is_read(stmlang, monkeypatch, tmp_path):
    from stmlang.cost import calibration
    from stmlang.cost.target import CPU

    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path))
    assert "not measured" in stmlang("doctor").out
    calibration.save(CPU)
    assert "measured on this machine" in stmlang("doctor").out


def test_it_says_what_is_missing_for_what(stmlang, monkeypatch):
    real = doctor.installed
    monkeypatch.setattr(doctor, "installed", lambda name: None if name in ("matplotlib", "pygls") else real(name))
    result = stmlang("doctor")
    assert result.status == 0, "what an extra needs keeps nothing else from working"
    assert "the language server: `stmlang lsp`: needs pygls; run `pip install 'stmlang[lsp]'`" in result.out
    assert json.loads(stmlang("doctor", "--json").out)["missing"]["draw"] == ["matplotlib"]


def test_every_extra_is_told():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(doctor.EXTRAS) == set(project["optional-dependencies"])
    training = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    assert all(f"`{extra}`" in training for extra in doctor.EXTRAS)
