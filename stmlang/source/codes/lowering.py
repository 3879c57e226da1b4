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
        "positive whole numbers; what is on or off is True or False. The same goes for options of calls, examples and "
        "artifacts.",
    ),
    "STM5011": (
        "normalized scan that acts on the value axis",
        "A normalized scan carries a column of ones beside its values and divides by what becomes of it, so all columns must "
        "be treated alike.",
    ),
    "STM5101": (
        "cannot write a file",
        "`fmt`, `new` and `fuzz` write whole files or nothing. The operating system's reason is given.",
    ),
    "STM5102": ("file exists", "`stmlang new` writes new files only and never over one that is there."),
    "STM5103": (
        "folder without a spec",
        "`stmlang check` and `stmlang fmt` take every file in a folder whose name ends in `.stm`, at any depth. Folders whose "
        "names begin with a dot, and those that hold what others made (`node_modules`, `__pycache__`, `venv`, `build`, "
        "`dist`), are skipped.",
    ),
    "STM5201": (
        "array of the wrong shape",
        "A scan is unbatched: arrays have the shape `(*nodes, head, ...)` that its signature states. `jax.vmap` maps it over a "
        "batch.",
    ),
    "STM5202": (
        "argument missing or unknown",
        "`gates` holds an array for each leaf of the spec, by the leaf's name, and nothing else. Where gates depend on the "
        "query, key or value, so does the gating matrix.",
    ),
    "STM5203": (
        "not an array",
        "Inputs and gates are JAX or numpy arrays, without a mask; `gates` is a dictionary of them.",
    ),
    "STM5204": (
        "initial state of the wrong structure",
        "An initial state is a tuple with a dictionary for each direction, which holds an array for each port.",
    ),
    "STM5205": (
        "not floating point numbers",
        "Inputs, gates and states are of a floating point type that JAX has, in the byte order of the machine. Whole numbers, "
        "such as the bytes of an image, are not converted without being asked.",
    ),
    "STM5206": (
        "no gating matrix",
        "Where gates act on keys or values, or the result is normalized, no single number says what one node reads of another. "
        "Tracks are summed.",
    ),
    "STM5207": (
        "float64 is switched off",
        "JAX computes in 32 bits unless it is told otherwise before its first use.",
    ),
    "STM5208": (
        "layer that cannot be made",
        "A layer is made of a compiled scan, sizes that are whole numbers from 1 on, and a key of `jax.random`; none of its "
        "parameters has more than 2^31 - 1 numbers.",
    ),
    "STM5209": (
        "gating matrix too large",
        "A gating matrix holds a number for every pair of nodes and every head. One that would not fit the memory limit is "
        "refused before memory is asked for.",
    ),
    "STM5210": (
        "mask that does not fit",
        "A mask is an array of truth values, one for each node of a chain or grid, true for those that count. On a chain the "
        "others are skipped, states included; on a grid nothing passes them, and there are no states beside a mask.",
    ),
    "STM5211": (
        "scan that cannot run step by step",
        "A step knows what lies behind it and not what lies ahead. A chain or grid runs step by step along its first axis if "
        "every direction goes along that axis, any other topology if its one direction goes along the edges. "
        "Where a topology ends is not known in a step, so no gate may ask for a `neighbour`.",
    ),
    "STM5212": (
        "segments that do not fit",
        "Segments are an array of whole numbers, one for each node of a chain or grid, or for each row of a grid's first axis: "
        "neighbours of different numbers do not see each other. A negative number leaves a node out, and no mask counts it.",
    ),
    "STM5213": (
        "picture that cannot be drawn",
        "Pictures are written as `.svg`, `.png` or `.html`. A receptive field is gone through node by node, from a node that "
        "the graph has; of graphs that come at run time there is neither that nor a plan without them.",
    ),
    "STM5214": (
        "transpose of a call that is not linear",
        "`jax.linear_transpose` takes a function of what it is linear in. A call of a scan is linear in each of `q`, `k` and "
        "`v` that no gate reads, and in `v` and the initial state together; with a normalizer in `v` alone.",
    ),
    "STM5301": (
        "unknown platform, or one twice",
        "Artifacts are exported for `cpu`, `cuda` (also `gpu`), `rocm` or `tpu`, and hold one program for each platform and "
        "batch size, or bucket of graphs.",
    ),
    "STM5302": (
        "artifact cannot be written",
        "The file is written whole or not at all. The operating system's reason is given.",
    ),
    "STM5303": ("not an artifact", "The file cannot be read, or is not what `stmlang compile` writes, or was cut short."),
    "STM5304": (
        "damaged artifact",
        "A part of the artifact differs from what was written: its hash, or its structure, does not match.",
    ),
    "STM5305": (
        "artifact of another version",
        "The artifact was written in a format, or with a calling convention of JAX, that this installation cannot run.",
    ),
    "STM5306": (
        "model that cannot be exported",
        "An artifact holds one program for all that a model does. What depends on numbers in Python, calls back into Python "
        "or cannot be said for every batch size is in none.",
    ),
    "STM5310": ("artifact for another platform", "A compiled program runs only on the platforms it was compiled for."),
    "STM5311": ("another data type than the artifact's", "A compiled program takes exactly the data type it was compiled for."),
    "STM5312": (
        "other arguments than the artifact's",
        "A compiled program takes exactly the arguments and shapes it was compiled for; only a symbolic batch size is free. Of "
        "an artifact of several programs the one is called that fits.",
    ),
    "STM5313": (
        "initial state that the artifact does not take, or lacks",
        "A program is exported with or without states; one with them always takes an initial state and returns the final one. "
        "So is the step, which an artifact holds where it was exported with it.",
    ),
    "STM5314": (
        "derivative that the artifact does not hold",
        "An artifact holds programs: that of what was exported and, if that can be differentiated, that of its first "
        "derivative in reverse mode. Forward mode, second derivatives and those of a program that was stored alone "
        "are in none.",
    ),
    "STM5315": (
        "parameters of another model",
        "A file of parameters fits a model whose parameters have its names, shapes and data types, and whose scans have its "
        "texts. Order does not count.",
    ),
    "STM5401": (
        "measurements cannot be kept",
        "`stmlang tune` and `stmlang doctor --calibrate` write what they measured to the user's cache: `$STMLANG_CACHE`, else "
        "`stmlang` in `$XDG_CACHE_HOME`, else `~/.cache/stmlang`. The operating system's reason is given.",
    ),
    "STM5402": (
        "candidate with wrong numbers",
        "Before a candidate may win, `stmlang tune` compares its numbers with the reference. One that is off, or that cannot "
        "be compiled, is excluded and never chosen where the result is used. It is a fault of the compiler: please report it.",
    ),
    "STM5403": (
        "nothing to measure",
        "`stmlang tune` and `stmlang bench` need a scan that has nodes.",
    ),
    "STM5501": (
        "not a saved finding",
        "`stmlang fuzz --replay` takes what `stmlang fuzz` saved: a pair of files, NAME.stm and NAME.npz. One of them cannot "
        "be read, is something else, or was cut short.",
    ),
    "STM5502": (
        "damaged finding",
        "A saved finding is replayed on exactly the text and the numbers that it was found with. These are not they: a file "
        "was changed, or the two do not belong together. Nothing in them is ever executed.",
    ),
    "STM5503": (
        "finding of another version",
        "The finding was saved in a format that this installation cannot read, or is one of a check that it does not have.",
    ),
    "STM5601": (
        "mesh that cannot share a scan",
        "`shard` maps axes of a chain or grid, or `graphs`, to axes of `mesh`, a `jax.sharding.Mesh`, each to one of its own. "
        "Both are given, or none.",
    ),
    "STM5602": (
        "dimension that the topology lacks",
        "A scan is shared along axes of its chain or grid, by their names, each of which has at least as many nodes as the "
        "mesh has devices along its own. One without nodes is not shared.",
    ),
    "STM5603": (
        "scan that cannot be shared between devices",
        "Each device evaluates its piece as a scan of its own. Gates that ask for a `neighbour` would see a border where the "
        "scan was cut, and graphs cross wherever they are cut. Graphs that come at run time are divided among devices, none of "
        "them cut.",
    ),
    "STM5604": (
        "call that a shared scan does not take",
        "A scan that is shared between devices is called as a whole, with initial and final states, without a mask and without "
        "segments. It has no gating matrix, no steps and no artifact. One whose graphs are divided takes no states either.",
    ),
}
