"""Measurements that are kept: run by `make bench`, written to build/bench/."""
