"""Objects that act as those of libraries that are not installed here, in what is read of them."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np


class Tensor:
    """As PyTorch's: no array while it has a gradient or lies on another device."""

    def __init__(self, values: Any, gradient: bool = False, device: str = "cpu") -> None:
        self.values, self.gradient, self.device = np.asarray(values), gradient, device

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def detach(self) -> Tensor:
        return Tensor(self.values, False, self.device)

    def cpu(self) -> Tensor:
        return Tensor(self.values, self.gradient)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if self.gradient:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.device != "cpu":
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        return np.asarray(self.values, dtype)


class Data:
    """As PyTorch Geometric's: attributes and items, no dictionary. Known ones are None where they are not set, others raise.
    The number of nodes is a set one, that of features, or guessed from edges with a warning."""

    x, edge_index, edge_attr, y, pos = (
        property(lambda self, name=name: self.__dict__["store"].get(name))
        for name in ("x", "edge_index", "edge_attr", "y", "pos")
    )

    def __init__(self, **parts: Any) -> None:
        self.__dict__["store"] = parts

    def __getattr__(self, name: str) -> Any:
        store = self.__dict__["store"]
        if name in store:
            return store[name]
        raise AttributeError(f"'GlobalStorage' object has no attribute '{name}'")

    def __getitem__(self, name: str) -> Any:
        return self.__dict__["store"][name]

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__["store"]

    def __len__(self) -> int:
        return len(self.__dict__["store"])

    def __iter__(self) -> Any:
        return iter(self.__dict__["store"].items())

    @property
    def num_nodes(self) -> int | None:
        store = self.__dict__["store"]
        if store.get("num_nodes") is not None:
            return store["num_nodes"]
        for name in ("x", "pos", "batch"):
            if store.get(name) is not None:
                return store[name].shape[0]
        if store.get("edge_index") is None:
            return None
        warnings.warn("Unable to accurately infer 'num_nodes' from the attribute set.", stacklevel=2)
        return int(store["edge_index"].values.max()) + 1

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__["store"])


class DataBatch(Data):
    """Several of them as one."""

    def to_data_list(self) -> list[Data]:
        ends, ptr = self.edge_index.values, self.ptr.values
        found = []
        for first, last in pairwise(ptr.tolist()):
            inside = (ends[0] >= first) & (ends[0] < last)
            found.append(Data(edge_index=Tensor(ends[:, inside] - first), num_nodes=int(last - first)))
        return found


class HeteroData:
    """Nodes of several kinds: no `edge_index` of all."""

    node_types = ("author", "paper")
    edge_types = (("author", "writes", "paper"),)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'HeteroData' has no attribute '{name}'")

    def to_homogeneous(self) -> Data:
        return Data(edge_index=Tensor([[0], [1]]), num_nodes=2)


class AttributeDict(dict[str, Any]):
    """A dictionary whose attributes are its items, with the errors of those."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class NoneDict(dict[str, Any]):
    """A dictionary that has every attribute, None for most."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


class DGLGraph:
    """As DGL's."""

    is_homogeneous = True

    def __init__(self, tails: Any, heads: Any, nodes: int, batch_size: int = 1) -> None:
        self.ends, self.nodes, self.batch_size = (Tensor(tails), Tensor(heads)), nodes, batch_size
        self.ndata: dict[str, Any] = {}
        self.edata: dict[str, Any] = {}

    def edges(self) -> tuple[Tensor, Tensor]:
        return self.ends

    def num_nodes(self) -> int:
        return self.nodes


class Heterograph(DGLGraph):
    is_homogeneous = False


class GraphsTuple(NamedTuple):
    """As jraph's."""

    nodes: Any
    edges: Any
    receivers: Any
    senders: Any
    globals: Any
    n_node: Any
    n_edge: Any
