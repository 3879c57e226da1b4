"""What `stmlang new --project` writes: a spec, a model around it, its training, and a test of both.

There is one text of each for all topologies and architectures. What differs is read off the scan: how many axes it has, whether
its gates read features of edges, whether its graphs come at run time, what it is given. An architecture whose block is in
`stmlang.models.blocks` has a line in `BLOCKS`; every other one is a `ScanLayer`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from stmlang.scan.scan import Scan
from stmlang.scan.topology import Regular, Runtime


@dataclass(frozen=True, slots=True)
class Block:
    """A class of `stmlang.models.blocks`, how it is made of the compiled scan `OP`, and how many axes its nodes have. One that
    is `whole` has norm and residual connection itself."""

    name: str
    made: str
    axes: int = 1
    whole: bool = False

    @classmethod
    def of(cls, name: str, axes: int = 1, whole: bool = False) -> Block:
        return cls(name, f"{name}(OP, DIM, key=key)", axes, whole)


BLOCKS = {
    "chain/deltanet": Block.of("DeltaNet"),
    "chain/gated_deltanet": Block.of("DeltaNet"),
    "chain/gla": Block.of("GLA"),
    "chain/mamba": Block.of("Mamba"),
    "chain/mamba2": Block.of("Mamba2"),
    "chain/mlstm": Block.of("MLSTM"),
    "chain/rwkv6": Block.of("RWKV6Block", whole=True),
    "chain/v2m": Block("V2M", 'V2M(stmlang.compile(SPEC, scan="v2m_rows", **SIZES), OP, DIM, key=key)', axes=2),
    "chain/vil": Block.of("ViL", whole=True),
    "grid/2dmamba": Block.of("TwoDMamba", axes=2),
    "grid/mamba2d": Block.of("Mamba2D", axes=2),
}
"""By the architecture's spec in the library. `Vim` is not among them: its block is two scans of `chain/mamba`, where the spec
`chain/vim` has both directions in one, for a `ScanLayer`."""

STATES = {"heads": 2, "key": 16, "value": 16}
"""Sizes to begin with, where a spec has larger ones."""
NODES = {1: (32,), 2: (8, 8), 3: (4, 4, 4)}
"""Of the examples on chains and grids, by the number of axes."""


def project(name: str, text: str, scan: Scan, origin: str | None) -> dict[str, str]:
    """The files of a project by their names. `text` is the spec, `scan` what it says, `origin` the spec of the library that it
    is a copy of."""
    words = _words(name, scan, BLOCKS.get(origin or ""))
    texts = {"model.py": MODEL, "train.py": TRAIN, "test_model.py": TEST}
    return {f"{name}.stm": text, **{file: _filled(text, words) for file, text in texts.items()}}


def _filled(text: str, words: dict[str, str]) -> str:
    """A text with the words in their places; a line that is nothing but an empty place is left out."""
    text = text.replace("<examples>", words["examples"])  # which have places themselves
    empty = {f"<{place}>" for place, word in words.items() if not word}
    filled = "\n".join(line for line in text.split("\n") if line.strip() not in empty)
    for place, word in words.items():
        filled = filled.replace(f"<{place}>", word)
    return filled


def _words(name: str, scan: Scan, block: Block | None) -> dict[str, str]:
    """What stands in the places of the texts."""
    graphs, whole = isinstance(scan.topology, Runtime), block is not None and block.whole
    edges = any(feature.name == "e" for leaf in scan.leaves for feature in leaf.features)
    given, own = _given(scan), {"heads": scan.heads, "key": scan.key, "value": scan.value}
    sizes = {size: least for size, least in STATES.items() if least < own[size]}
    passed = {"edge_features=edges": edges, "on=on": graphs, f"given={given}": given}
    called = ", ".join(["x" if whole else "self.norm(x)", *(word for word, wanted in passed.items() if wanted)])
    needed = {"EDGE_READS": edges, "OP": graphs or edges, "READS": True, "Model": True}
    made = "stmlang.nn.ScanLayer(OP, DIM, key=key)" if block is None else block.made
    return {
        "name": name,
        "sizes": repr(sizes).replace("'", '"'),
        "numpy": "import jax.numpy as jnp" if given else "",
        "blocks": f"from stmlang.models.blocks import {block.name}" if block else "",
        "edge size": "EDGE_READS = 2  # features of an edge" if edges else "",
        "made": made.replace("DIM,", "DIM, edge_dim=EDGE_READS,") if edges else made,
        "says": "A block with norms and residual connections of its own." if whole else "`x + scan(norm(x))`.",
        "norm": "" if whole else "norm: stmlang.nn.RMSNorm",
        "new norm": "" if whole else "self.norm = stmlang.nn.RMSNorm((DIM,))",
        "through": f"self.scan({called})" if whole else f"x + self.scan({called})",
        "args": (", edges" if edges else "") + (", on" if graphs else ""),
        "imports": ", ".join(word for word, wanted in needed.items() if wanted),
        "numpy too": "import numpy as np" if graphs else "",
        "package": "import stmlang" if graphs else "",
        "examples": GRAPHS if graphs else ARRAYS,
        "nodes": _nodes(scan, block),
        "more": f" {EDGES}" if edges else "",
        "edges of graphs": EDGES_OF_GRAPHS if edges else "",
    }


def _nodes(scan: Scan, block: Block | None) -> str:
    """The axes of the examples' nodes, as Python says them."""
    if isinstance(scan.topology, Regular):
        return repr(NODES[block.axes if block else len(scan.topology.axes)])
    if isinstance(scan.topology, Runtime):
        return ""
    from stmlang.graph.topology import dag_of

    return repr((prod(dag_of(scan.topology).node_shape),))


def _given(scan: Scan) -> str:
    """Zeros for what the caller computes, as Python says them."""
    names: list[str] = []
    for leaf in scan.leaves:
        if leaf.kind == "given":
            heads = min(scan.heads, STATES["heads"])
            trailing = [heads, *([scan.steps] if leaf.stepped else [])]
            names.append(f'"{leaf.name}": jnp.zeros((*x.shape[:-1], {", ".join(map(str, trailing))}))')
    return "{" + ", ".join(names) + "}" if names else ""


MODEL = '''\
"""The model of <name>: a map into the features, layers around the scan of <name>.stm, and a map out of them, at every node."""

from pathlib import Path

import equinox as eqx
import jax
<numpy>
import stmlang
<blocks>
from stmlang.models.parts import Linear

SPEC = Path(__file__).with_name("<name>.stm")
SIZES = <sizes>  # states to begin with; what is not named here is as the spec has it
READS, GIVES = 3, 1  # features of a node, before and behind
<edge size>
DIM, DEPTH = 32, 2
OP = stmlang.compile(SPEC, **SIZES)


class Layer(eqx.Module):
    """<says>"""

    <norm>
    scan: eqx.Module

    def __init__(self, key):
        <new norm>
        self.scan = <made>

    def __call__(self, x<args>):
        return <through>


class Model(eqx.Module):
    """From (*nodes, READS) to (*nodes, GIVES), one example a call."""

    inside: Linear
    layers: list[Layer]
    outside: Linear

    def __init__(self, key):
        first, last, *own = jax.random.split(key, 2 + DEPTH)
        self.inside = Linear(READS, DIM, key=first)
        self.layers = [Layer(each) for each in own]
        self.outside = Linear(DIM, GIVES, key=last)

    def __call__(self, x<args>):
        x = self.inside(x)
        for layer in self.layers:
            x = layer(x<args>)
        return self.outside(x)
'''

TRAIN = '''\
"""Train the model of <name>, and keep its parameters: python train.py

Put your own data in place of `inputs` and of `teacher`. Here the first are noise, and what is wanted of a model says another of
the same make with other weights, so that there is something to learn.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
<numpy too>
import optax
<package>

from model import <imports>

STEPS, BATCH = 300, 16
OPTIMIZER = optax.adamw(3e-3)
<examples>

@eqx.filter_jit
def step(model, state, seen, wanted):
    """One step of the optimizer, and the loss before it."""

    def loss(model):
        return jnp.mean((outputs(model, seen) - wanted) ** 2)

    value, slope = eqx.filter_value_and_grad(loss)(model)
    updates, state = OPTIMIZER.update(slope, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, value


def train(steps):
    """A trained model, and the loss of each step."""
    model, teacher = Model(jax.random.key(0)), Model(jax.random.key(1))
    state, told, losses = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array)), eqx.filter_jit(outputs), []
    for number in range(steps):
        seen = inputs(jax.random.key(number))
        model, state, value = step(model, state, seen, told(teacher, seen))
        losses.append(float(value))
        if number % 50 == 0:
            print(f"step {number}: loss {value:.4f}")
    return model, losses


if __name__ == "__main__":
    eqx.tree_serialise_leaves("<name>.eqx", train(STEPS)[0])
'''

ARRAYS = '''\
NODES = <nodes>


def inputs(key):
    """What a batch of calls is given: noise at every node."""
    x = jax.random.normal(key, (BATCH, *NODES, READS))
    return (x,<more>)


def outputs(model, seen):
    return jax.vmap(model)(*seen)
'''
EDGES = "jax.random.normal(jax.random.fold_in(key, 1), (BATCH, OP.dag.edge_count, EDGE_READS))"

GRAPHS = '''\


def inputs(key):
    """What a call is given: random graphs side by side, noise at their nodes, and the scan on them. All batches are brought to
    one size, so that not each is compiled anew."""
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    arrows = [np.argwhere(np.triu(generator.random((12, 12)) < 0.2, 1)) for _ in range(BATCH)]
    room = stmlang.graph.Bucket(16 * BATCH, 32 * BATCH, BATCH)
    graphs = stmlang.graph.batch([stmlang.graph.as_dag(ends, nodes=12) for ends in arrows], bucket=room)
    x = jax.random.normal(key, (len(graphs.node_mask), READS))
    <edges of graphs>
    on = OP.at(graphs)
    return x<args>


def outputs(model, seen):
    return model(*seen)
'''
EDGES_OF_GRAPHS = "edges = jax.random.normal(jax.random.fold_in(key, 1), (len(graphs.edge_mask), EDGE_READS))"

TEST = '''\
"""The spec of <name> is right, and the model around it learns: python -m pytest"""

import math

from stmlang.cli.main import main

from model import SPEC
from train import train


def test_the_spec():
    assert main(["check", str(SPEC)]) == 0


def test_the_model_learns():
    _, losses = train(40)
    assert all(map(math.isfinite, losses))
    assert sum(losses[-5:]) < sum(losses[:5])
'''
