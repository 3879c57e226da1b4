"""Coefficients from times: the numbers that make what is predicted rank as what was measured.

A candidate is predicted to take `t = A w`, `A` its seconds term by term at coefficients of one, `w` the coefficients. With
`x = log(t / measured)`, of the same session averaged `m`, and `r` how much slower than the session's fastest, the loss is

    sum  huber(x - m) / r  +  LEVEL m^2  +  RANKING (expected regret)  +  PRIOR (log w - log prior)^2

where the expected regret of a session is `sum softmax(-log t / SHARP) (r - 1)`: what is lost by choosing by `t`, made smooth.
Logarithms of coefficients are free, so they stay positive. A session's own level counts little: all of it may have run while
the machine was busy.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy import optimize

BEND = 0.3
"""Where Huber's loss turns from squares to absolute values: errors above are taken for faults of the model or the
measurement."""
LEVEL = 0.1
RANKING = 1.0
SHARP = 0.1
PRIOR = 0.02
LOWEST, HIGHEST = 1e-4, 1e4


@dataclass(frozen=True)
class Observations:
    """`seconds` of each candidate, what each takes by term at coefficients of one, and the session each was timed in."""

    terms: Float[np.ndarray, "candidates terms"]
    seconds: Float[np.ndarray, " candidates"]
    session: Int[np.ndarray, " candidates"]

    @property
    def sessions(self) -> int:
        return int(self.session.max(initial=-1)) + 1


def fit(observations: Observations, prior: Float[np.ndarray, " terms"], strength: float = PRIOR) -> Float[np.ndarray, " terms"]:
    """The coefficients that lose least. Those that nothing depends on stay as they were."""
    with jax.enable_x64(True):
        loss = jax.jit(jax.value_and_grad(_loss(observations, prior, strength)))

        def evaluated(logs: Float[np.ndarray, " terms"]) -> tuple[float, Float[np.ndarray, " terms"]]:
            value, slope = loss(logs)
            return float(value), np.asarray(slope)

        bounds = [(np.log(LOWEST), np.log(HIGHEST))] * len(prior)
        options = {"maxiter": 2000, "maxfun": 4000}
        result: Any = optimize.minimize(evaluated, np.log(prior), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.exp(result.x)


def _loss(observations: Observations, prior: Float[np.ndarray, " terms"], strength: float) -> Any:
    count, session = observations.sessions, jnp.asarray(observations.session)
    least = np.full(count, np.inf)
    np.minimum.at(least, observations.session, observations.seconds)
    slower = jnp.asarray(observations.seconds / least[observations.session])
    measured, terms, start = jnp.log(observations.seconds), jnp.asarray(observations.terms), jnp.log(prior)
    size = jax.ops.segment_sum(jnp.ones(len(observations.seconds)), session, count)

    def loss(logs: Any) -> Any:
        predicted = jnp.log(terms @ jnp.exp(logs))
        error = predicted - measured
        mean = jax.ops.segment_sum(error, session, count) / size
        apart = jnp.abs(error - mean[session])
        bent = jnp.where(apart < BEND, apart**2 / (2 * BEND), apart - BEND / 2)
        shifted = -predicted / SHARP
        weight = jnp.exp(shifted - jax.ops.segment_max(shifted, session, count)[session])
        share = weight / jax.ops.segment_sum(weight, session, count)[session]
        return (
            jnp.sum(bent / slower)
            + LEVEL * jnp.sum(mean**2)
            + RANKING * jnp.sum(share * (slower - 1))
            + strength * jnp.sum((logs - start) ** 2)
        )

    return loss


def regrets(predicted: Float[np.ndarray, " candidates"], observations: Observations) -> Float[np.ndarray, " sessions"]:
    """For each session the time of the candidate that is predicted to be the fastest, over that of the fastest."""
    ratios = np.ones(observations.sessions)
    for number in range(observations.sessions):
        members = np.flatnonzero(observations.session == number)
        ratios[number] = observations.seconds[members[predicted[members].argmin()]] / observations.seconds[members].min()
    return ratios
