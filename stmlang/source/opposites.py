"""Words that are alike and mean different things, which nobody mistypes for each other."""

from __future__ import annotations

import re
from collections.abc import Callable

Distance = Callable[[str, str], int]

APART = """
    forward/forwards backward/backwards/reverse/reversed both/bidirectional
    directed undirected once twice
    in out inout
    input/inputs output/outputs
    inner outer
    inside outside
    incoming outgoing
    internal external
    interior exterior
    entering leaving
    source/sources sink/sinks target/targets
    tail/tails head/heads
    first last
    start/begin end stop
    before after
    previous next
    early late
    old new
    row/rows col/cols/column/columns
    min/minimum/least max/maximum/most
    low/lower high/higher/upper
    up down left right
    north south east west
    on off
    true false
    yes no
    all any none some
    and or not xor
    cpu gpu/cuda tpu rocm metal
    p d
    single double
    even odd
    positive negative
    include/inclusive exclude/exclusive
    increase/increasing decrease/decreasing
    ascending descending
    import export
    prefix suffix
    open closed/close
    read write
    load save
    dense sparse
    static dynamic
    local global
    cyclic acyclic
    symmetric asymmetric antisymmetric
    train/training test/testing
    float bfloat int uint
    sum mean median product/prod
    sin cos tan sinh cosh tanh asin acos atan min max exp log abs sign sqrt floor ceil round
    relu elu gelu selu celu silu glu swish mish
    softmax softmin
    gml graphml xml gexf json csv tsv yaml dot
"""
"""Words of a line are kept apart; those with a stroke between them are forms of one."""

NEGATIONS = ("un", "in", "im", "ir", "il", "non", "no", "dis", "de", "anti", "mis")
LEAST_STEM = 3


def _families(text: str) -> dict[str, list[tuple[int, int]]]:
    """Of each word the families that it belongs to, with the number of its meaning there."""
    members: dict[str, list[tuple[int, int]]] = {}
    for family, line in enumerate(text.strip().splitlines()):
        for meaning, forms in enumerate(line.split()):
            for form in forms.split("/"):
                members.setdefault(form, []).append((family, meaning))
    return members


FAMILIES = _families(APART)


def opposed(name: str, candidate: str, distance: Distance) -> bool:
    """Whether a name says something else than a candidate that is spelt almost like it.

    So it is where one negates the other (`undirected`, `directed`), where they differ in a number (`float16`, `float32`; a name
    without any may lack it), and where, word by word, the name is or resembles another member of the candidate's family
    (`min_rate`, `max_rate`; `gpu`, `cpu`). What is misspelt too counts: `undirectd` is no misspelling of `directed`.
    """
    name, candidate = name.lower(), candidate.lower()
    numbers = [re.findall(r"\d+", text) for text in (name, candidate)]
    if numbers[0] and numbers[0] != numbers[1]:
        return True
    if _negated(name, candidate, distance) or _negated(candidate, name, distance):
        return True
    words = [re.findall(r"[^\W\d_]+", text) for text in (name, candidate)]
    if len(words[0]) == len(words[1]):
        return any(_apart(word, other, distance) for word, other in zip(*words, strict=True) if word != other)
    return False


def _negated(longer: str, shorter: str, distance: Distance) -> bool:
    """Whether what follows a negation is more like the other name than the whole is."""
    whole = distance(longer, shorter)
    stems = (longer.removeprefix(prefix).lstrip("_-") for prefix in NEGATIONS if longer.startswith(prefix))
    return any(len(stem) >= LEAST_STEM and distance(stem, shorter) < whole for stem in stems)


def _apart(word: str, candidate: str, distance: Distance) -> bool:
    """Whether a word is nearer to another meaning in a family of the candidate's than to the candidate."""
    near = distance(word, candidate)
    return any(distance(word, other) < near for other in _others(candidate)) or _exchanged(word, candidate)


def _exchanged(word: str, candidate: str) -> bool:
    """Whether a part that has a meaning of its own is exchanged for one of its family: `argmin`, `argmax`."""
    stems = (stem for stem in FAMILIES if len(stem) >= LEAST_STEM and stem in word)
    return any(word.replace(stem, other) == candidate for stem in stems for other in _others(stem))


def _others(word: str) -> list[str]:
    """The words of a word's families that mean something else."""
    mine = dict(FAMILIES.get(word, ()))
    return [
        other for other, places in FAMILIES.items() if any(mine.get(family, meaning) != meaning for family, meaning in places)
    ]
