"""Small graphs, molecules and proteins: pLSTM and five graph neural networks in ten-fold cross-validation, beside the paper's
numbers.

    python -m stmlang.experiments.tudataset --sets MUTAG --models plstm gin

A run that is stopped, in whatever way, goes on where it was when the same command is given again, and ends with the same bits
as one that was not stopped.
"""
