"""Models on graphs: pLSTM and what it is compared with, all on the arrays of one batch.

    inputs = model.prepare(batch, node_features, edge_features)  # on the host
    logits = model(inputs)                                       # (graphs, classes), also inside of a compiled function

A model made with `readout="nodes"` says something of each node instead: `(nodes, classes)`.

`inputs` is a pytree, whose shapes are those of the batch's bucket: a function that takes it as an argument is compiled once for
each of few shapes.
"""

from stmlang.models.graph.baselines import GNN
from stmlang.models.graph.inputs import GraphModel, Inputs
from stmlang.models.graph.plstm import PLSTM

__all__ = ["GNN", "PLSTM", "GraphModel", "Inputs"]
