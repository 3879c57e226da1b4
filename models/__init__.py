"""Equinox models made of compiled scans, one model to a file."""
