"""A new strategy is its folder and a line in the registry: everybody who runs over the strategies finds it by that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.cli.main import main
from stmlang.fuzz.fuzzer import Fuzzer, Source, Task, generated, strategy_names
from stmlang.fuzz.jobs import Evaluate, answer
from stmlang.fuzz.trial import Trial, ways
from stmlang.plan.store import plan_from_json, plan_json
from stmlang.strategies.registry import registered
from tests.equivalence.test_candidates import check
from tests.helpers.calls import compiled
from tests.helpers.cases import QUICK
from tests.helpers.compilation import quick_compilation
from tests.public.chains import every_way
from tests.strategies.toy import TOY, Toy

__all__ = ["quick_compilation"]

TEXT = """
scan s(heads = 1, key = 3, value = 2) on chain(t = 5) {
    directions both
    source = sigmoid(linear(x))
    transition = 0.5 * tanh(linear(x))
    mark = param(0.5)
}
"""


@pytest.fixture(autouse=True)
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path / "cache"))
    with registered(TOY):
        yield


def test_it_is_planned_and_explained() -> None:
    op: Any = stmlang.compile(TEXT)
    assert op.plan.chosen.candidate.label == "toy unroll=1"
    assert op.plan.config == {"unroll": 1}
    explained = op.explain()
    assert "> toy unroll=1" in " ".join(explained.split())
    assert "toy loop" in explained
    refused: Any = stmlang.compile("std:plstm/image_p", rows=2, cols=3)
    assert "toy: it needs a chain" in refused.explain()
    assert plan_json(plan_from_json(plan_json(op.plan))) == plan_json(op.plan)


def test_the_command_line_explains_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.stm"
    path.write_text(TEXT)
    assert main(["explain", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["strategy"] == "toy"


@pytest.mark.parametrize(
    ("config", "words"),
    [({"tile": (2,)}, "its setting is `unroll`"), ({"unroll": (2,)}, "its setting is `unroll`"), ({"unroll": 0}, "not 0")],
)
def test_it_is_asked_for_by_name(config: Any, words: str) -> None:
    for asked in ({"unroll": 9}, Toy(9)):
        op: Any = stmlang.compile(TEXT, strategy="toy", config=asked)
        assert op.plan.settings == Toy(5)
        assert op.plan.forced
    with pytest.raises(stmlang.SpecError, match="STM5003") as error:
        stmlang.compile(TEXT, strategy="toy", config=config)
    assert words in str(error.value)
    with pytest.raises(stmlang.SpecError, match="STM5007"):
        stmlang.compile("std:plstm/image_p", rows=2, cols=3, strategy="toy")


@pytest.mark.parametrize("name", ["chain 2", "chain 17"])
def test_it_is_compared_with_the_recurrence(name: str) -> None:
    """In value, final states and gradient, with the settings that it declares to be odd."""
    case = next(case for case in QUICK if case.name == name)
    own = [way for way in ways(compiled(case)) if way.strategy == "toy"]
    assert [way.config for way in own] == [{"unroll": 1}, {"unroll": int(name.split()[1])}]
    for way in own:
        check(case, (way.strategy, way.config), "float64", 1e-10)


def test_it_is_tuned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.stm"
    path.write_text(TEXT)
    assert main(["tune", str(path), "--budget", "0.01s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["predicted"] == told["winner"] == "toy unroll=1"
    assert [entry["fault"] for entry in told["tried"]] == [""]
    plan = stmlang.compile(TEXT, target="cpu").plan
    assert plan.tuning.used
    assert plan.strategy == "toy"


def test_the_public_cases_take_it() -> None:
    """Those that are put to every strategy take it with the settings that it calls odd."""
    assert set(every_way(TEXT, "float32", 2, ("toy",))) == {"toy"}


class Here:
    """Does the fuzzer's jobs in this process, which knows the strategy."""

    def ask(self, job: Any) -> Any:
        return answer(job)


def test_it_is_fuzzed() -> None:
    assert "toy" in strategy_names()
    task = Task(Source(generated().trials), 0, ("toy",), ("value", "causality"))
    fuzzer = Fuzzer(task, None, 3, None)
    examples = list(fuzzer.alone(Here()))
    assert {example.job.way.strategy for example in examples} == {"toy"}
    assert not fuzzer.kept


@pytest.mark.parametrize("name", ["value", "grad", "vmap", "transpose", "chunk size and depth", "causality"])
def test_checks_pass(name: str) -> None:
    trial = Trial(TEXT, "toy", "random", 0)
    own = [way for way in ways(trial.compiled(None, "float64")) if way.strategy == "toy"]
    kinds = [answer(Evaluate(name, trial, way)).kind for way in own]
    assert kinds == ["skipped" if name == "transpose" else "passed"] * 2


def test_it_is_stored(tmp_path: Path) -> None:
    op: Any = stmlang.compile(TEXT)
    op.export(tmp_path / "op.stmx", batch=None)
    loaded, arguments = stmlang.load(tmp_path / "op.stmx"), op.example()
    np.testing.assert_allclose(loaded(*arguments), op(*arguments), atol=1e-6)
    assert op.plan.strategy == "toy"


def test_it_is_run_and_differentiated() -> None:
    op: Any = stmlang.compile(TEXT, mode="inference")
    other: Any = stmlang.compile(TEXT, strategy="recurrent")
    q, k, v, gates = op.example()

    def loss(op: Any, q: jax.Array) -> jax.Array:
        return jnp.sum(op(q, k, v, gates) ** 2)

    for own, expected in zip(*(jax.value_and_grad(loss, argnums=1)(op, q) for op in (op, other)), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-6)
