"""What kernels of our own have in common: products of bfloat16 on chip, of float32 by parts."""

from __future__ import annotations

from stmlang.cost.problem import Problem
from stmlang.cost.work import shared_passes

DEEPEST = 128
"""Keys and values that are longer do not fit on chip beside tiles of all of them."""
ON_CHIP = 227 * 1024 - 1024
"""Bytes of shared memory for tiles, and some less."""
STAGES = 2
"""Tiles of which the next is fetched while one is worked on."""


def unfit(problem: Problem, deepest: int = DEEPEST) -> str | None:
    """Why the products of a scan are none for a kernel that takes keys and values of so many entries at most."""
    if problem.dtype == "float64":
        return "its products are of bfloat16, or of float32 by parts, and the data type is float64"
    if max(problem.key, problem.value) > deepest:
        return f"keys and values of at most {deepest} fit on chip, and here key = {problem.key}, value = {problem.value}"
    return None


def parts(problem: Problem) -> int:
    """Numbers of bfloat16 that make one of the data type."""
    return 1 if problem.dtype == "bfloat16" else 3


def products_of_parts(problem: Problem) -> int:
    """Of two numbers by their parts, those that count."""
    return parts(problem) * (parts(problem) + 1) // 2


def attended(problem: Problem) -> int:
    """How often all nodes attend to each other: for each head, and for each direction that is not summed with others."""
    return problem.batch * problem.heads * shared_passes(problem)
