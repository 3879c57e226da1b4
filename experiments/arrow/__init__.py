"""Whether an arrow points at a circle: the paper's task of extrapolation (section 5.1), on images and as small grids of tokens.

python -m stmlang.experiments.arrow --scale small

`generation.py` draws scenes of a seed, `drawing.py` makes images and tokens of them; `control.py` is a predictor that never
sees the circle, whose accuracy stands beside every result.
"""
