"""The study, model by model."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int
from rich.console import Console

from stmlang.experiments.charlm.data import Corpus, Crops, read, windows
from stmlang.experiments.charlm.models import made, state_numbers
from stmlang.experiments.charlm.report import Result, Trial, best, write
from stmlang.experiments.charlm.settings import Model, Run, Settings
from stmlang.experiments.charlm.speed import Speed, measured
from stmlang.experiments.training.fitting import Fitted, Task, Validation, fit
from stmlang.experiments.training.settings import as_json
from stmlang.experiments.training.state import parameters
from stmlang.models.sequence import LanguageModel, generate
from stmlang.source.writing import written_whole

PROMPT = 32
"""Characters of the test part that a sample begins with."""
TEMPERATURE = 0.8
SPEEDS = "speeds.json"
BITS = 1 / math.log(2)
"""Of a nat."""


def loss(model: Any, batch: Int[Array, "crop character"], key: Array) -> tuple[Array, dict[str, Array]]:
    """The mean cross entropy of the next character, and the same in bits."""
    del key
    entropy = jnp.mean(_entropy(model, batch))
    return entropy, {"bits": entropy * BITS}


def bits(model: Any, examples: Int[np.ndarray, "window character"], size: int) -> float:
    """The bits of a character that is predicted: the mean over windows, `size` at a time, a window by itself."""
    total, missing = 0.0, -len(examples) % size
    filled = np.pad(examples, [(0, missing), (0, 0)])
    for start in range(0, len(filled), size):
        means = _window_means(model, jnp.asarray(filled[start : start + size]))
        total += float(np.sum(np.asarray(means, np.float64)[: len(examples) - start]))
    return total / len(examples) * BITS


@eqx.filter_jit
def _window_means(model: Any, batch: Array) -> Float[Array, " window"]:
    return jnp.mean(_entropy(model, batch), axis=1)


def _entropy(model: Any, batch: Array) -> Float[Array, "window character"]:
    logits = jax.vmap(model)(batch[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:])


def run(settings: Settings, console: Console) -> list[Result]:
    """Train and test every model, and write the page, anew after each. Raises TrainingError where the text cannot be read and
    where the folder holds a run that cannot go on."""
    corpus = read(settings.text, settings.context)
    results: list[Result] = []
    sample = ""
    for name in dict.fromkeys(settings.models):
        result, model = trained(name, settings, corpus, console)
        results.append(result)
        if result is best(results):
            sample = _sample(model, settings, corpus)
        write(results, sample, settings, corpus)
    return results


def trained(model: Model, settings: Settings, corpus: Corpus, console: Console) -> tuple[Result, LanguageModel]:
    """A model at each rate, or what is left of its training: the test of the one that is best on validation, and itself."""
    runs = settings.runs(model, corpus.digest)
    fits = [fitted(run, settings, corpus, console) for run in runs]
    trials = [_trial(run, fit) for run, fit in zip(runs, fits, strict=True)]
    at = min(range(len(trials)), key=lambda number: trials[number].validation)
    chosen = fits[at].model
    test = bits(chosen, windows(corpus.test, settings.context), settings.training.batch)
    console.print(f"{model}: {test:.3f} bits per character at rate {trials[at].rate:g}")
    result = Result(
        model=model,
        parameters=parameters(chosen),
        state=state_numbers(chosen) if model != "transformer" else 0,
        test=test,
        chosen=trials[at],
        trials=tuple(trials),
        speeds=speeds(model, settings, corpus),
    )
    return result, chosen


def fitted(run: Run, settings: Settings, corpus: Corpus, console: Console) -> Fitted:
    """One training, or the rest of it. Rates of a model start from the same parameters and see the same examples."""
    console.print(f"{run.model}, rate {run.training.rate:g}")
    training, judged = run.training, windows(corpus.validation, run.context, run.windows)

    def measure(model: Any) -> dict[str, float]:
        return {"bits": bits(model, judged, training.batch)}

    source = Crops(corpus.train, training.batch, run.context, training.seed)
    start = made(run.model, run.sizes, len(corpus.alphabet), training.seed, PROMPT + settings.sample)
    return fit(start, Task(loss, source, Validation(measure, "bits", largest=False)), training, console, run)


def _trial(run: Run, fit: Fitted) -> Trial:
    """A training by its validations, with the parameters after the last step."""
    curve = [(record["step"], record["validation"]["bits"]) for record in fit.records if "validation" in record]
    return Trial(run.training.rate, fit.steps, fit.seconds, tuple(curve))


def _sample(model: LanguageModel, settings: Settings, corpus: Corpus) -> str:
    """What a model writes behind the beginning of the test part, which the sample begins with."""
    prompt = corpus.test[:PROMPT]
    key = jax.random.key(settings.training.seed)
    answer = eqx.filter_jit(generate)(model, jnp.asarray(prompt), settings.sample, temperature=TEMPERATURE, key=key)
    return corpus.text(np.concatenate([prompt, np.asarray(answer)]))


def speeds(model: Model, settings: Settings, corpus: Corpus) -> tuple[Speed, ...]:
    """How fast a model writes, as it was measured before where the study goes on, with parameters as they are before training:
    time does not depend on them. A context is the beginning of the text, which begins anew where it is shorter."""
    path, about = settings.training.out / model / SPEEDS, [as_json(settings.sizes), list(settings.contexts), settings.timed]
    if settings.training.resume and path.exists():
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["about"] == about:
            return tuple(Speed(**speed) for speed in stored["speeds"])
    rates: list[Speed] = []
    for context in settings.contexts:
        start = made(model, settings.sizes, len(corpus.alphabet), settings.training.seed, context + settings.timed)
        rates.append(measured(start, jnp.asarray(np.resize(corpus.train, context)), settings.timed))
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as stream:
        stream.write(json.dumps({"about": about, "speeds": [asdict(speed) for speed in rates]}).encode())
    return tuple(rates)
