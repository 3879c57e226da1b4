"""STM5xxx: planning, lowering, calls and artifacts."""

from __future__ import annotations

LOWERING: dict[str, tuple[str, str]] = {
    "STM5001": (
        "size unknown when planning",
        "A plan depends on how many nodes there are, so every axis of a regular topology needs a size by then: a default in "
        "the topology, an argument of `stmlang.compile`, or `--set` on the command line.",
    ),
    "STM5003": (
        "settings that the strategy cannot take",
        "A strategy that is asked for by name may be given settings, such as the tile's sides for `chunkwise`. They must be "
        "the ones it has, with as many numbers as the topology has axes, all positive.",
    ),
    "STM5004": (
        "no strategy can evaluate the scan",
        "Every strategy has limits on the topology and on what transitions act on. Each one's reason is noted.",
    ),
    "STM5005": (
        "no strategy fits the memory limit",
        "Memory is predicted for the mode asked for: an inference call, or a forward and a backward pass together. The message "
        "names the smallest need among all candidates.",
    ),
    "STM5006": ("unknown strategy", "A strategy is named as `stmlang explain` lists it."),
    "STM5007": (
        "the strategy asked for cannot evaluate the scan",
        "A strategy was forced by name, but the scan's gates or its topology are beyond it. Leave the choice to the planner, "
        "or choose one that `stmlang explain` lists as a candidate.",
    ),
    "STM5008": (
        "not a stored plan",
        "A plan stored as JSON is damaged, or was written by another version with another schema.",
    ),
    "STM5009": ("unknown target", "A target names a machine to plan for: `cpu`, `h100`, `h200`, `a100`, `gpu` or `auto`."),
    "STM5010": (
        "option out of range",
        "The data type is float32, float64 or bfloat16; the mode is inference or training; the memory limit and the batch are "
        "positive numbers.",
    ),
    "STM5101": (
        "cannot write a file",
        "`fmt` and `new` write whole files or nothing. The operating system's reason is given.",
    ),
    "STM5102": ("file exists", "`stmlang new` writes new files only and never over one that is there."),
}
