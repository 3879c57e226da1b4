"""A run of training that is as small as it gets, for processes of their own.

python -m tests.experiments.small_run FOLDER [NAME=VALUE ...] trains in FOLDER and writes `digest.txt` there. With `--serve` it
reads such lines from standard input and does that for each in a process that has imported all already.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import psutil
from rich.console import Console

from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.fitting import Fitted, Task, Validation, fit
from stmlang.experiments.training.processes import join
from stmlang.experiments.training.settings import Training
from stmlang.experiments.training.source import Shuffled
from stmlang.experiments.training.state import digest

LENGTH, WIDTH = 40, 6
TRAINING = Training(epochs=3, batch=8, rate=1e-2, log=3, validate=4, average=0.9, checkpoint=0.0)


def loss(model: Any, batch: Any, key: Any) -> Any:
    """The mean square of an error, of inputs with some noise that the key draws."""
    x, y = batch
    error = jax.vmap(model)(x + 0.1 * jax.random.normal(key, x.shape))[:, 0] - y
    return jnp.mean(error**2), {"distance": jnp.mean(jnp.abs(error))}


def task(training: Training) -> tuple[Any, Task]:
    """A perceptron, and sums that it learns."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(LENGTH, WIDTH)).astype(np.float32)
    y = np.tanh(x.sum(axis=1))

    def load(numbers: Any, generator: np.random.Generator) -> Any:
        return x[numbers] + generator.normal(0, 0.01, (len(numbers), WIDTH)).astype(np.float32), y[numbers]

    @eqx.filter_jit
    def error(model: Any) -> Any:
        return jnp.mean((jax.vmap(model)(x)[:, 0] - y) ** 2)

    validation = Validation(lambda model: {"error": float(error(model))}, "error", largest=False)
    model = eqx.nn.MLP(WIDTH, 1, 16, 1, key=jax.random.key(training.seed))
    return model, Task(loss, Shuffled(LENGTH, training.batch, training.seed, load), validation)


def run(training: Training) -> Fitted:
    model, what = task(training)
    return fit(model, what, training, Console(quiet=True))


def main(words: list[str]) -> None:
    """Train as the words say."""
    folder, changes = Path(words[0]), dict(word.split("=", 1) for word in words[1:])
    training = replace(TRAINING, out=folder, **{name: json.loads(value) for name, value in changes.items()})
    join(training)
    fitted = run(training)
    (folder / "digest.txt").write_text(f"{digest(fitted.model)} {digest(fitted.best)} {fitted.best_step}\n")


def serve() -> None:
    """Start a process for each line, whose first word says after how many seconds of its own processor time it is killed, 0 for
    never, however busy the machine is. Answers with its exit status and the processor time that it took."""
    for line in sys.stdin:
        limit, *words = line.split()
        child = os.fork()
        if child == 0:
            os.setsid()
            try:
                main(words)
            finally:
                os._exit(0 if sys.exc_info()[0] is None else 1)
        process = psutil.Process(child)
        while (ended := os.wait4(child, os.WNOHANG))[0] == 0:
            times = process.cpu_times()
            if 0 < float(limit) <= times.user + times.system:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.003)
        print(os.waitstatus_to_exitcode(ended[1]), ended[2].ru_utime + ended[2].ru_stime, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        try:
            main(sys.argv[1:])
        except TrainingError as error:
            print(f"{error}\n  help: {error.help}", file=sys.stderr, flush=True)
            os._exit(1)  # as commands end: nothing waits for processes that are gone
