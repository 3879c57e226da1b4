"""The records of coefficients: complete, typed, and what a plan depends on; and no such number anywhere else."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

import stmlang
from stmlang.check import load
from stmlang.cost import coefficients
from stmlang.cost.candidate import Candidate
from stmlang.cost.coefficients import PATH, Coefficients, Weights, read_records, write_records
from stmlang.cost.problem import Problem
from stmlang.cost.target import CPU, H100, TARGETS, Target
from stmlang.cost.work import SHARED, spectral_stage
from stmlang.facts import analyse
from stmlang.graph.topology import dag_of
from stmlang.plan import explain_json, explain_text, make_plan, plan_from_json, plan_json
from stmlang.scan.expression import SQUARINGS
from stmlang.strategies.base import proposed
from stmlang.strategies.registry import strategies
from tests.plan.scans import grid, problem

ROOM = Path(stmlang.__file__).parent
COSTS = [
    *sorted((ROOM / "strategies").glob("*/cost.py")),
    *(ROOM / "cost" / f"{name}.py" for name in ("chains", "on_chip", "packed", "roofline", "runs", "sweeps", "tiles", "work")),
]
LARGEST_NUMBER = 8
"""Larger whole numbers in a formula are taken for something that was measured."""
SHAPES = {
    "ALWAYS_TRIED",
    "BLOCKS",
    "CHUNKS",
    "DEEPEST",
    "ON_CHIP",
    "STAGES",
    "TILE",
    "STRETCHES",
    "LARGEST_BLOCK",
    "LARGEST_STEP",
    "LONGEST",
    "MANY_SLABS",
    "MOST_CARRIERS",
    "MOST_EDGES",
    "MOST_NODES",
    "MOST_PAIRS",
    "SHORTEST_TRIANGLE",
    "SIDES",
    "SMALL",
    "SMALL_PRODUCT",
    "STEP_BYTES",
    "TABLES",
    "TARGETS",
}
"""Names of numbers that are no costs: settings that are proposed, what can be numbered, how a program is cut."""


def library(name: str, **sizes: int) -> Problem:
    facts = analyse(load(f"std:{name}", sizes))
    return Problem.of(facts.scan, None, facts=facts)


def graph(name: str) -> Problem:
    scan = load(f"std:{name}")
    dag = dag_of(scan.topology)
    facts = analyse(scan, dag)
    return Problem.of(facts.scan, dag, facts=facts)


PROBLEMS = {
    "chain": lambda: library("plstm/chain", time=1000),
    "short chain": lambda: library("plstm/chain", time=5),
    "matrices": lambda: library("chain/deltanet", time=256),
    "decays by key": lambda: library("chain/gla", time=256),
    "one turn": lambda: library("plstm/image_d", rows=24, cols=20),
    "large": lambda: library("plstm/image_p", rows=128, cols=128),
    "constant": lambda: library("plstm/image_constant", rows=20, cols=20),
    "volume": lambda: library("plstm/volume_p", depth=6, rows=6, cols=6),
    "graph": lambda: graph("plstm/dag_p"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_stage_is_in_the_record(name: str) -> None:
    """Of a strategy that was fitted: a stage that was not would count once, whatever it takes. One that is new is in no run."""
    record, given = CPU.coefficients, PROBLEMS[name]()
    assert len(record.stages) > len(strategies()) // 2
    for strategy in (strategy for strategy in strategies() if strategy.name in record.stages):
        for found in proposed(strategy, given, CPU):
            if isinstance(found, Candidate):
                known = {**record.stages[SHARED], **record.stages[found.strategy]}
                assert {stage.name for stage in (*found.forward, *found.backward)} <= set(known) | {"spectral norms"}
                for mode in coefficients.MODES:
                    assert set(found.terms) <= set(record.instructions[found.strategy][mode])


def test_the_file_is_what_is_written(tmp_path: Path) -> None:
    records = read_records()
    write_records(records, tmp_path / "written.json")
    assert (tmp_path / "written.json").read_bytes() == PATH.read_bytes()
    assert read_records(tmp_path / "written.json") == records


@pytest.mark.parametrize(
    "damage",
    [
        lambda values: values.update(schema=0),
        lambda values: values.pop("cuda"),
        lambda values: values.update(tpu=values["cuda"]),
        lambda values: values["cpu"].pop("cache"),
        lambda values: values["cpu"]["stages"]["rows"].update(layouts={"traffic": -1.0}),
        lambda values: values["cpu"]["stages"]["rows"].update(layouts={"trafic": 1.0}),
        lambda values: values["cpu"]["stages"]["rows"].update(layouts={"traffic": float("nan")}),
        lambda values: values["cpu"]["instructions"]["rows"].pop("training"),
    ],
)
def test_other_files_are_refused(damage, tmp_path: Path) -> None:
    values = json.loads(PATH.read_bytes())
    damage(values)
    (tmp_path / "damaged.json").write_text(json.dumps(values))
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_records(tmp_path / "damaged.json")


def planted(target: Target, strategy: str, stage: str, **weights: float) -> Target:
    record = target.coefficients
    stages = {**record.stages[strategy], stage: replace(record.weights(strategy, stage), **weights)}
    return replace(target, coefficients=replace(record, stages={**record.stages, strategy: stages}))


def test_a_wrong_coefficient_changes_the_choice() -> None:
    given = library("plstm/image_d", rows=24, cols=24)
    assert make_plan(given, CPU).strategy == "separable"
    assert make_plan(given, planted(CPU, "separable", "tables of decays", traffic=1e5)).strategy != "separable"


def test_weights_multiply_what_is_counted() -> None:
    given = library("plstm/chain", time=1000)
    plain, heavy = (
        make_plan(given, target, strategy="linear", settings={"chunk": 64}).chosen
        for target in (CPU, planted(CPU, "linear", "chunks", steps=2 * CPU.coefficients.weights("linear", "chunks").steps))
    )
    steps = next(time.steps for time in plain.times if time.stage.name == "chunks")
    assert steps > 0
    assert heavy.seconds - plain.seconds == pytest.approx(steps)


def test_arrays_beyond_the_cache_are_counted_apart() -> None:
    given = library("plstm/image_d", rows=64, cols=64)
    for cache, spilled in ((1, True), (2**60, False)):
        record = replace(CPU.coefficients, cache=cache)
        plan = make_plan(given, replace(CPU, coefficients=record), strategy="separable", settings={"rows": 64})
        assert any(stage.spilled for stage in plan.chosen.candidate.forward) == spilled


@pytest.mark.parametrize("target", [target for target in TARGETS.values() if target.platform == "cuda"], ids=str)
def test_what_was_not_measured_is_marked(target: Target) -> None:
    plan = make_plan(problem(grid(14, 14)), target)
    assert not target.coefficients.measured
    for shown in (plan, plan_from_json(plan_json(plan))):
        assert "costs not measured" in explain_text(shown)
        assert json.loads(explain_json(shown))["target"]["costs"]["measured"] is False


def test_what_was_measured_is_not() -> None:
    plan = make_plan(problem(grid(14, 14)), CPU)
    assert "not measured" not in explain_text(plan)
    assert json.loads(explain_json(plan))["target"]["costs"]["measured"] is True


def test_a_strategy_that_is_new_counts_once() -> None:
    record = Coefficients(measured=True, origin="", cache=1, fresh=1)
    assert record.weights("toy", "play") == Weights()
    assert record.instruction_count("toy", "training", {"once": 1, "levels": 3}) == 4
    assert make_plan(problem(grid(14, 14)), replace(CPU, coefficients=record)).chosen.seconds > 0


NORMED = """scan s(heads = 2, key = {key}, value = 4) on chain(time = 50) {{
    transition[key, key'] = given()
    source = given(); mark = given()
    stabilize D
}}"""


def test_norms_of_matrices_cost_their_products() -> None:
    """The stabilizer divides a matrix by its norm, which takes many more products than the recurrence itself."""

    def norms(key: int) -> int:
        facts = analyse(load(NORMED.format(key=key)))
        given = Problem.of(facts.scan, None, facts=facts)
        found = spectral_stage(given)
        assert found is not None
        assert found.products == (SQUARINGS + 2) * 2 * 50
        plan = make_plan(given, H100)
        assert "spectral norms" in explain_text(plan)
        assert "spectral norms, adjoint" in {stage.name for stage in plan.chosen.candidate.backward}
        return found.flops

    assert norms(16) == 8 * norms(8) > 0
    assert spectral_stage(library("plstm/chain", time=50)) is None


@pytest.mark.parametrize("path", COSTS, ids=lambda path: "/".join(path.parts[-2:]))
def test_costs_are_not_guessed(path: Path) -> None:
    """Formulas count what there is to do. What one of it takes stands in the record, where `benchmarks.fit` writes it."""
    guessed: list[str] = []
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        names = {target.id for target in getattr(statement, "targets", ()) if isinstance(target, ast.Name)}
        if names and names <= SHAPES:
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                whole = float(node.value).is_integer() and 0 <= node.value <= LARGEST_NUMBER
                if not whole or (isinstance(node.value, float) and node.value > 2):
                    guessed.append(f"line {node.lineno}: {node.value}")
    assert guessed == []
