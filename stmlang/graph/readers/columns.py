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
DIRECTED, UNDIRECTED = ("directed",), ("undirected",)
"""Of Gephi and igraph: whether an edge has a direction, or none."""

_BESIDES = re.compile(r"^(?:node|vertex)|(?:node|vertex|id|name|label|index|key)$")
_NUMBERED = re.compile(r"(node|vertex|id)[\W_]*([0-9]|[ab])", re.IGNORECASE)
_NUMBERED_NODE = re.compile(r"(?:node|vertex|id)[\W_]*(?:[0-9]+|[a-z])", re.IGNORECASE)
_OF_TABLES = re.compile(r"(?:node|vertex|vertice|edge|link|id|name|label|index|key|title|weight|type|value|count|age)+s?")
_LETTERS = ("uv", "ij", "xy")
_LETTERED = re.compile(r"[nv][\W_]*[0-9]", re.IGNORECASE)


def ends_of(names: Sequence[str]) -> tuple[list[int], list[int]]:
    """The columns that could be those of the tail, and those of the head. Columns that are named so to the letter, `source`,
    come before those that are named nearly so, `source_label`."""
    exact = tuple([column for column, name in enumerate(names) if name.lower() in words] for words in (TAILS, HEADS))
    tails, heads = (
        chosen if len(chosen) == 1 else columns_named(names, words) for chosen, words in zip(exact, (TAILS, HEADS), strict=True)
    )
    return tails, heads


def columns_named(names: Sequence[str], words: Sequence[str]) -> list[int]:
    """The columns that are named by one of these words, such as `from`, `FromNodeId`, `node_from` or `sources`."""
    keywords = [_word(name) for name in names]
    return [column for column, word in enumerate(keywords) if word in words or word.removesuffix("s") in words]


def numbered_ends(names: Sequence[str]) -> tuple[int, int] | None:
    """The columns of the tail and of the head where two are numbered, `node1,node2` or `vertexB,vertexA`: the tail is the one
    that comes first so. None where there are no two such columns of one name, or more."""
    matches = [(match, column) for column, name in enumerate(names) if (match := _NUMBERED.fullmatch(name))]
    if len(matches) != 2 or len({match.group(1).lower() for match, _ in matches}) != 1:
        return None
    (first, tail), (second, head) = matches
    gap = ord(second.group(2).lower()) - ord(first.group(2).lower())
    return (tail, head) if gap == 1 else (head, tail) if gap == -1 else None


def is_numbered(name: str) -> bool:
    """Whether a name could be one of several numbered columns, or nodes."""
    return _NUMBERED_NODE.fullmatch(name) is not None


def with_word_of_tables(names: Sequence[str]) -> bool:
    """Whether one of the names is a word for an end of an edge, or one that tables have above other columns."""
    known = (*TAILS, *HEADS, *UNDECIDED)
    return bool(columns_named(names, known)) or any(_OF_TABLES.fullmatch(re.sub(r"[\W_]+", "", name).lower()) for name in names)


def letters_of_ends(names: Sequence[str]) -> bool:
    """Whether the names are letters that often stand for two ends, `u,v`, or are numbered so, `V1,V2`."""
    return "".join(names).lower() in _LETTERS or all(_LETTERED.fullmatch(name) for name in names)


def _word(name: str) -> str:
    """A column's name without case, signs, and words such as `node` and `id` around it."""
    word = re.sub(r"[\W_]+", "", name).lower()
    while (shorter := _BESIDES.sub("", word)) not in (word, ""):
        word = shorter
    return word
