"""The study of circuits: labels, sub-circuits and folds; runs that are stopped; the page."""

from __future__ import annotations

import dataclasses
import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from rich.console import Console

from stmlang.experiments.circuits import study
from stmlang.experiments.circuits.__main__ import main, parse
from stmlang.experiments.circuits.aig import AIG, aig_of
from stmlang.experiments.circuits.cones import Cone, cone, cones, form
from stmlang.experiments.circuits.data import SAME, Cones, folds, graph_of, load, paths
from stmlang.experiments.circuits.probability import WORDS, as_if_independent, every_pattern, probabilities
from stmlang.experiments.circuits.report import Outcome, table
from stmlang.experiments.circuits.settings import BANDS, MODELS, TRAINING, Settings
from stmlang.experiments.circuits.task import Errors, Probability
from stmlang.experiments.folds.kept import Result
from stmlang.experiments.training.checkpoints import Checkpoints
from stmlang.experiments.training.errors import TrainingError
from stmlang.graph.levels import node_levels
from stmlang.graph.readers import read_netlist
from tests.graph.files import data as data_file

QUIET = Console(quiet=True)
TINY = dataclasses.replace(TRAINING, epochs=2, batch=4, checkpoint=0.0)
SMALL = Settings(
    Path("circuits"), TINY, models=("gine",), cones=3, least=4, most=24, folds=2, dim=4, heads=1, width=2, pairs=1, depth=2
)


def at(out: Path, settings: Settings = SMALL, **changes: Any) -> Settings:
    """The same in a folder, with other settings of training where they are given."""
    return dataclasses.replace(settings, training=dataclasses.replace(settings.training, out=out, **changes))


FUNCTIONS: dict[str, Any] = {
    "and": all,
    "nand": lambda values: not all(values),
    "or": any,
    "nor": lambda values: not any(values),
    "xor": lambda values: sum(values) % 2 == 1,
    "xnor": lambda values: sum(values) % 2 == 0,
    "not": lambda values: not values[0],
    "buf": lambda values: values[0],
}


def by_trial(text: str) -> dict[str, float]:
    """How often each signal of a netlist is on, every pattern of its inputs tried."""
    inputs = re.findall(r"^INPUT\((\w+)\)", text, re.M)
    gates = [
        (name, kind.lower(), read.replace(" ", "").split(","))
        for name, kind, read in re.findall(r"(\w+) = (\w+)\((.*)\)", text)
    ]
    count = dict.fromkeys([*inputs, *(name for name, _, _ in gates)], 0)
    for pattern in product((False, True), repeat=len(inputs)):
        values = dict(zip(inputs, pattern, strict=True))
        for name, kind, read in gates:
            values[name] = FUNCTIONS[kind]([values[signal] for signal in read])
        for name, value in values.items():
            count[name] += bool(value)
    return {name: ones / 2 ** len(inputs) for name, ones in count.items()}


def circuit(path: Path, text: str) -> AIG:
    path.write_text(text)
    return aig_of(read_netlist(str(path)), path.stem)


def whole(aig: AIG) -> Cone:
    """All of a circuit, node 0 left out."""
    gates = [gate for gate in aig.gates if gate is not None]
    assert all(gate is not None for gate in aig.gates[-len(gates) :])
    return Cone(len(aig.gates) - 1 - len(gates), np.asarray(gates).reshape(-1, 2) - 2)


def random_netlist(seed: int, inputs: int = 6, gates: int = 40) -> str:
    random = np.random.default_rng(seed)
    lines = [f"INPUT(s{node})" for node in range(inputs)]
    for node in range(inputs, inputs + gates):
        kind = ("and", "nand", "or", "nor", "xor", "not")[int(random.integers(6))]
        read = random.choice(np.arange(max(0, node - 8), node), 1 if kind == "not" else 2, replace=False)
        lines.append(f"s{node} = {kind}({', '.join(f's{other}' for other in read)})")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six circuits, of which two are said to be the same."""
    place = tmp_path_factory.mktemp("circuits")
    for seed, name in enumerate(("a", "b", "c", "c499", "c1355", "d")):
        (place / f"{name}.bench").write_text(random_netlist(seed))
    return place


@pytest.fixture(scope="module")
def data(folder: Path) -> Cones:
    return load(dataclasses.replace(SMALL, data=folder))


# --- labels ----------------------------------------------------------------------------------------------------------


def test_labels_of_c17_are_those_of_all_patterns() -> None:
    path = Path(data_file("bench_iscas85/c17.bench"))
    text = path.read_text()
    wanted = by_trial(text)
    aig = aig_of(read_netlist(str(path)), "c17")
    found = probabilities(whole(aig), np.random.default_rng(0))
    # c17 is six NAND gates: node by node the complement of the AND that is left of each.
    np.testing.assert_array_equal(found[:5], 0.5)
    assert sorted(1 - found[5:]) == sorted(wanted[name] for name in re.findall(r"^(\w+) = \w+\(", text, re.M))
    assert len(found) == 11


EVERY_GATE = """INPUT(a)
INPUT(b)
INPUT(c)
INPUT(d)
p = and(a, b, c)
q = NAND(p, d)
r = or(a, d)
s = nor(q, r, b)
t = xor(a, q, s)
u = xnor(t, r)
v = not(u)
w = buf(v)
y = and(w, u)
z = or(w, v, p)
"""


@pytest.mark.parametrize("name", ["p", "q", "r", "s", "t", "u", "v", "w", "z"])
def test_every_gate_of_a_netlist_means_what_it_does(name: str, tmp_path: Path) -> None:
    """Seen through a gate that has it and an input, the fifth, that nothing else reads."""
    text = EVERY_GATE.replace("p = ", "INPUT(e)\np = ", 1) + f"last = and({name}, e)\n"
    given = whole(circuit(tmp_path / "all.bench", text))
    (last,) = np.flatnonzero((given.fanins >> 1 == 4).any(axis=1))
    assert probabilities(given, np.random.default_rng(0))[5 + last] == by_trial(text)["last"]


def test_what_is_constant_makes_no_gate(tmp_path: Path) -> None:
    """A signal and its complement, and AIGER's constants: 6 = 2 and 4, 8 = false and 2, 10 = true and 6, 12 = not 8 and 5."""
    assert circuit(tmp_path / "x.bench", "INPUT(a)\nb = not(a)\nc = and(a, b)\nd = or(c, a)\n").gates == (None, None)
    aiger = circuit(tmp_path / "x.aag", "aag 6 2 0 1 4\n2\n4\n12\n6 2 4\n8 0 2\n10 1 6\n12 9 5\n")
    assert aiger.gates == (None, None, None, (2, 4))


def test_inverters_of_aiger_are_read(tmp_path: Path) -> None:
    aig = circuit(tmp_path / "x.aag", "aag 4 2 0 1 2\n2\n4\n8\n6 3 4\n8 7 2\n")
    assert aig.gates == (None, None, None, (3, 4), (2, 7))
    np.testing.assert_array_equal(probabilities(whole(aig), np.random.default_rng(0)), [0.5, 0.5, 0.25, 0.5])


def test_a_gate_without_meaning_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="circuit x has a gate MUX of 3 signals"):
        circuit(tmp_path / "x.bench", "INPUT(a)\nINPUT(b)\nc = MUX(a, b, a)\n")


@pytest.mark.parametrize("inputs", [1, 3, 6, 7, 9])
def test_every_pattern_occurs_equally_often(inputs: int) -> None:
    bits = (every_pattern(inputs)[:, :, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    numbers = (bits.reshape(inputs, -1) << np.arange(inputs, dtype=np.uint64)[:, None]).sum(axis=0)
    counts = np.bincount(numbers.astype(np.int64), minlength=2**inputs)
    assert set(counts.tolist()) == {max(64 // 2**inputs, 1)}


def test_samples_are_near_and_seeded() -> None:
    """A chain of 20 inputs: `p = (1 - p) / 2`, one after the other, at most five standard errors away, and never all exact."""
    chain = [[0, 2], *([40 + 2 * k + 1, 4 + 2 * k] for k in range(18))]
    given = Cone(20, np.asarray(chain))
    found, again, other = (probabilities(given, np.random.default_rng(seed)) for seed in (0, 0, 1))
    wanted = as_if_independent(given)
    assert 0 < np.abs(found - wanted).max() < 5 * 0.5 / np.sqrt(64 * WORDS)
    np.testing.assert_array_equal(found, again)
    assert (found != other).any()


def test_the_closed_form_is_right_on_trees_and_wrong_where_paths_meet() -> None:
    tree = Cone(4, np.asarray([[0, 3], [5, 6], [9, 10]]))
    np.testing.assert_array_equal(as_if_independent(tree), probabilities(tree, np.random.default_rng(0)))
    met = Cone(2, np.asarray([[0, 2], [0, 4]]))
    np.testing.assert_array_equal(as_if_independent(met), [0.5, 0.5, 0.25, 0.125])
    np.testing.assert_array_equal(probabilities(met, np.random.default_rng(0)), [0.5, 0.5, 0.25, 0.25])


# --- sub-circuits ----------------------------------------------------------------------------------------------------


def test_a_cone_is_what_lies_nearest_before_a_gate(tmp_path: Path) -> None:
    """Whatever is cut off counts as an input; with room for all, none is."""
    aig = circuit(tmp_path / "x.bench", random_netlist(7))
    root = len(aig.gates) - 1
    sizes = [cone(aig, root, most).size for most in (3, 6, 12, 24, 1000)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 3
    assert all(size <= most for size, most in zip(sizes, (3, 6, 12, 24), strict=False))
    full = cone(aig, root, 1000)
    assert full.inputs <= 6
    for most in (6, 24, 1000):
        found = cone(aig, root, most)
        dag = graph_of(found)
        assert (dag.tail < dag.head).all()
        np.testing.assert_array_equal(node_levels(dag), found.levels)
        assert (np.bincount(dag.head, minlength=found.size)[found.inputs :] == 2).all()
        read = np.bincount(dag.tail, minlength=found.size)
        assert np.flatnonzero(read == 0).tolist() == [found.size - 1]
    assert probabilities(full, np.random.default_rng(0))[-1] == probabilities(whole(aig), np.random.default_rng(0))[-1]


def test_a_form_is_that_of_a_structure_and_not_of_its_numbers() -> None:
    given = Cone(3, np.asarray([[0, 3], [2, 5], [7, 8]]))
    renumbered = Cone(3, np.asarray([[3, 0], [4, 1], [9, 6]]))
    other = Cone(3, np.asarray([[0, 3], [2, 5], [6, 9]]))
    assert form(given) == form(renumbered)
    assert form(given) != form(other)
    shared = Cone(2, np.asarray([[0, 2], [0, 5]])), Cone(3, np.asarray([[0, 2], [4, 7]]))
    assert form(shared[0]) != form(shared[1])


def test_no_cone_occurs_twice(tmp_path: Path) -> None:
    aig, seen = circuit(tmp_path / "x.bench", random_netlist(3)), set[int]()
    first = list(cones(aig, count=5, least=3, most=20, seen=seen, random=np.random.default_rng(0)))
    rest = list(cones(aig, count=99, least=3, most=20, seen=seen, random=np.random.default_rng(1)))
    forms = [form(found) for found in (*first, *rest)]
    assert len(first) == 5
    assert len(set(forms)) == len(forms)
    assert not list(cones(aig, count=99, least=3, most=20, seen=seen, random=np.random.default_rng(2)))
    assert all(len(found.fanins) >= 3 and found.size <= 20 for found in (*first, *rest))


# --- data and folds --------------------------------------------------------------------------------------------------


def test_data_say_gates_and_inverters(data: Cones) -> None:
    assert set(data.circuits) == {"a", "b", "c", "c499", "c1355", "d"}
    assert np.bincount(data.circuit).max() == 3
    for number in range(len(data)):
        dag, level = data.dags[number], data.level[number]
        np.testing.assert_array_equal(data.nodes[number][:, 1], level > 0)
        assert set(np.unique(data.edges[number])) <= {0.0, 1.0}
        assert len(data.edges[number]) == dag.edge_count == 2 * (level > 0).sum()
        np.testing.assert_array_equal(data.probability[number][level == 0], 0.5)


def test_circuits_are_split_and_never_their_parts(data: Cones) -> None:
    found = folds(data, SMALL)
    tested: list[int] = []
    for fold in found:
        circuits = [set(data.circuit[part].tolist()) for part in (fold.train, fold.validation, fold.test)]
        assert all(not one & other for one, other in ((circuits[0], circuits[1]), (circuits[0], circuits[2]), circuits[1:]))
        assert sorted([*fold.train, *fold.validation, *fold.test]) == list(range(len(data)))
        names = {data.circuits[number] for number in circuits[2]}
        assert ("c499" in names) == ("c1355" in names)
        tested += sorted(circuits[2])
    assert sorted(tested) == list(range(len(data.circuits)))
    assert SAME == {"c1355": "c499"}


def test_few_circuits_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one.bench").write_text(random_netlist(0))
    with pytest.raises(TrainingError, match="holds 1 circuits") as caught:
        load(dataclasses.replace(SMALL, data=tmp_path))
    assert "--data" in caught.value.help


def test_a_circuit_is_read_once(tmp_path: Path) -> None:
    for name in ("z/a.bench", "y/a.bench", "b.AIG", "ctrl.blif"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [str(path.relative_to(tmp_path)) for path in paths(tmp_path)] == ["y/a.bench", "b.AIG"]


# --- the task --------------------------------------------------------------------------------------------------------


def test_gates_count_and_inputs_do_not(data: Cones) -> None:
    split = folds(data, SMALL)[0]
    learner = study.learner("gine", data, [split], SMALL)
    numbers = split.train[:3]
    example = learner.example(numbers)
    gates = sum(int((data.level[number] > 0).sum()) for number in numbers)
    assert example.counts.sum() == gates
    wanted = np.concatenate([data.probability[number][data.level[number] > 0] for number in numbers])
    np.testing.assert_allclose(example.targets[example.counts], wanted)


def test_errors_are_told_apart_by_level() -> None:
    found = Errors.of(np.asarray([0.1, 0.2, 0.3, 0.5]), np.asarray([1, 4, 5, 30]))
    assert found.mean == pytest.approx(0.275)
    assert found.bands[2] is None
    assert [found.bands[band] for band in (0, 1, 3)] == pytest.approx([0.15, 0.3, 0.5])
    assert Errors.measured(found.measures) == found


def test_measures_are_of_their_circuits(data: Cones) -> None:
    """Whatever order the batches have: off by a quarter in validation, by a tenth up to level four of the test, else by a
    fifth."""
    problem, fold = Probability(data), folds(data, SMALL)[1]
    order = np.random.default_rng(0).permutation(np.concatenate([fold.validation, fold.test]))
    answers: list[np.ndarray] = []
    for number in order.tolist():
        off = 0.25 if number in fold.validation else np.where(data.level[number] <= 4, 0.1, 0.2)
        answers.append((data.probability[number] + off)[data.level[number] > 0])
    found = problem.measures(np.concatenate(answers), order, fold)
    assert found["error"] == pytest.approx(0.25, abs=1e-6)
    assert (found["test 1-4"], found["test 5-8"]) == pytest.approx((0.1, 0.2), abs=1e-6)
    assert 0.1 < found["test"] < 0.2


def test_simple_answers(data: Cones) -> None:
    """The mean of the training circuits is worse than the product, which is right next to the inputs."""
    task, fold = Probability(data), folds(data, SMALL)[0]
    mean, product = task.always_the_mean(fold), task.as_if_independent(fold)
    assert 0 < product.mean < mean.mean
    gates = np.concatenate([data.probability[n][data.level[n] > 0] for n in fold.train])
    test = np.concatenate([data.probability[n][data.level[n] > 0] for n in fold.test])
    assert mean.mean == pytest.approx(np.abs(test - gates.mean()).mean())
    one = dataclasses.replace(fold, test=fold.test[:1])
    level = data.level[int(fold.test[0])]
    near = np.abs(data.independent[int(fold.test[0])] - data.probability[int(fold.test[0])])
    assert near[level == 1].max() == 0
    assert task.as_if_independent(one).mean == pytest.approx(near[level > 0].mean())


@pytest.mark.parametrize("dim", [16, 48])
def test_networks_have_the_size_of_plstm(dim: int) -> None:
    settings = Settings(Path(), dim=dim)

    def count(model: Any) -> int:
        leaves = jax.tree.leaves(jax.eval_shape(lambda: study.maker(model, settings)(jax.random.key(0))))
        return sum(leaf.size for leaf in leaves)

    sizes = [count(model) for model in MODELS]
    assert all(abs(size - sizes[0]) < 0.1 * sizes[0] for size in sizes)


# --- runs ------------------------------------------------------------------------------------------------------------


WHAT = ("result.json", "log.jsonl")


def files(out: Path) -> dict[str, bytes]:
    """What equal runs have alike: results and logs of folds, the page and its figure."""
    found = [path for path in sorted(out.rglob("*")) if path.name in WHAT or (path.parent == out and path.is_file())]
    return {str(path.relative_to(out)): path.read_bytes() for path in found if path.name != "circuits.json"}


class Killed(BaseException):
    """As if the process had been killed: nothing is to catch it."""


def test_a_run_that_is_killed_goes_on_to_the_bit(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed behind the second checkpoint of the second fold."""
    settings, keep = dataclasses.replace(SMALL, data=folder, page=tmp_path / "page"), Checkpoints.keep
    whole_run = study.run(at(tmp_path / "whole", settings), QUIET)
    left = whole_run.models["gine"][0].steps + 2

    def stopping(self: Checkpoints, *what: Any) -> None:
        nonlocal left
        keep(self, *what)
        left -= 1
        if left == 0:
            raise Killed

    monkeypatch.setattr(Checkpoints, "keep", stopping)
    with pytest.raises(Killed):
        study.run(at(tmp_path / "parts", settings), QUIET)
    monkeypatch.undo()
    study.run(at(tmp_path / "parts", settings, resume=True), QUIET)
    found = files(tmp_path / "whole")
    assert found == files(tmp_path / "parts")
    names = [f"gine/fold-{fold}/{name}" for fold in (0, 1) for name in ("log.jsonl", "result.json")]
    assert list(found) == ["circuits.md", "circuits.svg", *names]
    assert files(tmp_path / "page") == {name: found[name] for name in ("circuits.md", "circuits.svg")}
    numbers = json.loads((tmp_path / "whole/circuits.json").read_text())
    assert list(numbers["rows"]) == ["mean", "independent", "gine"]
    assert numbers["rows"]["gine"]["folds"][1]["mean"] == whole_run.models["gine"][1].best["test"]
    assert "| GIN with edge features, directed |" in found["circuits.md"].decode()


@pytest.mark.slow
def test_every_model_learns(folder: Path, tmp_path: Path) -> None:
    settings = dataclasses.replace(SMALL, models=MODELS, data=folder, folds=1, dim=16)
    found = study.run(at(tmp_path, settings, epochs=12), QUIET)
    for results in found.models.values():
        assert results[0].training[-1]["loss"] < results[0].training[0]["loss"]


def test_the_table(data: Cones) -> None:
    def result(fold: int, *errors: tuple[float, float]) -> Result[Epoch]:
        curve = [
            {"step": step, "error": error, **Errors(test, (test, None, 2 * test, 3 * test)).measures}
            for step, (error, test) in enumerate(errors)
        ]
        best = min(curve, key=lambda judgement: judgement["error"])
        return Result(fold, 1234, len(curve), int(best["step"]), [], curve, "d")

    simple = {"mean": [Errors(0.2, (0.1, None, 0.3, 0.4)), Errors(0.4, (0.3, 0.2, 0.3, 0.4))]}
    found = Outcome(data, simple, {"plstm": [result(0, (0.3, 0.9), (0.2, 0.1), (0.2, 0.8)), result(1, (0.1, 0.2))]})
    lines = table(found)
    assert lines[0] == "| | parameters | all gates | 1-4 | 5-8 | 9-16 | 17+ |"
    assert lines[2] == "| always the mean |  | 0.3000 ± 0.1000 | 0.2000 | 0.2000 | 0.3000 | 0.4000 |"
    assert lines[3] == "| pLSTM | 1,234 | 0.1500 ± 0.0500 | 0.1500 |  | 0.3000 | 0.4500 |"
    assert len(BANDS) == 4


# --- the command line ------------------------------------------------------------------------------------------------


def test_command_line() -> None:
    assert parse(["--data", "x"]) == Settings(Path("x"))
    given = parse(["--data", "x", "--models", "gin", "plstm", "--folds", "2", "--epochs", "3", "--seed", "7", "--page", "docs"])
    training = dataclasses.replace(TRAINING, epochs=3, seed=7)
    assert given == Settings(Path("x"), training, models=("gin", "plstm"), folds=2, page=Path("docs"))


@pytest.mark.parametrize(
    "words",
    [["--folds", "6"], ["--epochs", "0"], ["--seed", "-1"], ["--most", "9"], ["--models", "gcn"], ["--devices", "2"], []],
)
def test_wrong_options_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(["--data", "x", *words] if words else [])
    assert stop.value.code == 2
    assert (words or ["--data"])[0] in capsys.readouterr().err


def test_models_have_rates_and_rounds_of_their_own() -> None:
    """Unless others are asked for."""
    settings = Settings(Path())
    assert {model: settings.of(model).depth for model in ("gin", "gine", "mpnn")} == {"gin": 4, "gine": 4, "mpnn": 8}
    rates = {model: settings.of(model).training.rate for model in MODELS}
    assert rates == {"plstm": 5e-3, "gin": 5e-3, "gine": 5e-3, "mpnn": 2e-3}
    assert settings.on("mpnn", 0).deciding != settings.on("gine", 0).deciding
    asked = dataclasses.replace(at(Path(), settings, rate=1e-2), depth=3)
    assert {(asked.of(model).training.rate, asked.of(model).depth) for model in MODELS} == {(1e-2, 3)}


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().out
    assert "holds 0 circuits" in said
    assert "Traceback" not in said
    (tmp_path / "x.bench").write_text("INPUT(a\n")
    assert main(["--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "STM3403" in capsys.readouterr().out
