"""Circuits: the probability that each gate is on, from the netlist alone; pLSTM beside message passing of the same size.

    python -m stmlang.experiments.circuits --data shared/data/dags --models plstm gine

A run that is stopped, in whatever way, goes on where it was when the same command is given again, and ends with the same bits
as one that was not stopped.
"""
