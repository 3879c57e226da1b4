"""The study of language models: its text, its models and their sizes, a short run of the whole."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.experiments.charlm.__main__ import main, parse
from stmlang.experiments.charlm.data import Corpus, Crops, read, windows
from stmlang.experiments.charlm.models import made, state_numbers
from stmlang.experiments.charlm.report import NAMES, Result, Trial, command, page
from stmlang.experiments.charlm.settings import MODELS, Model, Settings, Sizes
from stmlang.experiments.charlm.speed import Speed, measured, prefilled
from stmlang.experiments.charlm.study import bits
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.settings import Training
from stmlang.experiments.training.state import parameters
from stmlang.models.sequence import LanguageModel, generate
from tests.helpers.data import data_folder
from tests.models.test_blocks import call

ROOT = Path(__file__).parents[2]
TINY = Sizes(dim=8, heads=2, states=4, depth=2)
LETTERS = "etaoin shrdlu\n"


@cache
def tiny(model: Model) -> LanguageModel:
    return made(model, TINY, len(LETTERS), 0, room=12)


def text(path: Path, length: int = 900) -> Path:
    """A text with a rule: letters in turn, some of them left out."""
    skipped = np.random.default_rng(0).integers(1, 3, length).cumsum()
    path.write_text("".join(LETTERS[place % len(LETTERS)] for place in skipped))
    return path


# --- the text --------------------------------------------------------------------------------------------------------


def test_the_split_is_by_position(tmp_path: Path) -> None:
    path = text(tmp_path / "text.txt", 1000)
    corpus = read(path, 8)
    assert [len(part) for part in (corpus.train, corpus.validation, corpus.test)] == [900, 50, 50]
    whole = np.concatenate([corpus.train, corpus.validation, corpus.test])
    assert corpus.text(whole) == path.read_text()
    assert corpus.alphabet == "".join(sorted(LETTERS))


def test_tiny_shakespeare() -> None:
    corpus = read(data_folder("data/text") / "tinyshakespeare.txt", 128)
    assert [len(part) for part in (corpus.train, corpus.validation, corpus.test)] == [1_003_854, 55_770, 55_770]
    assert len(corpus.alphabet) == 65
    assert corpus.text(corpus.train[:14]) == "First Citizen:"


@pytest.mark.parametrize(
    ("content", "said"), [(None, "is no file"), (b"caf\xe9" * 99, "is not UTF-8: byte 3"), (b"short" * 9, "45 characters")]
)
def test_texts_that_cannot_be_read(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TrainingError, match=said):
        read(path, 8)


def test_crops_depend_on_seed_and_step_alone() -> None:
    numbers = np.arange(50, dtype=np.int32)
    source = Crops(numbers, 4, 7, seed=3)
    batch = source.batch(5)
    source.batch(0)
    np.testing.assert_array_equal(source.batch(5), batch)
    np.testing.assert_array_equal(batch - batch[:, :1], np.tile(np.arange(8), (4, 1)))
    starts = np.concatenate([source.batch(step)[:, 0] for step in range(400)])
    assert set(starts) == set(range(43))  # the last crop ends with the last character
    for other in (source.batch(6), Crops(numbers, 4, 7, seed=4).batch(5)):
        assert (other != batch).any()


def test_windows_predict_each_character_once() -> None:
    every = windows(np.arange(30, dtype=np.int32), 7)
    np.testing.assert_array_equal(every[:, 1:].ravel(), np.arange(1, 29))
    np.testing.assert_array_equal(windows(np.arange(30, dtype=np.int32), 7, 2), every[[0, 2]])
    np.testing.assert_array_equal(windows(np.arange(30, dtype=np.int32), 7, 9), every)


def test_bits_are_those_of_all_windows() -> None:
    """A model that looks at nothing but the last character, by hand; the last batch is not full."""
    table = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)
    examples = np.random.default_rng(1).integers(0, 5, (7, 4)).astype(np.int32)
    logged = table - np.log(np.exp(table).sum(axis=1, keepdims=True))
    of_targets: Any = logged[examples[:, :-1], examples[:, 1:]]
    expected = -float(of_targets.mean()) / math.log(2)
    assert bits(eqx.nn.Embedding(weight=jnp.asarray(table)).weight.__getitem__, examples, 3) == pytest.approx(
        expected, rel=1e-5
    )


# --- models ----------------------------------------------------------------------------------------------------------


def test_models_have_as_many_parameters() -> None:
    counts = {model: parameters(made(model, Settings().sizes, 65, 0, room=8)) for model in MODELS}
    assert all(abs(count / counts["transformer"] - 1) < 0.03 for count in counts.values()), counts


@pytest.mark.parametrize("model", MODELS)
def test_writing_is_the_whole_pass(model: Model) -> None:
    net, prompt = tiny(model), jnp.asarray([3, 1, 4, 1, 5])
    answer = eqx.filter_jit(generate)(net, prompt, 4, temperature=0.0, key=jax.random.key(0))
    logits = call(net, jnp.concatenate([prompt, answer]))
    np.testing.assert_array_equal(answer, jnp.argmax(logits, axis=-1)[4:-1])


def test_contexts_are_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    net, tokens = tiny("transformer"), jnp.asarray([3, 1, 4, 1, 5, 9, 2, 6])
    monkeypatch.setattr("stmlang.experiments.charlm.speed.PIECE", 3)
    logits, state = prefilled(net, tokens)
    np.testing.assert_allclose(logits, net(tokens)[-1], atol=1e-5)
    np.testing.assert_array_equal(state.length, [8, 8])
    speed = measured(net, tokens, 4)
    assert speed.context == 8
    assert speed.rate > 0


def test_states_are_counted() -> None:
    assert state_numbers(tiny("gla")) == TINY.depth * TINY.heads * 2 * 4
    assert state_numbers(tiny("transformer")) == TINY.depth * 2 * 12 * TINY.dim


# --- the command -----------------------------------------------------------------------------------------------------


def test_command_line() -> None:
    assert parse([]) == Settings()
    settings = parse(
        ["--models", "gla", "plstm", "--rates", "1e-3", "--steps", "7", "--machine", "a clock", "--text", "a/b.txt"]
    )
    line = command(settings)
    again = parse(line.split()[3:])
    assert line == "python -m stmlang.experiments.charlm --steps 7 --text b.txt --models gla plstm --rates 0.001"
    assert again == replace(settings, machine=Settings().machine, text=Path("b.txt"))
    runs = Settings().runs("gla", "")
    assert [(run.training.rate, str(run.training.out)) for run in runs] == [
        (0.003, "build/charlm/gla/rate-0.003"),
        (0.01, "build/charlm/gla/rate-0.01"),
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["--models", "lstm"],
        ["--rates", "0"],
        ["--contexts", "0"],
        ["--context", "0"],
        ["--dim", "90"],
        ["--devices", "2"],
    ],
)
def test_wrong_command_lines_end_with_two(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(words)
    assert stop.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_a_missing_text_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path / "out"), "--text", str(tmp_path / "text.txt")]) == 1
    assert "is no file\n  help: give a text in UTF-8" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_a_run_writes_its_page_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, pages = tmp_path / "out", tmp_path / "pages"
    options = "--models transformer gla --rates 1e-3 3e-2 --steps 30 --log 10 --validate 10 --batch 4 --context 8 --windows 4"
    sizes = "--dim 8 --heads 2 --depth 1 --sample 5 --contexts 1 20 --timed 3"
    words = [*options.split(), *sizes.split(), "--text", str(text(tmp_path / "text.txt")), "--out", str(out)]
    assert main([*words, "--page", str(pages)]) == 0
    numbers = json.loads((out / "charlm.json").read_text())
    stored = numbers["results"]
    assert len(numbers["sample"]) == 32 + 5
    assert [result["model"] for result in stored] == ["transformer", "gla"]
    for result in stored:
        ends = {trial["rate"]: trial["curve"][-1][1] for trial in result["trials"]}
        assert result["chosen"]["rate"] == min(ends, key=ends.__getitem__)
        assert [step for step, _ in result["chosen"]["curve"]] == [10, 20, 30]
        assert result["test"] < np.log2(len(LETTERS)) - 0.3  # it has learned something
        assert [speed["context"] for speed in result["speeds"]] == [1, 20]
    for name in ("charlm.md", "charlm.svg"):
        assert (pages / name).read_text() == (out / name).read_text()

    # Nothing is left to do, so that the numbers are the same; with other settings it is another run.
    assert main([*words, "--resume"]) == 0
    again = json.loads((out / "charlm.json").read_text())
    assert (again["results"], again["sample"]) == (stored, numbers["sample"])
    assert main([*words, "--resume", "--context", "9"]) == 1
    assert "other settings: context" in capsys.readouterr().out


def test_the_page_is_that_of_what_is_done(tmp_path: Path) -> None:
    settings = Settings(Training(steps=20, batch=8, out=tmp_path), rates=(0.1, 0.2), contexts=(1, 5), machine="a clock")
    trials = tuple(Trial(rate, 20, 12.0, ((10, 3.0), (20, 2.0 + rate))) for rate in settings.rates)
    gla: dict[str, Any] = {"model": "gla", "parameters": 1234, "state": 56, "test": 2.5}
    result = Result(**gla, chosen=trials[0], trials=trials, speeds=(Speed(1, 1000.4), Speed(5, 990.0)))
    numbers = np.zeros(9, np.int32)
    written = page([result], "So\n\nit is", settings, Corpus("ab", "", numbers, numbers, numbers))
    for line in (
        "| GLA | `std:chain/gla` | 1,234 | 0.1 | 2.100 | 2.500 | 12 |",
        "| GLA | 2.100 | 2.200 |",
        "| GLA | 56 | 1,000 | 990 |",
        "    So\n\n    it is\n",
    ):
        assert line in written
    assert "Not on the page yet: softmax transformer, mLSTM, Mamba-2, DeltaNet, pLSTM." in " ".join(written.split())
    assert "20 steps of 8 examples of 128 characters" in " ".join(written.split())
    single = page([result], "", replace(settings, rates=(0.1,)), Corpus("ab", "", numbers, numbers, numbers))
    assert ("Rates of 0.1 and 0.2 were tried" in " ".join(written.split()), "by rate:" in written) == (True, True)
    assert ("The rate is 0.1 for all" in " ".join(single.split()), "by rate:" in single) == (True, False)


def test_the_page_in_the_documents_is_of_this_study() -> None:
    """Its command is one that there is, and a model that it trains has a row, or is said to be missing."""
    text = (ROOT / "docs" / "results" / "charlm.md").read_text()
    settings = parse(next(line for line in text.splitlines() if line.startswith("    python -m ")).split()[3:])
    rows = [line.split(" | ")[0] for line in text.splitlines() if " | `std:" in line or " | softmax attention | " in line]
    missing = [NAMES[model] for model in settings.models if f"| {NAMES[model]}" not in rows]
    assert rows
    assert ("Not on the page yet: " + ", ".join(missing) in " ".join(text.split())) == bool(missing)
