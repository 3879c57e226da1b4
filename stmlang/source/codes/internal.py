"""STM9xxx: the compiler contradicts itself."""

from __future__ import annotations

INTERNAL: dict[str, tuple[str, str]] = {}
