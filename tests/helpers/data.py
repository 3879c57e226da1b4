"""Where tests find the data that does not travel with the package."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = "STMLANG_DATA"
REQUIRED = "STMLANG_REQUIRE_DATA"


def data_folder(name: str = "") -> Path:
    """The folder that the variable STMLANG_DATA names, or `name` in it: `data_folder("golden/plstm")`.

    Without it the test that asks is skipped; where STMLANG_REQUIRE_DATA is set to 1 it fails, so that a machine that is meant
    to have the data cannot pass by not finding it.
    """
    root = os.environ.get(FOLDER, "")
    path = Path(root) / name
    if root and path.exists():
        return path
    missing = f"{path} does not exist" if root else f"{FOLDER} is not set; it names a folder with golden/ and data/"
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(missing)
    pytest.skip(missing)
