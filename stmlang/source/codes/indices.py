"""STM2xxx: indices, types and sizes."""

from __future__ import annotations

INDICES: dict[str, tuple[str, str]] = {}
