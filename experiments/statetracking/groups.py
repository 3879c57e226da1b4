"""Finite groups as tables, and words in them along chains and grids."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int32, Int64

Name = Literal["z2", "s3", "a5"]
Form = Literal["chain", "grid"]
STEPS_AN_EPOCH = 100
"""Words are drawn anew for each batch, so that an epoch is a number of steps and no more."""
NEAR, ALL = 0.5, 0.8
"""Shares of all steps: up to the first labels count near the start of a word alone, from the second on all do."""
EARLY = 0.3
"""The first of them where words grow."""
SHORTEST = 2
"""Up to so many edges from the start."""


@dataclass(frozen=True, eq=False)
class Group:
    """A group of permutations. `perms[a, x]` is where the element `a` takes `x`; elements are numbered in lexicographic order
    of their images, so that 0 is the identity. `mul[a, b]` is the element "first a, then b": `perms[mul[a, b], x] = perms[b,
    perms[a, x]]`."""

    perms: Int64[np.ndarray, "element point"]
    mul: Int64[np.ndarray, "element element"]

    @property
    def order(self) -> int:
        return len(self.mul)


@dataclass(frozen=True)
class Nodes:
    """Where a word lies: `size` elements of a chain behind its first node, or a grid of `size` x `size` nodes. To each node
    leads one path from the first: along the chain, or along the first row and then down a column."""

    form: Form
    size: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (1 + self.size,) if self.form == "chain" else (self.size, self.size)

    @cached_property
    def before(self) -> Int64[np.ndarray, " node"]:
        """The node before each on its path, row by row; that of the first is itself."""
        numbers = np.arange(np.prod(self.shape))
        beside = np.maximum(numbers - 1, 0)
        return beside if self.form == "chain" else np.where(numbers < self.size, beside, numbers - self.size)

    @cached_property
    def distance(self) -> Int64[np.ndarray, " node"]:
        """How many edges lead from the first node to each."""
        return np.indices(self.shape).sum(axis=0).ravel()


class Words(NamedTuple):
    """Words of a batch. At the first node stands a token `group.order`, which is no element: states start at zero, and a
    transition leads nowhere from there. A label is the product of the elements on the path to a node, its own the last;
    `counted` says which labels a model is asked for."""

    tokens: Int32[np.ndarray, "word *nodes"]
    labels: Int32[np.ndarray, "word *nodes"]
    counted: Bool[np.ndarray, "word *nodes"]


def group(name: Name) -> Group:
    """Z2, whose word problem is parity; S3, all permutations of three points, the smallest group that does not commute; A5,
    the even permutations of five, the smallest not solvable one: its word problem is complete for NC1 (Barrington, 1989)."""
    match name:
        case "z2":
            return _generated(2, even=False)
        case "s3":
            return _generated(3, even=False)
        case "a5":
            return _generated(5, even=True)


def words(group: Group, nodes: Nodes, count: int, generator: np.random.Generator, reach: int | None = None) -> Words:
    """Words of independent, uniform elements. Labels count up to `reach` edges from the first node, all if it is not given."""
    places = len(nodes.before)
    tokens = generator.integers(0, group.order, (count, places))
    tokens[:, 0] = group.order
    labels = np.zeros_like(tokens)
    for place in range(1, places):
        labels[:, place] = group.mul[labels[:, nodes.before[place]], tokens[:, place]]
    counted = (nodes.distance >= 1) & (nodes.distance <= (places if reach is None else reach))
    shape = (count, *nodes.shape)
    return Words(
        tokens.astype(np.int32).reshape(shape),
        labels.astype(np.int32).reshape(shape),
        np.broadcast_to(counted, tokens.shape).reshape(shape),
    )


@dataclass(frozen=True, eq=False)
class Drawn:
    """A `Source` of batches of words that nobody has seen: what a batch holds depends on the seed and its step alone.

    Up to `NEAR` of the `steps` labels count up to `SHORTEST` edges from the first node, then further and further, and from
    `ALL` of them on all do: a long product teaches nothing to a model that cannot multiply two elements yet. Where they are
    `growing`, they do so from `EARLY` on, twice as far in equal times, and words are no longer than is asked for, rounded up to
    a power of two, and as many more: there is more to learn from a step, and it costs the same.
    """

    group: Group
    nodes: Nodes
    count: int
    seed: int
    steps: int
    growing: bool = False

    @property
    def steps_an_epoch(self) -> int:
        return STEPS_AN_EPOCH

    def reach(self, step: int) -> int:
        """Up to which distance labels count at a step."""
        longest = int(self.nodes.distance.max())
        if longest <= SHORTEST:
            return longest
        first = EARLY if self.growing else NEAR
        grown = min(1.0, max(0.0, (step / self.steps - first) / (ALL - first)))
        if self.growing:
            return round(SHORTEST * (longest / SHORTEST) ** grown)
        return round(grown * (longest - SHORTEST)) + SHORTEST

    def laid(self, step: int) -> Nodes:
        """Where the words of a step lie."""
        size, reach = self.nodes.size, self.reach(step)
        sizes = [2**power for power in range(1, size.bit_length()) if self.growing and 2**power < size]
        smaller = (Nodes(self.nodes.form, smaller) for smaller in sizes)
        return next((nodes for nodes in smaller if nodes.distance.max() >= reach), self.nodes)

    def batch(self, step: int) -> Words:
        generator, nodes = np.random.default_rng([self.seed, 0, step]), self.laid(step)
        count = self.count * len(self.nodes.before) // len(nodes.before)
        return words(self.group, nodes, count, generator, self.reach(step))


def _generated(points: int, *, even: bool) -> Group:
    perms = [perm for perm in itertools.permutations(range(points)) if not even or _inversions(perm) % 2 == 0]
    number = {perm: place for place, perm in enumerate(perms)}
    mul = [[number[tuple(b[a[x]] for x in range(points))] for b in perms] for a in perms]
    return Group(np.asarray(perms), np.asarray(mul))


def _inversions(perm: tuple[int, ...]) -> int:
    return sum(before > after for before, after in itertools.combinations(perm, 2))
