"""Models on sequences."""

from stmlang.models.sequence.generate import generate
from stmlang.models.sequence.language import LanguageModel
from stmlang.models.sequence.transformer import Attention

__all__ = ["Attention", "LanguageModel", "generate"]
