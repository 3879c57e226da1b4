"""`python -m stmlang` is `stmlang`."""

from __future__ import annotations

from stmlang.cli.process import main

if __name__ == "__main__":
    main()
