"""A function with a hand-written adjoint is the same function in every transformation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.lower.adjoint import with_adjoint

calls: list[str] = []


def plain(weights: dict[str, Any], x: Any, which: Any) -> tuple[Any, Any]:
    y = jnp.sin(weights["a"] @ x) * weights["b"]
    return y, y[which]


def forward(weights: dict[str, Any], x: Any, which: Any) -> tuple[Any, Any]:
    inner = weights["a"] @ x
    y = jnp.sin(inner) * weights["b"]
    return (y, y[which]), (inner, jnp.argmax(inner))


def backward(args: tuple[Any, ...], saved: Any, cotangent: Any) -> tuple[Any, ...]:
    weights, x, which = args
    inner, _ = saved
    calls.append("backward")
    dy = cotangent[0].at[which].add(cotangent[1])
    dinner = dy * weights["b"] * jnp.cos(inner)
    return {"a": jnp.outer(dinner, x), "b": dy * jnp.sin(inner)}, weights["a"].T @ dinner, None


function = with_adjoint(plain, forward, backward)
RANDOM = np.random.default_rng(0)
WEIGHTS = {"a": jnp.asarray(RANDOM.normal(size=(3, 4))), "b": jnp.asarray(RANDOM.normal(size=3))}
X = jnp.asarray(RANDOM.normal(size=4))
MANY = jnp.asarray(RANDOM.normal(size=(5, 4)))
WHICH = jnp.asarray([2, 0])


def loss(f: Any) -> Any:
    def of(weights: Any, x: Any) -> Any:
        y, picked = f(weights, x, WHICH)
        return (y**3).sum() + (picked**2).sum()

    return of


def near(a: Any, b: Any) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12), a, b)


@pytest.mark.parametrize("jit", [False, True])
def test_transformations(jit: bool) -> None:
    wrap = jax.jit if jit else lambda f: f
    tangents = jax.tree.map(jnp.cos, (WEIGHTS, X))

    def compare(transform: Any, *args: Any) -> None:
        near(wrap(transform(loss(function)))(*args), jax.jit(transform(loss(plain)))(*args))

    compare(lambda f: f, WEIGHTS, X)
    compare(lambda f: jax.grad(f, (0, 1)), WEIGHTS, X)
    compare(lambda f: lambda *a: jax.jvp(f, a, tangents), WEIGHTS, X)
    compare(lambda f: jax.vmap(jax.grad(f, (0, 1)), (None, 0)), WEIGHTS, MANY)
    if not jit:  # each operation is a program where nothing is compiled as a whole
        return
    compare(lambda f: jax.grad(f, 1), WEIGHTS, X)
    compare(lambda f: jax.grad(jax.checkpoint(f), (0, 1)), WEIGHTS, X)
    compare(lambda f: jax.hessian(f, (0, 1)), WEIGHTS, X)
    compare(lambda f: jax.jacfwd(jax.jacfwd(f, 1), 1), WEIGHTS, X)
    compare(lambda f: jax.vmap(f, (None, 0)), WEIGHTS, MANY)
    compare(lambda f: jax.grad(lambda w, x: jax.vmap(f, (None, 0))(w, x).sum(), (0, 1)), WEIGHTS, MANY)
    compare(lambda f: jax.jacrev(jax.grad(f, (0, 1)), (0, 1)), WEIGHTS, X)
    compare(lambda f: jax.hessian(lambda w, x: jax.vmap(f, (None, 0))(w, x).sum(), (0, 1)), WEIGHTS, MANY)
    compare(lambda f: jax.jacrev(lambda w: jax.lax.scan(lambda c, x: (c + f(w, x), c), 0.0, MANY)[1]), WEIGHTS)


def test_reverse_mode_uses_the_adjoint() -> None:
    calls.clear()
    jax.grad(loss(function), (0, 1))(WEIGHTS, X)
    assert calls == ["backward"]


def test_forward_mode_does_not() -> None:
    calls.clear()
    jax.jvp(lambda x: loss(function)(WEIGHTS, x), (X,), (X,))
    assert not calls


def test_saved_values_are_computed_once() -> None:
    text = str(jax.make_jaxpr(jax.grad(loss(function), 1))(WEIGHTS, X))
    assert text.count("= sin") == 2  # one in the forward pass, one for the cotangent of b, which is not asked for


def test_a_result_that_does_not_depend_on_what_is_mapped() -> None:
    """Under `jit` too, where the function is mapped over before its derivative is known."""

    def product(a: Any, b: Any) -> tuple[Any, Any]:
        return a * b, 2 * b

    def pulled(args: tuple[Any, ...], _: Any, cotangent: Any) -> tuple[Any, ...]:
        return jnp.sum(cotangent[0] * args[1]), cotangent[0] * args[0] + 2 * cotangent[1]

    ours = jax.jit(with_adjoint(product, lambda a, b: (product(a, b), None), pulled))

    def total(f: Any) -> Any:
        return lambda a, b: sum(part.sum() for part in jax.vmap(f, (0, None))(a, b))

    args = (jnp.arange(3.0), jnp.ones(2))
    near(jax.grad(total(ours), (0, 1))(*args), jax.grad(total(product), (0, 1))(*args))


def test_transposed_where_it_is_linear() -> None:
    """`jax.linear_transpose` asks for the transpose of the function itself, not of its tangents."""
    product = with_adjoint(
        lambda weights, x: weights @ x,
        lambda weights, x: (weights @ x, ()),
        lambda args, _, cotangent: (jnp.outer(cotangent, args[1]), args[0].T @ cotangent),
    )
    cotangent = jnp.asarray([1.0, -2.0, 0.5])
    (back,) = jax.linear_transpose(lambda x: product(WEIGHTS["a"], x), X)(cotangent)
    near(back, WEIGHTS["a"].T @ cotangent)
