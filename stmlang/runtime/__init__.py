"""Compiled scans: making, calling, saving and loading them. `stmlang` itself offers what users need of it."""
