"""How often each node of a circuit is on, when its inputs are on and off like fair coins that know nothing of each other."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, UInt64

from stmlang.experiments.circuits.cones import Cone

EXACT_INPUTS = 16
"""Up to so many inputs all patterns of them are tried, 65,536 at most."""
WORDS = 1 << (EXACT_INPUTS - 6)
"""Beyond, as many words of 64 random patterns: the standard error of a probability is then at most 1/512."""

_ALL = np.uint64(2**64 - 1)
_MASKS = (
    0xAAAAAAAAAAAAAAAA,
    0xCCCCCCCCCCCCCCCC,
    0xF0F0F0F0F0F0F0F0,
    0xFF00FF00FF00FF00,
    0xFFFF0000FFFF0000,
    0xFFFFFFFF00000000,
)
"""The first six inputs over the 64 patterns of one word."""


def every_pattern(inputs: int) -> UInt64[np.ndarray, "inputs words"]:
    """All patterns of so many inputs, 64 in a word; those of fewer than six several times, each equally often."""
    word = np.arange(1 << max(inputs - 6, 0))
    rows = [np.full(len(word), _MASKS[place] if place < 6 else 0, np.uint64) for place in range(inputs)]
    for place in range(6, inputs):
        rows[place][(word >> (place - 6)) & 1 == 1] = _ALL
    return np.asarray(rows, np.uint64).reshape(inputs, len(word))


def probabilities(cone: Cone, random: np.random.Generator) -> Float64[np.ndarray, " nodes"]:
    """Of every node: exact up to `EXACT_INPUTS` inputs, else over random patterns; inputs are 1/2 by definition."""
    if cone.inputs <= EXACT_INPUTS:
        patterns = every_pattern(cone.inputs)
    else:
        patterns = random.integers(0, 2**64, (cone.inputs, WORDS), np.uint64)
    words = np.zeros((cone.size, patterns.shape[1]), np.uint64)
    words[: cone.inputs] = patterns
    for gate, (a, b) in enumerate(cone.pairs, start=cone.inputs):
        words[gate] = _value(words, a) & _value(words, b)
    probability = np.bitwise_count(words).sum(axis=1, dtype=np.int64) / (64 * words.shape[1])
    probability[: cone.inputs] = 0.5
    return probability


def _value(words: UInt64[np.ndarray, "nodes words"], literal: int) -> UInt64[np.ndarray, " words"]:
    return words[literal >> 1] ^ (_ALL if literal & 1 else np.uint64(0))


def as_if_independent(cone: Cone) -> Float64[np.ndarray, " nodes"]:
    """The product of what fanins are, as if these knew nothing of each other: exact where no two of them share an input."""
    probability = [0.5] * cone.inputs
    for pair in cone.pairs:
        a, b = (abs((literal & 1) - probability[literal >> 1]) for literal in pair)
        probability.append(a * b)
    return np.asarray(probability, np.float64)
