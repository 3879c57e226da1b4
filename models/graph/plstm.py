"""The pLSTM classifier of graphs: layers in P-mode and in D-mode by turns, each along the edges and against them.

What the paper leaves open, or its authors' code does otherwise, is settled as follows.

* The paper computes transitions "from node and edge features". Features of an edge are the mean of what its ends hold when the
  layer reads them, as in the code, and the encoded labels of the edge, which the code leaves out.
* The degree is the number of neighbours, as in the paper, not that of incoming edges.
* In P-mode it is what goes on from an edge that is limited to one in sum, as in the paper, not what comes together on one.
* Graphs are decoded by the mean over their nodes, as in the code. Nodes are normalized before, and so are the heads of each
  scan: how large a graph is hardly reaches the decoder. With `usual_nodes` it is the sum that does, in units of a graph of that
  size; docs/results/proteins_nci1.md has what that is worth where size tells classes apart.
* Perceptrons are as wide as the stream, not four times: so a model stays below the paper's 300,000 parameters.
"""

from __future__ import annotations

from typing import cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.graph import Batch, Shares
from stmlang.models.graph.inputs import (
    Decoder,
    Features,
    Inputs,
    Links,
    Readout,
    degree_code,
    mean_nodes,
    prepared,
    real_edges,
    real_nodes,
    sum_nodes,
)
from stmlang.models.parts import Linear, Perceptron
from stmlang.nn import RMSNorm, ScanLayer
from stmlang.nn.errors import require_key, require_scan, require_size
from stmlang.nn.show import summary
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.graphs import GraphScan
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.open import OpenScan
from stmlang.runtime.options import word
from stmlang.runtime.signature import call_error


class Block(eqx.Module):
    """`x + scan(norm(x), e)`, then `x + perceptron(norm(x))`; `e` is the mean of `norm(x)` at the ends of an edge, plus what is
    known of the edge itself."""

    before_scan: RMSNorm
    scan: ScanLayer
    before_perceptron: RMSNorm
    perceptron: Perceptron

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: GraphScan, dim: int, *, expansion: int, key: PRNGKeyArray) -> None:
        scan, perceptron = jax.random.split(key)
        self.before_scan, self.before_perceptron = RMSNorm((dim,)), RMSNorm((dim,))
        self.scan = ScanLayer(op, dim, edge_dim=dim, key=scan)
        self.perceptron = Perceptron(dim, expansion * dim, key=perceptron)

    def __call__(
        self, x: Float[Array, "nodes dim"], edges: Float[Array, "edges dim"], on: CompiledScan
    ) -> Float[Array, "nodes dim"]:
        read = self.before_scan(x)
        x = x + self.scan(read, edge_features=edges, end_features=read, on=on)
        return x + self.perceptron(self.before_perceptron(x))


class PLSTM(eqx.Module):
    """Encoded features and number of neighbours, `pairs` of a P block and a D block, the mean over nodes, a decoder. With
    `usual_nodes` it is the sum over nodes, divided by that number: what a graph of the usual size has as its mean. With the
    readout "nodes" every node is decoded, and there is neither.

    The parameters of all pairs are stacked. The pairs run one after the other in a `lax.scan` without a loop: a loop would copy
    everything that its derivative needs, which costs more time than it saves in compilation.
    """

    embed: Linear
    embed_edges: Linear
    stacked: tuple[Block, Block]
    shared: tuple[Block, Block]
    norm: RMSNorm
    decode: Decoder
    node_features: int = eqx.field(static=True)
    edge_features: int = eqx.field(static=True)
    readout: Readout = eqx.field(static=True)
    usual_nodes: float | None = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(
        self,
        p: CompiledScan | OpenScan | GraphScan,
        d: CompiledScan | OpenScan | GraphScan,
        *,
        classes: int,
        node_features: int,
        edge_features: int,
        dim: int = 96,
        pairs: int = 2,
        expansion: int = 1,
        readout: Readout = "graph",
        usual_nodes: float | None = None,
        key: PRNGKeyArray,
    ) -> None:
        """There may be no edge features. Raises SpecError: STM5010 for an unknown `readout`, STM5208 for anything else that no
        model can be made of."""
        first, second = _require_graphs("p", p), _require_graphs("d", d)
        classes, dim, pairs = require_size("classes", classes), require_size("dim", dim), require_size("pairs", pairs)
        expansion = require_size("expansion", expansion)
        self.readout = cast(Readout, word("readout", readout, get_args(Readout)))
        self.usual_nodes = _require_usual(usual_nodes)
        self.node_features = require_size("node_features", node_features)
        self.edge_features = require_size("edge_features", edge_features, 0)
        embed, edges, decode, *blocks = jax.random.split(require_key(key), 3 + pairs)
        self.embed = Linear(self.node_features, dim, gain=1.0, key=embed)
        self.embed_edges = Linear(self.edge_features, dim, gain=1.0, key=edges)
        made = [_pair(first, second, dim, expansion, block) for block in blocks]
        learned: list[tuple[Block, Block]] = [eqx.filter(pair, eqx.is_inexact_array) for pair in made]
        self.stacked = jax.tree.map(_stack, *learned)
        self.shared = eqx.filter(made[0], eqx.is_inexact_array, inverse=True)
        self.norm = RMSNorm((dim,))
        self.decode = Decoder(dim, classes, key=decode)

    def prepare(self, batch: Batch | Shares, nodes: Features, edges: Features) -> Inputs:
        """See `prepared`."""
        return prepared(batch, nodes, edges, _ops(self.shared))

    def __call__(self, inputs: Inputs, *, key: PRNGKeyArray | None = None) -> Float[Array, "rows classes"]:
        """A row for each graph, or for each node. Raises SpecError: STM5201, STM5202 for inputs that were prepared for another
        model."""
        del key
        if len(inputs.scans) != 2:
            message = f"the inputs hold {len(inputs.scans)} scans on their graphs, and this model has 2"
            raise call_error("STM5202", message, help="let the model prepare its inputs: `model.prepare(batch, nodes, edges)`")
        on_p, on_d = inputs.scans
        known = real_edges(inputs, self.edge_features)
        links = Links.of(inputs.batch, known)
        x = self.embed(real_nodes(inputs, self.node_features))
        x, edges = x + degree_code(links.degree, x.shape[-1]), self.embed_edges(known)

        def step(x: Array, learned: tuple[Block, Block]) -> tuple[Array, None]:
            p, d = eqx.combine(learned, self.shared)
            return d(p(x, edges, on_p), edges, on_d), None

        x, _ = jax.lax.scan(step, x, self.stacked, unroll=True)
        x = self.norm(x)
        if self.readout == "nodes":
            return self.decode(x)
        if self.usual_nodes is None:
            return self.decode(mean_nodes(inputs.batch, x))
        return self.decode(sum_nodes(inputs.batch, x) / self.usual_nodes)


def _require_graphs(name: str, op: CompiledScan | OpenScan | GraphScan) -> GraphScan:
    """A scan whose graphs come at run time. Raises SpecError (STM5208) for anything else."""
    op = require_scan(name, op)
    if isinstance(op, GraphScan):
        return op
    message = f"`{name}`, scan `{op.scan.name}`, must run on graphs that are given at run time"
    raise call_error("STM5208", message, help="such as `std:plstm/graph_p`")


def _require_usual(nodes: object) -> float | None:
    """Raises SpecError (STM5208) for what is no number of nodes."""
    if nodes is None or (isinstance(nodes, int | float) and not isinstance(nodes, bool) and 0 < nodes < float("inf")):
        return None if nodes is None else float(nodes)
    message = f"`usual_nodes` must be a number above 0 or None, not {nodes!r}"
    raise call_error("STM5208", message, help="such as the mean number of nodes of the graphs that are learned from")


def _ops(pair: tuple[Block, Block]) -> list[GraphScan]:
    ops: list[GraphScan] = []
    for block in pair:
        assert isinstance(block.scan.op, GraphScan)
        ops.append(block.scan.op)
    return ops


def _stack(*arrays: Array) -> Array:
    return jnp.stack(arrays)


def _pair(p: GraphScan, d: GraphScan, dim: int, expansion: int, key: PRNGKeyArray) -> tuple[Block, Block]:
    first, second = jax.random.split(key)
    return Block(p, dim, expansion=expansion, key=first), Block(d, dim, expansion=expansion, key=second)
