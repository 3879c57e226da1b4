"""STM4xxx: stability."""

from __future__ import annotations

STABILITY: dict[str, tuple[str, str]] = {}
