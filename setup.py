"""Which folder is which package; everything else about the package stands in pyproject.toml.

`stdlib/`, `models/` and `experiments/` stand beside `stmlang/` and install inside it, so that a user's site-packages never gets
a bare `models`. Packages are found rather than listed: a new room needs no line here.
"""

from setuptools import find_packages, setup

INSIDE = ("stdlib", "models", "experiments")

inside = find_packages(include=[pattern for folder in INSIDE for pattern in (folder, f"{folder}.*")])
setup(
    packages=[*find_packages(include=["stmlang", "stmlang.*"]), *(f"stmlang.{name}" for name in inside)],
    package_dir={"stmlang": "stmlang", **{f"stmlang.{folder}": folder for folder in INSIDE}},
)
