"""Texts that parse, for several tests."""

from __future__ import annotations

IMAGE = """\
# Propagation-mode pLSTM on images.
topology image = grid(rows, cols)

scan plstm_p(heads = 3, key = 64, value = 64) on image {
    directions all

    angle = sigmoid(linear(x, bias = spread(-2, 2)))
    decay = tanh(5 * linear(x, bias = 1))

    source[out]         = sigmoid(linear(x, bias = -4)) * split(angle)[out]
    transition[out, in] = decay * split(angle)[out]
    mark                = sigmoid(linear(x, bias = -4))
    direct              = sigmoid(linear(x, bias = -6))

    stabilize P
}
"""

CHAINS = """\
use std.gates (forget, keep)
use local.more
def gate(a, b) = sigmoid(a) * -b ^ 2
def nothing() = 0

scan deltanet(heads = 4, key = 64, value = 64) on chain(time) {
    k    = l2norm(k)
    beta = sigmoid(linear(x))
    source = beta; transition[key, key'] = eye[key, key'] - beta * k[key] * k[key']
    read after                                   # as RNNs do
}

scan gla(heads = 4, key = 2 * 16, value) on chain(time = 128) {
    transition[key] = sigmoid(linear(x)) ^ (1 / 16)
    source = 1
    part = mean(k, over = key') + sum(gate(q, 2.5e-3), over = key)
    read after
    normalize mlstm
    directions +time, -time concat
}
"""

GRAPHS = """\
topology molecule = dag(nodes <= 64, edges <= 160)      # given at run time, padded to these
topology asia  = dag { asia -> tub; smoke -> lung, bronc; tub, lung -> either; either -> xray; either, bronc -> dysp }
topology small = tree { a, b -> c
    c -> root ; -> a
    root ->
    # a node of its own
    alone, scan, use   # with words of the language for names
}
topology video = chain(frames) * grid(rows = 14, cols = 14) *
    dag { a -> b }
topology alarm = dag from "data/alarm.bif"
topology other = dag from "other.txt" as edgelist

scan on_a_graph on dag { a -> b } * tree(arity = 2, depth = 4)
{
    transition[out, in] = tanh(linear(x)) * softmax(linear(x, e[out], # the edge that leaves
        e[in]), over = out)  # over the edges
      + (0)
    transition[out = cols, in = rows] = 0
    direct = (1 + q)[key]
}
"""

MESSY = "\ufefftopology t=grid(a,b)\r\n\tscan s on t{;;source=1;mark\t=\r\n 2*\r\n3\r\n+4 # four\r\n;}# end"

ALL = (IMAGE, CHAINS, GRAPHS, MESSY, "", "\n\n# nothing but a comment", "scan empty on chain(t) { }")
