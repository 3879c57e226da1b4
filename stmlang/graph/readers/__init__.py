"""Graph files of many formats as graphs, and files of many graphs as data sets."""

from stmlang.graph.readers.d8 import FlowRaster, read_flow
from stmlang.graph.readers.netlist import Netlist, read_netlist
from stmlang.graph.readers.ptb import Tree, read_listops, read_treebank
from stmlang.graph.readers.read import read_graph
from stmlang.graph.readers.tudataset import TUDataset, UndirectedGraph, read_tudataset

__all__ = [
    "FlowRaster",
    "Netlist",
    "TUDataset",
    "Tree",
    "UndirectedGraph",
    "read_flow",
    "read_graph",
    "read_listops",
    "read_netlist",
    "read_treebank",
    "read_tudataset",
]
