"""The benchmark still measures what it says."""

from __future__ import annotations

import pytest

from benchmarks.compile_time import PASSES, measure, operations


@pytest.mark.parametrize("passes", PASSES)
def test_small_grid(passes: str) -> None:
    row = measure("std:plstm/image_d", passes, 3)
    assert row["xla_seconds"] > 0
    assert 0 < row["entry_instructions"] <= row["hlo_instructions"]
    assert 100 < row["stablehlo_ops"] < 3000


def test_operations_are_those_of_all_functions() -> None:
    text = """
      func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.add %arg0, %arg0 : tensor<f32>
        %1 = "stablehlo.gather"(%0) : (tensor<f32>) -> tensor<f32>
        %2 = call @f(%1) : (tensor<f32>) -> tensor<f32>
        return %2 : tensor<f32>
      }
      func.func private @f(%arg0: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.negate %arg0 : tensor<f32>
        return %0 : tensor<f32>
      }
    """
    assert operations(text) == 3
