"""Strategies are compared in double precision."""

from __future__ import annotations

import jax

from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]

jax.config.update("jax_enable_x64", True)
