"""A text as numbers, cut by position into what models learn from, what rates are chosen on, and what the table is of."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from stmlang.experiments.training.errors import TrainingError

SHARES = 0.9, 0.95
"""Where the training part ends and the validation part, as shares of all characters."""
Characters = Int32[np.ndarray, " character"]


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text by the numbers of its characters, which are their places in `alphabet`; `digest` is the SHA-256 of its bytes."""

    alphabet: str
    digest: str
    train: Characters
    validation: Characters
    test: Characters

    def text(self, numbers: Characters) -> str:
        """Numbers as text."""
        return "".join(self.alphabet[number] for number in numbers)


def read(path: Path, context: int) -> Corpus:
    """The text in a file, its first 90 % to learn from, then 5 % for validation and 5 % to test. The alphabet is that of all.

    Raises TrainingError where there is no such file, where it is no text, and where a part has no example of `context`
    characters and one to predict.
    """
    help = "give a text in UTF-8, such as tiny Shakespeare: `--text`"
    try:
        stored = path.read_bytes()
        text = stored.decode()
    except (FileNotFoundError, IsADirectoryError):
        raise TrainingError(f"{path} is no file", help) from None
    except UnicodeDecodeError as error:
        raise TrainingError(f"{path} is not UTF-8: byte {error.start}", help) from None
    first, second = (int(share * len(text)) for share in SHARES)
    if min(second - first, len(text) - second) <= context:
        message = f"{path} has {len(text):,} characters: a twentieth of them is no example of {context} and one to predict"
        raise TrainingError(message, "give a longer text, `--text`, or shorter examples, `--context`")
    alphabet = "".join(sorted(set(text)))
    number = {character: place for place, character in enumerate(alphabet)}
    numbers = np.asarray([number[character] for character in text], np.int32)
    digest = hashlib.sha256(stored).hexdigest()
    return Corpus(alphabet, digest, numbers[:first], numbers[first:second], numbers[second:])


@dataclass(frozen=True, eq=False)
class Crops:
    """A `Source` of batches `(count, context + 1)` of characters that begin anywhere in the text, each begin as likely as any
    other; which depends on the seed and the step alone. An epoch is as many characters as there are."""

    text: Characters
    count: int
    context: int
    seed: int

    @property
    def steps_an_epoch(self) -> int:
        return max(1, len(self.text) // (self.count * self.context))

    def batch(self, step: int) -> Int32[np.ndarray, "crop character"]:
        starts = np.random.default_rng([self.seed, 0, step]).integers(0, len(self.text) - self.context, self.count)
        return self.text[starts[:, None] + np.arange(self.context + 1)]


def windows(text: Characters, context: int, count: int | None = None) -> Int32[np.ndarray, "window character"]:
    """The text in windows `(window, context + 1)`, each beginning with the last character of the one before: all but the first
    character are predicted once, save those that fill no window. With `count` so many of them, evenly spaced, where there are
    more."""
    whole = (len(text) - 1) // context
    chosen = np.arange(whole) if count is None or count >= whole else np.arange(count) * whole // count
    return text[chosen[:, None] * context + np.arange(context + 1)]
