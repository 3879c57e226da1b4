"""One round of messages between neighbours, as each baseline has it.

A round takes the state of the nodes, of which the first array, `h`, is what a node tells others, and the links; it returns the
new state. `N(i)` are the neighbours of node `i`, with one link for each edge between them.
"""

from __future__ import annotations

from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.graph.inputs import Links
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_size
from stmlang.nn.start import normal
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import call_error

State = tuple[Float[Array, "nodes dim"], ...]

RELU = 2**0.5
"""Gain of weights in front of a ReLU."""


class Round(Protocol):
    """What every round is."""

    def __call__(self, state: State, links: Links) -> State: ...


class GCN(eqx.Module):
    """A mean weighted by degrees, over the neighbours and the node itself (Kipf and Welling, 2016):

    h_i' = relu(W sum over j of h_j / sqrt((1 + |N(i)|) (1 + |N(j)|)) + b)
    """

    linear: Linear

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, dim: int, *, key: PRNGKeyArray) -> None:
        self.linear = Linear(dim, dim, gain=RELU, key=key)

    def __call__(self, state: State, links: Links) -> State:
        (h,), scale = state, jax.lax.rsqrt(1 + links.degree)[:, None]
        shared = scale * h
        return (jax.nn.relu(self.linear(scale * (links.sum(shared[links.sender]) + shared))),)


class GAT(eqx.Module):
    """Each head takes a weighted mean of its part of `W h_j` over the neighbours and the node itself (Velickovic et al., 2018):

    h_i' = elu(sum over j of a_ij W h_j + b),    a_ij = softmax over j of leaky_relu(s . W h_j + r . W h_i)
    """

    linear: Linear
    send: Float[Array, "head width"]
    receive: Float[Array, "head width"]
    bias: Float[Array, " dim"]

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, dim: int, *, heads: int = 4, key: PRNGKeyArray) -> None:
        """Raises SpecError (STM5208) where the heads do not divide `dim`."""
        heads = require_size("heads", heads)
        if dim % heads:
            raise call_error("STM5208", f"{dim} features cannot be divided among {heads} heads", help="choose another `dim`")
        linear, send, receive = jax.random.split(key, 3)
        self.linear = Linear(dim, dim, gain=1.0, key=linear)
        self.send, self.receive = (
            normal(subkey, (heads, dim // heads), gain=1.0, dtype=jnp.dtype(jnp.float32)) for subkey in (send, receive)
        )
        self.bias = jnp.zeros(dim, jnp.float32)

    def __call__(self, state: State, links: Links) -> State:
        (h,), heads = state, len(self.send)
        value = self.linear(h).reshape(len(h), heads, -1)
        sent, received = (jnp.sum(value * vector, axis=-1) for vector in (self.send, self.receive))
        own = jax.nn.leaky_relu(sent + received, 0.2)
        score = jax.nn.leaky_relu(sent[links.sender] + received[links.receiver], 0.2)
        score = jnp.where(links.real[:, None], score, -jnp.inf)
        largest = jax.ops.segment_max(score, links.receiver, len(h))
        most = jax.lax.stop_gradient(jnp.maximum(own, largest))
        weight, own = jnp.exp(score - most[links.receiver]), jnp.exp(own - most)
        summed = links.sum(weight[..., None] * value[links.sender]) + own[..., None] * value
        mean = summed / (links.sum(weight) + own)[..., None]
        return (jax.nn.elu(mean.reshape(h.shape) + self.bias),)


class GraphNorm(eqx.Module):
    """Each feature normalized over the nodes of a graph (Cai et al., 2021), with means over those and learned vectors:

    y = scale (x - shift mean(x)) / sqrt(mean((x - shift mean(x))^2) + eps) + bias
    """

    shift: Float[Array, " dim"]
    scale: Float[Array, " dim"]
    bias: Float[Array, " dim"]
    eps: float = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, dim: int) -> None:
        self.shift, self.scale, self.bias = jnp.ones(dim, jnp.float32), jnp.ones(dim, jnp.float32), jnp.zeros(dim, jnp.float32)
        self.eps = 1e-5

    def __call__(self, x: Float[Array, "nodes dim"], links: Links) -> Float[Array, "nodes dim"]:
        moved = x - self.shift * links.graph_mean(x)
        return self.scale * moved * jax.lax.rsqrt(links.graph_mean(moved**2) + self.eps) + self.bias


class GIN(eqx.Module):
    """`h_i' = perceptron((1 + eps) h_i + sum over j in N(i) of h_j)` (Xu et al., 2019).

    Its perceptron normalizes what it holds between its layers over the nodes of each graph. The original does so over the whole
    batch, which would let a graph's result depend on the graphs beside it. Node by node would not do: it takes away how many
    neighbours a node has, which is what the sum tells (on MUTAG some 13 points of accuracy).
    """

    eps: Float[Array, ""]
    up: Linear
    norm: GraphNorm
    down: Linear

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, dim: int, *, key: PRNGKeyArray) -> None:
        up, down = jax.random.split(key)
        self.eps, self.norm = jnp.zeros((), jnp.float32), GraphNorm(dim)
        self.up, self.down = Linear(dim, dim, gain=RELU, key=up), Linear(dim, dim, gain=RELU, key=down)

    def __call__(self, state: State, links: Links) -> State:
        (h,) = state
        return self.updated(h, links.sum(h[links.sender]), links)

    def updated(self, h: Float[Array, "nodes dim"], message: Float[Array, "nodes dim"], links: Links) -> State:
        """The state of nodes that are told `message`."""
        total = (1 + self.eps) * h + message
        return (jax.nn.relu(self.down(jax.nn.relu(self.norm(self.up(total), links)))),)


class GINE(eqx.Module):
    """`GIN` whose messages are `relu(h_j + W e_ij + b)`: links differ by what is known of them (Hu et al., 2020)."""

    links: Linear
    rest: GIN

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, dim: int, *, edge_features: int = 0, key: PRNGKeyArray) -> None:
        links, rest = jax.random.split(key)
        self.links, self.rest = Linear(edge_features, dim, gain=1.0, key=links), GIN(dim, key=rest)

    def __call__(self, state: State, links: Links) -> State:
        (h,) = state
        return self.rest.updated(h, links.sum(jax.nn.relu(h[links.sender] + self.links(links.features))), links)


class MPNN(eqx.Module):
    """Messages by a perceptron of both ends and the edge, an update by a gated unit (Gilmer et al., 2017):

    m_i  = sum over j in N(i) of W_2 relu(W_1 (h_i, h_j, e_ij) + b_1) + b_2
    z, r = sigmoid(A_z m + B_z h), sigmoid(A_r m + B_r h),    n = tanh(A_n m + r B_n h),    h' = z h + (1 - z) n

    with a bias in each of the maps A and B.
    """

    up: Linear
    down: Linear
    from_message: Linear
    from_state: Linear

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, dim: int, *, edge_features: int = 0, key: PRNGKeyArray) -> None:
        up, down, message, state = jax.random.split(key, 4)
        self.up = Linear(2 * dim + edge_features, dim, gain=RELU, key=up)
        self.down = Linear(dim, dim, gain=1.0, key=down)
        self.from_message, self.from_state = (Linear(dim, 3 * dim, gain=1.0, key=subkey) for subkey in (message, state))

    def __call__(self, state: State, links: Links) -> State:
        (h,) = state
        ends = jnp.concatenate([h[links.receiver], h[links.sender], links.features], axis=-1)
        message = links.sum(self.down(jax.nn.relu(self.up(ends))))
        a_z, a_r, a_n = jnp.split(self.from_message(message), 3, axis=-1)
        b_z, b_r, b_n = jnp.split(self.from_state(h), 3, axis=-1)
        keep, reset = jax.nn.sigmoid(a_z + b_z), jax.nn.sigmoid(a_r + b_r)
        return (keep * h + (1 - keep) * jnp.tanh(a_n + reset * b_n),)


class GraphLSTM(eqx.Module):
    """The graph LSTM of Liang et al. (2016), all nodes at once where the original goes from node to node by confidence:

    u, o, c = sigmoid, sigmoid, tanh of (W x_i + U h_i + V mean over j in N(i) of h_j + b)
    f_i     = sigmoid(W_f x_i + U_f h_i + b_f),    f_ij = sigmoid(W_f x_i + V_f h_j + b_f)
    m_i'    = mean over j in N(i) of f_ij m_j + f_i m_i + u c,    h_i' = tanh(o m_i')

    The state is `(h, m, x)`: `m` is its memory, `x` what the encoder said of a node, which stays.
    """

    from_features: Linear
    from_state: Float[Array, "gates dim"]
    from_neighbours: Float[Array, "gates dim"]

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, dim: int, *, key: PRNGKeyArray) -> None:
        features, state, neighbours = jax.random.split(key, 3)
        self.from_features = Linear(dim, 4 * dim, gain=1.0, key=features)
        self.from_state, self.from_neighbours = (
            normal(subkey, (4 * dim, dim), gain=1.0, dtype=jnp.dtype(jnp.float32)) for subkey in (state, neighbours)
        )

    def __call__(self, state: State, links: Links) -> State:
        (h, m, x), dim = state, state[0].shape[-1]
        # The gates are f, u, o, c, in this order.
        read, sent = self.from_features(x), h @ self.from_neighbours.T
        own = read + h @ self.from_state.T
        around = links.mean(sent[links.sender, dim:])
        forget = jax.nn.sigmoid(read[links.receiver, :dim] + sent[links.sender, :dim])
        update, out, new = jnp.split(own[:, dim:] + around, 3, axis=-1)
        kept = links.mean(forget * m[links.sender]) + jax.nn.sigmoid(own[:, :dim]) * m
        m = kept + jax.nn.sigmoid(update) * jnp.tanh(new)
        return jnp.tanh(jax.nn.sigmoid(out) * m), m, x
