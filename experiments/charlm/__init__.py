"""Language models over single characters: scans of the library beside a softmax transformer, of one size and on one budget.

python -m stmlang.experiments.charlm --text tinyshakespeare.txt

`models.py` makes all of one skeleton, with a perceptron as wide as brings each to the same size; `speed.py` times the steps
that generation is made of.
"""
