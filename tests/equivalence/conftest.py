"""Strategies are compared in double precision."""

from __future__ import annotations

import jax

jax.config.update("jax_enable_x64", True)
