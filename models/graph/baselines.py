"""The models that pLSTM is compared with: an encoder, rounds of messages along edges in both senses, a sum, a decoder.

Sizes are the paper's, 128 features and 4 or 8 rounds, and so is the bound of 300,000 parameters. Where it takes that, all
rounds share their parameters: in the message passing network, as its authors have it, and in the graph LSTM.
"""

from __future__ import annotations

from typing import Literal, assert_never, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.graph import Batch, Shares
from stmlang.models.graph.inputs import Decoder, Features, Inputs, Links, Readout, prepared, real_edges, real_nodes, sum_nodes
from stmlang.models.graph.rounds import GAT, GCN, GIN, GINE, MPNN, GraphLSTM, Round, State
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.options import word

Kind = Literal["gcn", "gat", "gin", "gine", "mpnn", "lstm"]


class GNN(eqx.Module):
    """Rounds one after the other, in a `lax.scan`: a round is compiled once, however many there are.

    `rounds` holds the parameters of each along a first axis, or those that all rounds share. The graph isomorphism networks
    decode the states after every round and before the first, each linearly, and add up what that gives; all others decode the
    last state by a perceptron. What is decoded is the sum over a graph's nodes or, with the readout "nodes", each node.
    """

    embed: Linear
    rounds: Round
    decode: Decoder | Linear
    kind: Kind = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    node_features: int = eqx.field(static=True)
    edge_features: int = eqx.field(static=True)
    readout: Readout = eqx.field(static=True)
    directed: bool = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(
        self,
        kind: Kind,
        *,
        classes: int,
        node_features: int,
        edge_features: int,
        dim: int = 128,
        depth: int = 4,
        readout: Readout = "graph",
        directed: bool = False,
        key: PRNGKeyArray,
    ) -> None:
        """There may be no edge features; only `gine` and `mpnn` read them, and which way an edge leads if `directed`. Raises
        SpecError: STM5010 for an unknown `kind` or `readout`, STM5208 for anything else that no model can be made of."""
        self.kind = cast(Kind, word("kind", kind, get_args(Kind)))
        classes, dim = require_size("classes", classes), require_size("dim", dim)
        self.depth = require_size("depth", depth)
        self.node_features = require_size("node_features", node_features)
        self.edge_features = require_size("edge_features", edge_features, 0)
        self.readout, self.directed = cast(Readout, word("readout", readout, get_args(Readout))), directed
        embed, rounds, decode = jax.random.split(require_key(key), 3)
        self.embed = Linear(self.node_features, dim, gain=1.0, key=embed)
        self.rounds = self._rounds(dim, rounds)
        if self.every_round:
            self.decode = Linear((self.depth + 1) * dim, classes, gain=1.0, key=decode)
        else:
            self.decode = Decoder(dim, classes, key=decode)

    @property
    def shared(self) -> bool:
        """Whether all rounds have the same parameters."""
        return self.kind in ("mpnn", "lstm")

    @property
    def every_round(self) -> bool:
        """Whether the states after all rounds are decoded, and not the last one only."""
        return self.kind in ("gin", "gine")

    def _rounds(self, dim: int, key: PRNGKeyArray) -> Round:
        def fresh_round(key: PRNGKeyArray) -> Round:
            match self.kind:
                case "gcn":
                    return GCN(dim, key=key)
                case "gat":
                    return GAT(dim, key=key)
                case "gin":
                    return GIN(dim, key=key)
                case "gine":
                    return GINE(dim, edge_features=self.edge_features + self.directed, key=key)
                case "mpnn":
                    return MPNN(dim, edge_features=self.edge_features + self.directed, key=key)
                case "lstm":
                    return GraphLSTM(dim, key=key)
                case _:
                    assert_never(self.kind)

        return fresh_round(key) if self.shared else eqx.filter_vmap(fresh_round)(jax.random.split(key, self.depth))

    def prepare(self, batch: Batch | Shares, nodes: Features, edges: Features) -> Inputs:
        """See `prepared`."""
        return prepared(batch, nodes, edges)

    def __call__(self, inputs: Inputs, *, key: PRNGKeyArray | None = None) -> Float[Array, "rows classes"]:
        """A row for each graph, or for each node. Raises SpecError (STM5201) for features of another width."""
        del key
        links = Links.of(inputs.batch, real_edges(inputs, self.edge_features), self.directed)
        x = self.embed(real_nodes(inputs, self.node_features))
        learned = cast(Round, eqx.filter(self.rounds, eqx.is_inexact_array))
        fixed = cast(Round, eqx.filter(self.rounds, eqx.is_inexact_array, inverse=True))
        start = (x, jnp.zeros_like(x), x) if self.kind == "lstm" else (x,)

        def read(x: Array) -> Array:
            return x if self.readout == "nodes" else sum_nodes(inputs.batch, x)

        def step(state: State, own: Round | None) -> tuple[State, Array | None]:
            state = eqx.combine(learned if own is None else own, fixed)(state, links)
            return state, read(state[0]) if self.every_round else None

        last, read_after = jax.lax.scan(step, start, None if self.shared else learned, length=self.depth)
        if read_after is None:
            return self.decode(read(last[0]))
        # The first axis is that of rounds; behind each other they are the features of one linear map.
        every = jnp.concatenate([read(x)[None], read_after])
        return self.decode(jnp.moveaxis(every, 0, 1).reshape(every.shape[1], -1))
