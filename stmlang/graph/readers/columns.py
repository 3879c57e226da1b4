"""The names of an edge list's columns: which hold the ends of the edges."""

from __future__ import annotations

import re
from collections.abc import Sequence

TAILS = ("source", "src", "from", "tail", "start", "origin", "predecessor", "pred", "upstream", "sender")
HEADS = (
    *("target", "tgt", "dst", "dest", "destination", "to", "head", "end", "sink", "successor", "succ", "downstream"),
    "receiver",
)
UNDECIDED = ("parent", "child")
"""Names of two ends that do not say which one an edge leads to: in a tree edges lead to the parent, elsewhere rarely."""
TYPE = ("type",)

_BESIDES = re.compile(r"^(?:node|vertex)|(?:node|vertex|id|name|label|index|key)$")


def ends_of(names: Sequence[str]) -> tuple[list[int], list[int]]:
    """The columns that could be those of the tail, and those of the head. Columns that are named so to the letter, `source`,
    come before those that are named nearly so, `source_label`."""
    exact = tuple([column for column, name in enumerate(names) if name.lower() in words] for words in (TAILS, HEADS))
    tails, heads = (
        chosen if len(chosen) == 1 else columns_named(names, words) for chosen, words in zip(exact, (TAILS, HEADS), strict=True)
    )
    return tails, heads


def columns_named(names: Sequence[str], words: Sequence[str]) -> list[int]:
    """The columns that are named by one of these words, such as `from`, `FromNodeId` or `node_from`."""
    return [column for column, name in enumerate(names) if _word(name) in words]


def _word(name: str) -> str:
    """A column's name without case, signs, and words such as `node` and `id` around it."""
    word = re.sub(r"[\W_]+", "", name).lower()
    while (shorter := _BESIDES.sub("", word)) not in (word, ""):
        word = shorter
    return word
