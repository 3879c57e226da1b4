"""Runnable studies: data, training, a report."""
