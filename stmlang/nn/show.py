"""Modules at a prompt: what they were made with and how large they are, on two lines. Their parts show shapes."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax


def summary(self: Any, **options: Any) -> Any:
    """The class, its settings and its scan, and the number of parameters: to be used as `__pdoc__`."""
    from wadler_lindig import TextDoc

    del options
    arrays = jax.tree.leaves(eqx.filter(self, eqx.is_inexact_array))
    settings = [
        f"{field.name}={getattr(self, field.name)!r:.80}"
        for field in dataclasses.fields(self)
        if field.name == "op" or field.metadata.get("static", False)
    ]
    kinds = ", ".join(sorted({str(array.dtype) for array in arrays}))
    count = f"{sum(array.size for array in arrays):,} parameters{f' in {kinds}' if kinds else ''}"
    return TextDoc(f"{type(self).__name__}({', '.join([*settings, count])})")
