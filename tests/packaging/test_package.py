"""What is in the package, and what it is installed with."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import stmlang

ROOT = Path(__file__).parents[2]
FOLDERS = {"stmlang": "stmlang", "stdlib": "stmlang.stdlib", "models": "stmlang.models", "experiments": "stmlang.experiments"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements.lock").read_text().splitlines()


@pytest.mark.parametrize(("folder", "package"), FOLDERS.items())
def test_folder_is_that_package(folder: str, package: str) -> None:
    assert Path(str(importlib.import_module(package).__file__)).parent == ROOT / folder


def test_every_data_file_is_installed() -> None:
    globs = PROJECT["tool"]["setuptools"]["package-data"]
    covered = {
        path
        for package, patterns in globs.items()
        for folder, name in FOLDERS.items()
        if package == name or package.startswith(f"{name}.")
        for pattern in patterns
        for path in (ROOT / folder / package.removeprefix(name).strip(".").replace(".", "/")).glob(pattern)
    }
    files = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()}
    assert {path for path in files if path.suffix not in (".py", ".pyc")} <= covered


def test_every_folder_with_code_is_a_package() -> None:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path


def test_lock_pins_released_versions_only() -> None:
    for line in LOCK:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line
    locked = {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in LOCK}
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [*PROJECT["project"]["dependencies"], *(entry for extra in extras for entry in extra), "setuptools"]
    for entry in wanted:
        name = re.split(r"[\[<>=!~; ]", entry)[0]
        assert re.sub(r"[-_.]+", "-", name).lower() in locked, entry


def test_one_version() -> None:
    assert stmlang.__version__ == PROJECT["project"]["version"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files that are under version control or new, without what no package is made of."""
    place = tmp_path_factory.mktemp("package") / "tree"
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file() and name.split("/")[0] not in ("tests", "docs", "benchmarks"):
            target = place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    return place


def built(source: Path, place: Path) -> zipfile.ZipFile:
    """The wheel of a folder or of sources, made without a network."""
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(place), str(source)], cwd=place, check=True, timeout=300)
    (found,) = place.glob("*.whl")
    return zipfile.ZipFile(found)


@pytest.fixture(scope="module")
def wheel(tree: Path) -> zipfile.ZipFile:
    """The package as it is installed."""
    return built(tree, tree.parent)


@pytest.mark.slow
def test_sources_make_the_same_package_and_it_runs_elsewhere(tree: Path, wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """Sources, the wheel that is made of them, and a command of what is installed from it, each in a folder of its own."""
    make = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", make], cwd=tree, check=True, timeout=300, stdout=subprocess.DEVNULL)
    (sources,) = tmp_path.glob("*.tar.gz")
    (tmp_path / "again").mkdir()
    again = built(sources, tmp_path / "again")
    assert set(again.namelist()) == set(wheel.namelist())
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(tmp_path / "here")]
    subprocess.run([*install, str(again.filename)], check=True, timeout=300)
    code = "import stmlang.cli.main as m, stmlang; print(stmlang.__file__); m.main(['check', 'std:plstm/image_p'])"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "here")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == [
        str(tmp_path / "here" / "stmlang" / "__init__.py"),
        "std:plstm/image_p: ok (plstm_p on a grid)",
    ], done.stderr


def test_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    """Where it is imported from, and nothing of the tests."""
    wanted = {
        f"{package.replace('.', '/')}/{path.relative_to(ROOT / folder)}"
        for folder, package in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == wanted


def test_page_of_the_package_has_no_dead_links(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    page = wheel.read(name).decode()
    assert "Description-Content-Type: text/markdown" in page
    assert "SPEC.md" in page
    assert not re.findall(r"\]\((?!https?:)[^)]*\)", page)


NAMES = ("graph.batch", "graph.as_dag", "graph.tudataset", "graph.readers.read_graph", "graph.multitree.reach", "SpecError")
HEAVY_NAMES = ("compile", "load", "nn.ScanLayer", "models.__path__")


def test_names_that_messages_and_documents_use_exist_after_one_import() -> None:
    """In a process that has imported nothing else; graphs are made without JAX."""
    lines = ["import sys, stmlang", *(f"stmlang.{name}" for name in NAMES), "assert 'jax' not in sys.modules"]
    lines += [*(f"stmlang.{name}" for name in HEAVY_NAMES), "assert set(dir(stmlang)) >= {'graph', 'models', 'nn'}"]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
