"""What pyproject.toml cannot say: which folder is which package, and the text of the package's page.

`stdlib/`, `models/` and `experiments/` stand beside `stmlang/` and install inside it: a user's site-packages never gets
a bare `models`. Packages are found rather than listed: a new room needs no line here.

The page is the README, whose links lead to files of this folder. Whoever reads the page has none of them: there they are
plain words.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

INSIDE = ("stdlib", "models", "experiments")
RELATIVE = re.compile(r"\[([^\]]+)\]\((?![a-z]+:)[^)]*\)")

inside = find_packages(include=[pattern for folder in INSIDE for pattern in (folder, f"{folder}.*")])
setup(
    packages=[*find_packages(include=["stmlang", "stmlang.*"]), *(f"stmlang.{name}" for name in inside)],
    package_dir={"stmlang": "stmlang", **{f"stmlang.{folder}": folder for folder in INSIDE}},
    long_description=RELATIVE.sub(r"\1", (Path(__file__).parent / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
)
