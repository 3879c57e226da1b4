"""Programs are compiled quickly: they run once, on a few numbers."""

from __future__ import annotations

from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]
