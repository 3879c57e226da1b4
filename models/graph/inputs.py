"""What a model of graphs is given, and the parts that all of them have: links in both senses, pooling, a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from stmlang.graph import Batch, Shares
from stmlang.graph.batch import Arrays
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_array
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.graphs import GraphScan
from stmlang.runtime.modules import equal, hash_of

Features = Sequence[Any]
"""One array for each graph, `(its nodes, features)` or `(its edges, features)`."""

Readout = Literal["graph", "nodes"]
"""What a model answers: a row for each graph of the bucket, or one for each of its nodes, those of padding included."""


class Inputs(NamedTuple):
    """A batch for a model, a pytree: what its arrays say of the graphs, its features, and the scans on it.

    What features say of padding, NaN included, reaches nothing.
    """

    batch: Arrays
    nodes: Float[Array, "nodes node_features"]
    edges: Float[Array, "edges edge_features"]
    scans: tuple[CompiledScan, ...]


class GraphModel(Protocol):
    """A model of this package. What it says of a graph depends on nothing else in the batch."""

    def prepare(self, batch: Batch | Shares, nodes: Features, edges: Features) -> Inputs: ...

    def __call__(self, inputs: Inputs) -> Float[Array, "rows classes"]: ...


def prepared(batch: Batch | Shares, nodes: Features, edges: Features, scans: Sequence[GraphScan] = ()) -> Inputs:
    """The inputs of a model that has these scans. Edge features are in the order of each graph's DAG. Of shares they are those
    of every share, with an axis of them in front, over which the model is mapped.

    Raises SpecError: STM3509 where features do not fit the graphs, and what `GraphScan.at` raises.
    """
    return Inputs(
        batch=batch.arrays,
        nodes=jnp.asarray(batch.nodes(nodes), jnp.float32),
        edges=jnp.asarray(batch.edges(edges), jnp.float32),
        scans=tuple(scan.at(batch) for scan in scans),
    )


def real_nodes(inputs: Inputs, width: int) -> Float[Array, "nodes node_features"]:
    """Node features, zero for padding. Raises SpecError (STM5201) unless there are `width` of them."""
    mask = jnp.asarray(inputs.batch.node_mask)
    return jnp.where(mask[:, None], require_array("nodes", inputs.nodes, (len(mask), width)), 0)


def real_edges(inputs: Inputs, width: int) -> Float[Array, "edges edge_features"]:
    """Edge features, zero for padding. Raises SpecError (STM5201) unless there are `width` of them."""
    mask = jnp.asarray(inputs.batch.edge_mask)
    return jnp.where(mask[:, None], require_array("edges", inputs.edges, (len(mask), width)), 0)


class Links(NamedTuple):
    """Every edge in both senses, as messages go: link `l` from node `sender[l]` to node `receiver[l]`.

    `real` is false for links of padding, whose messages no sum takes in. Where links are `directed`, their last feature is 1
    along the edge and -1 against it. `graph` is the number of the graph of each node, `sizes` are the nodes of each; padding
    is the last one.
    """

    sender: Int[Array, " links"]
    receiver: Int[Array, " links"]
    real: Bool[Array, " links"]
    features: Float[Array, "links edge_features"]
    degree: Float[Array, " nodes"]
    graph: Int[Array, " nodes"]
    sizes: Float[Array, " graphs_and_one"]

    @classmethod
    def of(cls, batch: Arrays, edges: Float[Array, "edges edge_features"], directed: bool = False) -> Links:
        tail, head, real = jnp.asarray(batch.tail), jnp.asarray(batch.head), jnp.asarray(batch.edge_mask)
        receiver = jnp.concatenate([head, tail])
        both = jnp.concatenate([real, real])
        degree = jax.ops.segment_sum(both.astype(jnp.float32), receiver, len(batch.graph))
        features = jnp.concatenate([edges, edges])
        if directed:
            sense = jnp.where(jnp.arange(len(both)) < len(real), 1.0, -1.0).astype(features.dtype)
            features = jnp.concatenate([features, sense[:, None]], axis=-1)
        graph = jnp.asarray(batch.graph)
        sizes = jax.ops.segment_sum(
            jnp.ones(len(graph), jnp.float32), graph, len(batch.graph_mask) + 1, indices_are_sorted=True
        )
        return cls(jnp.concatenate([tail, head]), receiver, both, features, degree, graph, sizes)

    def sum(self, messages: Float[Array, "links *features"]) -> Float[Array, "nodes *features"]:
        """What arrives at each node."""
        real = self.real.reshape(-1, *(1 for _ in messages.shape[1:]))
        return jax.ops.segment_sum(jnp.where(real, messages, 0), self.receiver, len(self.degree))

    def mean(self, messages: Float[Array, "links features"]) -> Float[Array, "nodes features"]:
        """The mean of what arrives at each node, zero where nothing does."""
        return self.sum(messages) / jnp.maximum(self.degree, 1)[:, None]

    def graph_mean(self, x: Float[Array, "nodes features"]) -> Float[Array, "nodes features"]:
        """At each node the mean over the nodes of its graph."""
        sums = jax.ops.segment_sum(x, self.graph, len(self.sizes), indices_are_sorted=True)
        return (sums / jnp.maximum(self.sizes, 1)[:, None])[self.graph]


def sum_nodes(batch: Arrays, x: Float[Array, "nodes dim"]) -> Float[Array, "graphs dim"]:
    """The sum over each graph's nodes; padding belongs to no graph."""
    return jax.ops.segment_sum(x, jnp.asarray(batch.graph), len(batch.graph_mask), indices_are_sorted=True)


def mean_nodes(batch: Arrays, x: Float[Array, "nodes dim"]) -> Float[Array, "graphs dim"]:
    """The mean over each graph's nodes, zero for a graph without any."""
    counts = sum_nodes(batch, jnp.ones_like(x[:, :1]))
    return sum_nodes(batch, x) / jnp.maximum(counts, 1)


def degree_code(degree: Float[Array, " nodes"], dim: int) -> Float[Array, "nodes dim"]:
    """A number of neighbours as sines and cosines: `sin(n / 10000^(2i / dim))` at `2i`, the cosine of it at `2i + 1`."""
    frequency = 10000.0 ** (-2 * (np.arange(dim) // 2) / dim)
    angle = degree[:, None] * jnp.asarray(frequency, jnp.float32)
    return jnp.where(jnp.arange(dim) % 2 == 0, jnp.sin(angle), jnp.cos(angle))


class Decoder(eqx.Module):
    """A perceptron with one hidden layer of as many features as it is given."""

    hidden: Linear
    out: Linear

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, dim: int, classes: int, *, key: PRNGKeyArray) -> None:
        hidden, out = jax.random.split(key)
        self.hidden = Linear(dim, dim, gain=2**0.5, key=hidden)
        self.out = Linear(dim, classes, gain=1.0, key=out)

    def __call__(self, x: Float[Array, "*graphs dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "*graphs classes"]:
        del key
        return self.out(jax.nn.relu(self.hidden(x)))
