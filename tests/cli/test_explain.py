"""`stmlang explain`."""

from __future__ import annotations

import json
import re

import pytest

from stmlang.check import library, library_specs, load
from stmlang.cli.starters import SIZES, starter
from stmlang.scan.sizes import unbound
from stmlang.scan.topology import Runtime
from stmlang.strategies.registry import strategies
from tests.cli.command import run_process
from tests.helpers.work import peak_bytes

SIZED = ["--set", "rows=6", "--set", "cols=5"]


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "image.stm"
    path.write_text(starter("image", "image"))
    return path


@pytest.mark.parametrize("kind", SIZES)
def test_facts_and_plan_of_every_starter(stmlang, tmp_path, kind):
    path = tmp_path / "demo.stm"
    path.write_text(starter(kind, "demo"))
    sizes = [word for name, size in SIZES[kind].items() for word in ("--set", f"{name}={size}")]
    result = stmlang("explain", path, "--target", "h100", *sizes)
    assert result.status == 0, result.err
    shown = ("scan demo:", "target h100", "plan: ", "why it lost", "recurrent", "where ")
    for words in ("stability:", *(("at run time",) if kind == "graphs" else shown)):
        assert words in result.out


def test_json(stmlang, image):
    result = stmlang("explain", image, *SIZED, "--target", "h100", "--json")
    assert result.status == 0
    found = json.loads(result.out)
    assert found["target"]["name"] == "h100"
    assert found["circumstances"]["axes"] == [6, 5]
    assert found["candidates"][found["chosen"]]["strategy"] == found["strategy"]
    assert found["facts"]
    for entry in found["candidates"]:
        assert entry["why"] or entry["label"] == found["candidates"][found["chosen"]]["label"]
        assert {"flops", "bytes", "steps", "memory", "op_count", "seconds"} <= set(entry)


def test_planning_options(stmlang, image):
    def explain(*options: str) -> dict:
        return json.loads(stmlang("explain", image, *SIZED, "--target", "cpu", "--json", *options).out)

    assert explain("--strategy", "recurrent")["strategy"] == "recurrent"
    assert explain("--mode", "inference")["circumstances"]["mode"] == "inference"
    assert explain("--batch", "7")["circumstances"]["batch"] == 7
    assert explain("--memory-limit", "1GB")["circumstances"]["memory_limit"] == 10**9
    assert explain("--dtype", "bfloat16")["circumstances"]["dtype"] == "bfloat16"


def test_a_batch_that_vmap_maps_is_planned_for_on_its_own(stmlang, image):
    plain, seven = (stmlang("explain", image, *SIZED, "--target", "cpu", *options).out for options in ([], ["--batch", "7"]))
    assert "`--batch N`" in plain
    assert "vmap" not in seven


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([], "STM5001", "--set rows=N --set cols=N"),
        (["--set", "rows=6"], "STM5001", "--set cols=N"),
        ([*SIZED, "--strategy", "magic"], "STM5006", "recurrent"),
        ([*SIZED, "--memory-limit", "10kB"], "STM5005", "needs at least"),
    ],
)
def test_what_cannot_be_planned(stmlang, image, options, code, words):
    result = stmlang("explain", image, "--target", "cpu", *options)
    assert result.status == 1
    assert code in result.err
    assert words in result.err
    as_json = stmlang("explain", image, "--target", "cpu", "--json", *options)
    assert json.loads(as_json.out)["diagnostics"][0]["code"] == code


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("tree", "equation transition[out, in]"),
        ("scan", "transition[out, in] = "),
        ("facts", "stability: proved P"),
        ("plan", "why it lost"),
        ("jaxpr", "lambda"),
        ("stablehlo", "stablehlo."),
    ],
)
def test_stages(stmlang, image, stage, words):
    result = stmlang("explain", image, *SIZED, "--target", "cpu", "--emit", stage)
    assert result.status == 0, result.err
    assert words in result.out
    assert result.out.endswith("\n")
    as_json = json.loads(stmlang("explain", image, *SIZED, "--target", "cpu", "--emit", stage, "--json").out)
    assert as_json


def test_early_stages_need_no_sizes(stmlang, image):
    for stage in ("tree", "scan", "facts"):
        assert stmlang("explain", image, "--emit", stage).status == 0


def test_standard_input(stmlang):
    text = starter("chain", "chain").encode()
    result = stmlang("explain", "-", "--set", "time=9", "--target", "cpu", stdin=text)
    assert result.status == 0, result.err
    assert "scan chain: 9 nodes" in result.out
    assert stmlang("explain", "-", "--set", "time=9", "--emit", "jaxpr", stdin=text).status == 0


def test_wrong_specs_are_rendered(stmlang, tmp_path):
    bad = tmp_path / "bad.stm"
    bad.write_text("scan a on chain(t) { source = soruce }\n")
    for stage in ("scan", "facts", "plan", "jaxpr"):
        result = stmlang("explain", bad, "--emit", stage)
        assert result.status == 1
        assert "error[STM" in result.err


def test_planning_needs_no_jax(image):
    code = """
import sys
from stmlang.cli.main import main
status = main(sys.argv[1:])
sys.exit(3 if {"jax", "jaxlib", "equinox"} & set(sys.modules) else status)
"""
    result = run_process("explain", image, *SIZED, "--target", "h100", code=code)
    assert result.returncode == 0, result.stderr


NOTED = {"plstm/graph_d": "STM4002", "grid/gridlstm": "STM4001", "grid/mdlstm": "STM4001"}
"""What asks for a mode that only leaving out paths, or dividing, can give."""


@pytest.mark.parametrize("name", library_specs())
def test_the_library_is_right_formatted_and_planned(stmlang, name):
    checked = stmlang("check", f"std:{name}")
    assert checked.status == 0, checked.err
    assert checked.err.startswith(f"note[{NOTED[name]}]" if name in NOTED else "")
    assert bool(checked.err) == (name in NOTED)
    assert stmlang("fmt", "--check", library() / f"{name}.stm").status == 0
    if "(" not in checked.out:  # definitions only
        return
    scan = load(f"std:{name}")
    sizes = [word for axis in unbound(scan) for word in ("--set", f"{axis}=4")]
    result = stmlang("explain", f"std:{name}", "--target", "h100", "--json", *sizes)
    assert result.status == 0, result.out
    found = json.loads(result.out)
    assert found["at_run_time"] if isinstance(scan.topology, Runtime) else found["strategy"]


AT_RUN_TIME = "scan s on dag(nodes <= {}, edges <= 4000) {{ source = sigmoid(linear(x)); mark = 1; transition = 0.5 }}"


def test_graphs_that_come_at_run_time(stmlang, tmp_path):
    """Facts, what is chosen by size, and where the plan of a batch comes from; what is asked for by name is refused as ever."""
    path = tmp_path / "s.stm"
    path.write_text(AT_RUN_TIME.format(700))
    result = stmlang("explain", path, "--target", "cpu")
    assert result.status == 0, result.err
    assert "stability: inserted P" in result.out
    table = [line.split() for line in result.out.splitlines() if "recurrent" in line or "packed" in line or "nodes " in line]
    rows = [(words[0], words[1], words[-1]) for words in table if words[0].isdigit()]
    assert [row[:2] for row in rows] == [("64", "16"), ("64", "64"), ("64", "256"), ("23", "700")]
    assert rows[0][2].startswith("packed")
    assert {row[2] for row in rows} <= {strategy.name for strategy in strategies() if strategy.offers.at_run_time}
    assert ".at(stmlang.graph.batch(graphs)).explain()" in result.out
    plan = stmlang("explain", path, "--target", "cpu", "--emit", "plan").out
    assert plan.startswith("plan: the graphs come at run time")
    forced = json.loads(stmlang("explain", path, "--target", "cpu", "--strategy", "recurrent", "--json").out)
    assert {entry["strategy"] for entry in forced["at_run_time"]} == {"recurrent"}
    assert forced["facts"]
    assert "STM5007" in stmlang("explain", path, "--target", "cpu", "--strategy", "dense").err
    assert "STM3301" in stmlang("explain", path, "--emit", "jaxpr").err


@pytest.mark.parametrize("bound", [1, 2**31 - 1], ids=["one", "most"])
def test_any_bound_of_graphs_is_explained(stmlang, tmp_path, bound):
    path = tmp_path / "s.stm"
    path.write_text(AT_RUN_TIME.format(bound))
    assert stmlang("explain", path, "--target", "cpu").status == 0


def test_huge_grids_are_explained_without_building_them(stmlang):
    words = ("explain", "std:plstm/image_p", "--set", "rows=20000", "--set", "cols=20000", "--target", "h100")
    assert peak_bytes(lambda: stmlang(*words)) < 50e6
    result = stmlang(*words)
    assert result.status == 1
    assert "STM5005" in result.err
    assert "needs at least" in result.err


@pytest.mark.parametrize("spec", ["image", "graphs"])
def test_a_page(stmlang, tmp_path, spec):
    path, page = tmp_path / "demo.stm", tmp_path / "demo.html"
    path.write_text(starter(spec, "demo"))
    result = stmlang("explain", path, *(SIZED if spec == "image" else ()), "--target", "h100", "--html", page)
    assert result.status == 0, result.err
    text = page.read_text()
    for words in ("<svg", "stability: proved P", "plan: ", "What is proved", "</html>"):
        assert words in text
    assert not re.search(r'(?:src|href)="http', text), "it needs no network"
    for wrong in (["--json"], ["--emit", "scan"]):
        assert stmlang("explain", path, "--html", page, *wrong).status == 2
    assert stmlang("explain", "STM2023", "--html", page).status == 2
    assert "STM5101" in stmlang("explain", path, *SIZED, "--html", path).err
