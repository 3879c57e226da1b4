"""A residual language model over any mixer of a chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from stmlang.lower.mesh_axes import rows_at
from stmlang.models.blocks.passes import Mixer
from stmlang.models.parts import Linear, Perceptron
from stmlang.nn import RMSNorm
from stmlang.nn.errors import require_key, require_size, require_type
from stmlang.nn.leaves import applied
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import call_error, flag, widest

START = 0.02
"""Standard deviation of embeddings: small, since a tied head starts with a logit of about `START dim` for the token it read."""
MakeMixer = Callable[[PRNGKeyArray], Any]
"""From a key to a new `Mixer` of the model's width."""


@runtime_checkable
class Appending(Protocol):
    """A mixer that reads its states as they are and adds to their end: `Attention`. A loop over layers that takes them
    apart and puts the next ones together would copy them whole for every token.

    `mixer.read(states, layer, x)`, `x: (time, dim)`, is `prefill` on one layer's state of all, which are stacked, and gives
    what is added in place of the next state; `mixer.appended(states, entries)` adds the entries of all layers, stacked alike.
    """

    def read(self, states: Any, layer: Array, x: Array, /) -> tuple[Array, Any]: ...

    def appended(self, states: Any, entries: Any, /) -> Any: ...


class Layer(eqx.Module):
    """`x + mixer(norm(x))`, then `x + perceptron(norm(x))` where there is one."""

    before_mixer: RMSNorm
    mixer: Mixer
    before_perceptron: RMSNorm | None
    perceptron: Perceptron | None

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, mixer: MakeMixer, dim: int, hidden: int, *, key: PRNGKeyArray) -> None:
        own, perceptron = jax.random.split(key)
        self.before_mixer, self.mixer = RMSNorm((dim,), dtype=jnp.float32), mixer(own)
        self.before_perceptron = RMSNorm((dim,), dtype=jnp.float32) if hidden else None
        self.perceptron = Perceptron(dim, hidden, key=perceptron) if hidden else None

    def __call__(self, x: Float[Array, "time dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "time dim"]:
        del key
        return self._behind(x, self.mixer(self.before_mixer(x)))

    def prefill(self, state: Any, x: Float[Array, "time dim"]) -> tuple[Float[Array, "time dim"], Any]:
        y, state = self.mixer.prefill(state, self.before_mixer(x))
        return self._behind(x, y), state

    def step(self, state: Any, x: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], Any]:
        y, state = self.mixer.step(state, self.before_mixer(x))
        return self._behind(x, y), state

    def read(self, states: Any, layer: Array, x: Float[Array, "time dim"]) -> tuple[Float[Array, "time dim"], Any]:
        """`prefill` of a mixer that is `Appending`."""
        y, entries = cast(Appending, self.mixer).read(states, layer, self.before_mixer(x))
        return self._behind(x, y), entries

    def _behind(self, x: Float[Array, "*time dim"], mixed: Float[Array, "*time dim"]) -> Float[Array, "*time dim"]:
        x = x + mixed
        if self.before_perceptron is None or self.perceptron is None:
            return x
        return x + self.perceptron(self.before_perceptron(x))


class LanguageModel(eqx.Module):
    """Logits of the next token: an embedding, `depth` layers, a norm, a linear head.

        model = LanguageModel(lambda key: GLA(op, 128, key=key), vocabulary=65, dim=128, depth=4, key=key)
        logits = model(tokens)                                   # (time, vocabulary), in float32
        logits, state = model.prefill(model.init_state(), prompt)
        logits, state = model.step(state, token)                 # (vocabulary,)

    Any `Mixer` will do: the blocks of `stmlang.models.blocks`, `Attention` of this folder, a `ScanLayer` around any spec that
    runs forward on a chain. The parameters of all layers are stacked and the layers run in a `lax.scan`: a layer is traced and
    compiled once, however deep the model; so are their states. One sequence a call; batches by `jax.vmap`.
    """

    embed: eqx.nn.Embedding
    stacked: Layer
    shared: Layer
    norm: RMSNorm
    head: Linear | None
    vocabulary: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    dtype: str = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(
        self,
        mixer: MakeMixer,
        *,
        vocabulary: int,
        dim: int,
        depth: int,
        hidden: int | None = None,
        tied: bool = True,
        dtype: Any = "float32",
        key: PRNGKeyArray,
    ) -> None:
        """Perceptrons have `hidden` features between their maps, `4 dim` if None; with 0 there are none, as Mamba and mLSTM
        have it. A `tied` head is the embedding itself. `dtype` is that of the stream between layers; parameters are in float32.
        Raises SpecError (STM5208) for what no model can be made of."""
        self.vocabulary, self.dim = require_size("vocabulary", vocabulary), require_size("dim", dim)
        self.depth = require_size("depth", depth)
        hidden = 4 * self.dim if hidden is None else require_size("hidden", hidden, 0)
        self.dtype = require_type("dtype", dtype).name
        if not callable(mixer):
            help = "such as `lambda key: GLA(op, dim, key=key)`"
            raise call_error("STM5208", "`mixer` must be a function from a key to a new mixer", help=help)
        embed, head, *layers = jax.random.split(require_key(key), 2 + depth)
        self.embed = eqx.nn.Embedding(weight=START * jax.random.normal(embed, (vocabulary, dim), jnp.float32))
        made = [Layer(mixer, dim, hidden, key=own) for own in layers]
        learned = [cast(Layer, eqx.filter(layer, eqx.is_inexact_array)) for layer in made]
        self.stacked = jax.tree.map(_stack, *learned)
        self.shared = cast(Layer, eqx.filter(made[0], eqx.is_inexact_array, inverse=True))
        self.norm = RMSNorm((dim,), dtype=jnp.float32)
        self.head = None if flag("tied", tied) else Linear(dim, vocabulary, gain=1.0, use_bias=False, key=head)

    def layer(self, number: int) -> Layer:
        """One layer, as a module of its own."""

        def take(array: Array) -> Array:
            return array[number]

        return eqx.combine(jax.tree.map(take, self.stacked), self.shared)

    def __call__(self, tokens: Int[Array, " time"], *, key: PRNGKeyArray | None = None) -> Float[Array, "time vocabulary"]:
        del key

        def through(x: Array, learned: Layer) -> tuple[Array, None]:
            return eqx.combine(learned, self.shared)(x), None

        return self._logits(jax.lax.scan(through, self._embedded(tokens), self.stacked)[0])

    def init_state(self) -> Any:
        """The states of all layers before the first token, stacked."""
        first = self.layer(0).mixer.init_state()

        def repeat(array: Array) -> Array:
            return jnp.broadcast_to(array, (self.depth, *array.shape))

        return jax.tree.map(repeat, first)

    def prefill(self, state: Any, tokens: Int[Array, " time"]) -> tuple[Float[Array, "time vocabulary"], Any]:
        """The logits behind each of many tokens, read at once, and the states behind the last."""
        if isinstance(self.shared.mixer, Appending):
            return self._appending(state, tokens)

        def through(x: Array, layer: tuple[Layer, Any]) -> tuple[Array, Any]:
            return eqx.combine(layer[0], self.shared).prefill(layer[1], x)

        x, state = jax.lax.scan(through, self._embedded(tokens), (self.stacked, state))
        return self._logits(x), state

    def step(self, state: Any, token: Int[Array, ""]) -> tuple[Float[Array, " vocabulary"], Any]:
        """The logits behind one more token, and the states behind it."""
        if isinstance(self.shared.mixer, Appending):
            logits, state = self._appending(state, token[None])
            return logits[0], state

        def through(x: Array, layer: tuple[Layer, Any]) -> tuple[Array, Any]:
            return eqx.combine(layer[0], self.shared).step(layer[1], x)

        x, state = jax.lax.scan(through, self._embedded(token), (self.stacked, state))
        return self._logits(x), state

    def _appending(self, state: Any, tokens: Int[Array, " time"]) -> tuple[Float[Array, "time vocabulary"], Any]:
        """`prefill` where states stay where they lie."""

        def through(x: Array, layer: tuple[Layer, Array]) -> tuple[Array, Any]:
            return eqx.combine(layer[0], self.shared).read(state, layer[1], x)

        numbers = jnp.arange(self.depth, dtype=jnp.int32)
        x, entries = jax.lax.scan(through, self._embedded(tokens), (self.stacked, numbers))
        return self._logits(x), cast(Appending, self.shared.mixer).appended(state, entries)

    def _embedded(self, tokens: Int[Array, "*time"]) -> Float[Array, "*time dim"]:
        return rows_at(self.embed.weight, tokens).astype(self.dtype)

    def _logits(self, x: Float[Array, "*time dim"]) -> Float[Array, "*time vocabulary"]:
        weight = self.embed.weight if self.head is None else self.head.weight
        wide = x.astype(widest(x.dtype))
        return applied(weight, self.norm(wide), 1, wide.dtype)


def _stack(*arrays: Array) -> Array:
    return jnp.stack(arrays)
