"""What studies on folds of graphs share: batches, training that can be stopped, what a run leaves behind, how it says so."""
