"""Handwritten digits: the whole way from two specs of the standard library to a trained classifier and a report.

python -m stmlang.experiments.digits
"""
