"""The language model over several mixers: stacked layers, steps, generation."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.models.blocks import GLA, Mamba
from stmlang.models.sequence import Attention, LanguageModel, generate
from stmlang.models.sequence.generate import written
from stmlang.nn import ScanLayer
from tests.models.test_blocks import call, in_parts

DIM, VOCABULARY = 8, 11
MIXERS: dict[str, Callable[[], Callable[[jax.Array], Any]]] = {
    "mamba": lambda: _on("mamba", {"key": 3, "value": 16}, Mamba),
    "gla": lambda: _on("gla", {"heads": 2, "key": 3, "value": 4}, GLA),
    "scan": lambda: _on("mlstm", {"heads": 2, "key": 4, "value": 4}, ScanLayer),
    "attention": lambda: lambda key: Attention(DIM, heads=2, context=9, key=key),
}
each = pytest.mark.parametrize("name", MIXERS)
some = pytest.mark.parametrize(
    "name", [name if name in ("gla", "attention") else pytest.param(name, marks=pytest.mark.slow) for name in MIXERS]
)
"""A state and a cache: what of the others is pieced together in the same way is slow."""


def _on(spec: str, sizes: dict[str, int], kind: Any) -> Callable[[jax.Array], Any]:
    op = stmlang.compile(f"std:chain/{spec}", **sizes)
    return lambda key: kind(op, DIM, key=key)


@cache
def model(name: str, depth: int = 2, tied: bool = True) -> LanguageModel:
    return LanguageModel(
        MIXERS[name](), vocabulary=VOCABULARY, dim=DIM, depth=depth, hidden=2 * DIM * tied, tied=tied, key=jax.random.key(0)
    )


def tokens(time: int, seed: int = 1) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).integers(0, VOCABULARY, time))


@each
def test_steps_are_the_whole_sequence(name: str) -> None:
    net, text = model(name), tokens(7)
    logits = call(net, text)
    assert (logits.shape, logits.dtype) == ((7, VOCABULARY), jnp.float32)
    np.testing.assert_allclose(in_parts(net, text, 3), logits, atol=2e-5)


@some
def test_prompts_in_pieces(name: str) -> None:
    net, text = model(name), tokens(6)

    @eqx.filter_jit
    def in_pieces(net: LanguageModel, text: jax.Array) -> jax.Array:
        first, state = net.prefill(net.init_state(), text[:3])
        return jnp.concatenate([first, net.prefill(state, text[3:])[0]])

    np.testing.assert_allclose(in_pieces(net, text), call(net, text), atol=2e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_layers_run_one_after_the_other(tied: bool) -> None:
    net, text = model("gla", tied=tied), tokens(5)

    @eqx.filter_jit
    def one_by_one(net: LanguageModel, text: jax.Array) -> jax.Array:
        x = jax.vmap(net.embed)(text)
        for number in range(2):
            layer = net.layer(number)
            x = x + layer.mixer(layer.before_mixer(x))
            if tied:
                x = x + layer.perceptron(layer.before_perceptron(x))
        weight = net.embed.weight if net.head is None else net.head.weight
        return net.norm(x) @ weight.T

    np.testing.assert_allclose(call(net, text), one_by_one(net, text), atol=1e-5)
    assert (net.head is None) == tied
    assert not np.allclose(net.layer(0).mixer.into.weight, net.layer(1).mixer.into.weight)


@each
def test_gradient_reaches_every_parameter_of_every_layer(name: str) -> None:
    net, text = model(name), jnp.stack([tokens(5), tokens(5, 2)])

    def loss(net: LanguageModel) -> jax.Array:
        logits = jax.nn.log_softmax(jax.vmap(net)(text))
        return -jnp.mean(jnp.take_along_axis(logits[:, :-1], text[:, 1:, None], axis=-1))

    for path, gradient in jax.tree_util.tree_leaves_with_path(eqx.filter_jit(eqx.filter_grad(loss))(net)):
        assert np.isfinite(gradient).all(), path
        layers = gradient if any(getattr(entry, "name", "") == "stacked" for entry in path) else gradient[None]
        assert all(np.abs(layer).max() > 0 for layer in layers), path


def test_deeper_models_are_no_larger_programs() -> None:
    def operations(depth: int) -> int:
        net = model("gla", depth)
        return eqx.filter_jit(lambda net, text: net(text)).lower(net, tokens(5)).as_text().count(" = ")

    assert operations(6) < 1.2 * operations(2)


@some
def test_generation_takes_the_likeliest(name: str) -> None:
    net, prompt = model(name), tokens(3)
    written = eqx.filter_jit(generate)(net, prompt, 4, temperature=0.0, key=jax.random.key(0))
    text = jnp.concatenate([prompt, written])
    np.testing.assert_array_equal(written, jnp.argmax(call(net, text), axis=-1)[2:-1])


def test_generation_draws_by_the_logits() -> None:
    net, prompt = model("gla"), tokens(3)
    draw = eqx.filter_jit(jax.vmap(lambda key: generate(net, prompt, 1, temperature=2.0, key=key)[0]))
    drawn = np.bincount(draw(jax.random.split(jax.random.key(0), 4000)), minlength=VOCABULARY) / 4000
    np.testing.assert_allclose(drawn, jax.nn.softmax(call(net, prompt)[-1] / 2), atol=0.04)


def test_bfloat16_streams_give_float32_logits() -> None:
    sizes = {"vocabulary": VOCABULARY, "dim": DIM, "depth": 2, "hidden": 2 * DIM}
    narrow = LanguageModel(MIXERS["gla"](), **sizes, dtype=jnp.bfloat16, key=jax.random.key(0))
    assert narrow.layer(0)(jnp.ones((3, DIM), jnp.bfloat16)).dtype == jnp.bfloat16
    logits = call(narrow, tokens(5))
    assert logits.dtype == jnp.float32
    np.testing.assert_allclose(logits, call(model("gla"), tokens(5)), atol=0.1)


@each
def test_strict_ranks_and_types(name: str) -> None:
    net = model(name)
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        assert eqx.filter_eval_shape(in_parts, net, tokens(4), 2).shape == (4, VOCABULARY)


def test_attention_in_float64() -> None:
    with jax.enable_x64(True):
        attention = Attention(DIM, heads=2, context=9, dtype="float64", key=jax.random.key(0))
        x = jax.random.normal(jax.random.key(1), (5, DIM), "float64")
        y = call(attention, x)
        assert y.dtype == jnp.float64
        np.testing.assert_allclose(in_parts(attention, x, 2), y, atol=1e-14)


def test_attention_is_that_of_its_equation() -> None:
    attention, time = Attention(DIM, heads=2, context=9, key=jax.random.key(0)), 5
    x = jax.random.normal(jax.random.key(1), (time, DIM))
    q, k, v = np.split(np.asarray(x @ attention.into.weight.T, np.float64), 3, axis=-1)
    expected = np.zeros((time, DIM))
    for head in range(2):
        entries = slice(4 * head, 4 * head + 4)
        turn = np.exp(1j * np.arange(time)[:, None] * 10_000.0 ** (-np.arange(2) / 2))
        turned_q, turned_k = ((a[:, entries][:, :2] + 1j * a[:, entries][:, 2:]) * turn for a in (q, k))
        scores = (turned_q @ turned_k.conj().T).real / 2
        weights = np.tril(np.exp(scores))
        expected[:, entries] = weights / weights.sum(-1, keepdims=True) @ v[:, entries]
    np.testing.assert_allclose(attention(x), expected @ np.asarray(attention.out.weight).T, atol=1e-5)


@pytest.mark.parametrize("room", [11, 12, 16])
def test_caches_are_read_in_pieces(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one reaches to the end of the cache, or begins before the one before it ends."""
    monkeypatch.setattr("stmlang.models.sequence.transformer.PIECE", 4)
    attention = Attention(DIM, heads=2, context=room, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (11, DIM))
    np.testing.assert_allclose(in_parts(attention, x, 5), call(attention, x), atol=1e-6)


def test_a_cache_is_written_where_it_lies() -> None:
    """The compiled loop that writes tokens has no copy of the cache of all layers, nor of one layer's."""
    room, sizes = 1531, {"vocabulary": 5, "dim": DIM, "depth": 3, "hidden": 4}
    net = LanguageModel(lambda key: Attention(DIM, heads=2, context=room, key=key), **sizes, key=jax.random.key(0))

    def tokens(net: LanguageModel, state: Any, logits: jax.Array) -> Any:
        return written(net, state, logits, 7, temperature=0.0, key=jax.random.key(0))

    text = jax.jit(tokens, donate_argnums=1).lower(net, net.init_state(), jnp.zeros(5, jnp.float32)).compile().as_text()
    assert text is not None
    made = re.findall(rf"= f32\[(?:\d+,)*{room}\]\S* ([a-z-]+)\((\S*?)[,)]", text)
    assert {"fusion", "parameter"} <= {kind for kind, _ in made}
    assert {kind for kind, _ in made} <= {"parameter", "get-tuple-element", "bitcast", "fusion", "dynamic-update-slice"}
    fused = re.findall(rf"(\S+) = f32\[(?:\d+,)*{room}\]\S* fusion\(", text)
    assert all("dynamic-update-slice" in name for name in fused), fused


def test_attention_gives_nothing_behind_its_cache() -> None:
    attention = Attention(DIM, heads=2, context=3, key=jax.random.key(0))
    y = in_parts(attention, jnp.ones((5, DIM)), 4)
    assert np.isfinite(y[:3]).all()
    assert np.isnan(y[3:]).all()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"depth": 0}, "`depth`"), ({"mixer": 3}, "function from a key"), ({"tied": 1}, "tied"), ({"dtype": "int32"}, "dtype")],
)
def test_what_no_model_is_made_of(wrong: dict[str, Any], said: str) -> None:
    fitting = {"mixer": MIXERS["attention"](), "vocabulary": 5, "dim": 8, "depth": 1}
    with pytest.raises(stmlang.SpecError, match=said):
        LanguageModel(**(fitting | wrong), key=jax.random.key(0))


def test_attention_and_generation_refuse_what_does_not_fit() -> None:
    with pytest.raises(stmlang.SpecError, match="one even width"):
        Attention(6, heads=2, context=4, key=jax.random.key(0))
    with pytest.raises(stmlang.SpecError, match="token at least"):
        generate(model("attention"), tokens(0), 3, key=jax.random.key(0))
    with pytest.raises(stmlang.SpecError, match="temperature"):
        generate(model("attention"), tokens(2), 3, temperature=-1.0, key=jax.random.key(0))
