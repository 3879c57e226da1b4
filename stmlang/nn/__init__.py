"""Equinox modules that own parameters and call a compiled scan."""

from stmlang.nn.layer import ScanLayer
from stmlang.nn.norm import RMSNorm

__all__ = ["RMSNorm", "ScanLayer"]
