"""Models on images."""

from stmlang.models.vision.plstm import PLSTM

__all__ = ["PLSTM"]
