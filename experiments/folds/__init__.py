"""What studies on folds of graphs share: batches of like size, what is asked of a model, and runs fold by fold.

Each fold is trained by `experiments.training`, in a folder of its own.
"""
