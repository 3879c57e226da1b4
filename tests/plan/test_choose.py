"""The choice, its reasons, and its refusals."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stmlang.cost.lookup import target_of
from stmlang.cost.problem import Problem
from stmlang.cost.target import CPU, H100, TARGETS
from stmlang.plan import explain_json, explain_text, make_plan, plan_from_json, plan_json
from stmlang.plan.choose import is_guess
from stmlang.source.diagnostic import SpecError
from tests.plan.scans import diamond, grid, problem, scan


def refusal(call) -> tuple[str, str]:
    with pytest.raises(SpecError) as caught:
        call()
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.code, " ".join([diagnostic.message, *diagnostic.notes, diagnostic.help or ""])


@pytest.mark.parametrize("target", list(TARGETS.values()), ids=lambda target: target.name)
@pytest.mark.parametrize("topology", [grid(1), grid(0), grid(129), grid(14, 14), grid(3, 4, 5), diamond()])
def test_a_plan_for_every_target_survives_storage(target, topology):
    plan = make_plan(problem(topology, directions=2), target)
    known = [entry for entry in plan.ranked if not is_guess(entry.estimate.candidate, target)]
    assert known[0].estimate == plan.chosen
    assert plan_from_json(plan_json(plan)) == plan
    assert plan_json(plan) == plan_json(make_plan(problem(topology, directions=2), target))
    assert json.loads(explain_json(plan, {"stability": "proved P"}))["facts"] == {"stability": "proved P"}
    assert explain_text(plan, "facts\n  stability: proved P\n").endswith("\n")


def test_ranking_is_by_time_with_reasons():
    plan = make_plan(problem(grid(64, 64), directions=4), H100)
    times = [entry.estimate.seconds for entry in plan.ranked if entry.fits]
    assert times == sorted(times)
    assert [entry.why == "" for entry in plan.ranked] == [True] + [False] * (len(plan.ranked) - 1)
    assert all("slower" in entry.why or "fit" in entry.why for entry in plan.ranked[1:])


def test_sequential_steps_are_named_as_the_reason():
    plan = make_plan(problem(grid(1024)), H100)
    (recurrent,) = [entry for entry in plan.ranked if entry.estimate.candidate.strategy == "recurrent"]
    assert "sequential steps cost" in recurrent.why


def test_long_chains_are_not_evaluated_quadratically():
    plan = make_plan(problem(grid(65_536), key=64, value=64), H100)
    assert plan.strategy == "linear"
    assert 16 <= plan.config["chunk"] <= 1024


def test_ties_go_to_the_first_in_the_list():
    endless = dict.fromkeys(("vector", "bandwidth"), float("inf"))
    nothing = dict.fromkeys(("step_overhead", "op_overhead", "product_overhead"), 0.0)
    free = replace(CPU, matmul=dict.fromkeys(CPU.matmul, float("inf")), **endless, **nothing)
    plan = make_plan(problem(grid(8, 8)), free)
    assert plan.strategy == "recurrent"
    assert "later in the list" in plan.ranked[1].why


def test_memory_limits_move_the_choice():
    free = make_plan(problem(grid(32, 32), mode="inference", batch=64), CPU)
    needs = {entry.estimate.candidate.label: entry.estimate.memory for entry in free.ranked}
    least = min(needs.values())
    tight = make_plan(problem(grid(32, 32), mode="inference", batch=64, memory_limit=least), CPU)
    assert tight.chosen.memory == least
    assert all("does not fit" in entry.why for entry in tight.ranked if not entry.fits)


def test_nothing_fits():
    code, text = refusal(lambda: make_plan(problem(grid(32, 32), memory_limit=1000), CPU))
    assert code == "STM5005"
    assert "1 kB" in text
    least = min(entry.estimate.memory for entry in make_plan(problem(grid(32, 32)), replace(CPU, memory=10**15)).ranked)
    assert f"{least / 1e6:.2f} MB" in text or f"{least / 1e6:.1f} MB" in text


def test_training_needs_more_than_inference():
    training, inference = (make_plan(problem(grid(14, 14), mode=mode), CPU) for mode in ("training", "inference"))
    assert training.chosen.seconds > inference.chosen.seconds
    assert training.chosen.forward_seconds < training.chosen.seconds


@pytest.mark.parametrize("name", ["recurrent", "parallel", "chunkwise", "dense"])
def test_forcing_a_strategy(name):
    plan = make_plan(problem(grid(14, 14)), CPU, strategy=name)
    assert plan.strategy == name
    assert plan.forced
    faster = [entry for entry in plan.ranked if entry.estimate.seconds < plan.chosen.seconds]
    assert all(entry.why == f"`{name}` was asked for" for entry in faster)


def test_forcing_settings_that_were_not_proposed():
    plan = make_plan(problem(grid(14, 14)), CPU, strategy="chunkwise", settings={"tile": (5, 3)})
    assert plan.config == {"tile": (5, 3)}
    assert plan_from_json(plan_json(plan)) == plan
    assert "chunkwise tile=5x3" in explain_text(plan)


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (lambda: make_plan(problem(grid(8)), CPU, strategy="paralel"), "STM5006", "did you mean `parallel`"),
        (lambda: make_plan(problem(grid(8)), CPU, strategy="magic"), "STM5006", "choose one of recurrent, parallel"),
        (lambda: make_plan(problem(grid(8), transition=("key",)), CPU, strategy="parallel"), "STM5007", "(key)"),
        (lambda: make_plan(problem(grid(64, 64)), CPU, strategy="dense"), "STM5007", "8,320 edges"),
        (
            lambda: make_plan(problem(grid(64, 64)), CPU, strategy="dense", settings={}),
            "STM5007",
            "8,320 edges",
        ),
        (
            lambda: make_plan(problem(grid(8)), CPU, strategy="parallel", settings={"tile": (2,)}),
            "STM5003",
            "no setting `tile`",
        ),
        (lambda: make_plan(problem(grid(8)), CPU, strategy="chunkwise", settings={"tile": (2, 2)}), "STM5003", "1 side"),
        (lambda: make_plan(problem(grid(8)), CPU, settings={"tile": (2, 2)}), "STM5003", "without a strategy"),
        (lambda: target_of("tpu"), "STM5009", "h100"),
        (lambda: problem(grid(8), dtype="float16"), "STM5010", "bfloat16"),
        (lambda: problem(grid(8), mode="both"), "STM5010", "inference"),
        (lambda: problem(grid(8), batch=0), "STM5010", "batch"),
        (lambda: problem(grid(8), memory_limit=-1), "STM5010", "memory"),
        (lambda: problem(grid(None, 3, None)), "STM5001", "--set axis0=N --set axis2=N"),
        (lambda: problem(grid(60_000, 60_000)), "STM3303", "nodes"),
        (lambda: problem(grid(40_000, 40_000)), "STM3303", "edges"),
        (lambda: problem(grid(25_000, 25_000)), "STM3303", "line edges"),
        (lambda: plan_from_json("{}"), "STM5008", "schema"),
        (lambda: plan_from_json("[1, 2"), "STM5008", "stored plan"),
        (lambda: plan_from_json('{"schema": 99}'), "STM5008", "schema 99"),
    ],
)
def test_refusals(call, code, words):
    found, text = refusal(call)
    assert found == code
    assert words in text


def test_every_code_is_in_the_table():
    from stmlang.source.codes.lowering import LOWERING

    assert {"STM5001", "STM5003", "STM5004", "STM5005", "STM5006", "STM5007", "STM5008", "STM5009", "STM5010"} <= set(LOWERING)


def test_damaged_plans_are_refused():
    text = plan_json(make_plan(problem(grid(8)), CPU))
    for damage in (('"chosen": 0', '"chosen": 99'), ('"nodes"', '"knots"'), ('"flops"', '"flips"')):
        assert damage[0] in text
        assert refusal(lambda damage=damage: plan_from_json(text.replace(*damage)))[0] == "STM5008"


def test_explanation_shows_every_candidate():
    plan = make_plan(problem(grid(14, 14), directions=4), CPU)
    text = explain_text(plan)
    for entry in plan.ranked:
        assert entry.estimate.candidate.label in text
    assert "196 nodes (14 x 14)" in text
    assert "chosen" in text
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_explanation_says_what_cannot_be_used():
    text = explain_text(make_plan(problem(grid(8), transition=("key", "key'")), CPU))
    assert "cannot be used" in text
    assert "dense: it needs one number per head" in text


def test_the_graph_may_be_given_or_built():
    from stmlang.graph.topology import dag_of

    given = scan(diamond())
    assert Problem.of(given, None).counts == Problem.of(given, dag_of(given.topology)).counts
    square = scan(grid(5, 3))
    assert Problem.of(square, None).counts == Problem.of(square, dag_of(square.topology)).counts
