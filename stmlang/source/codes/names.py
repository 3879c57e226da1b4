"""STM1xxx: names, definitions and imports."""

from __future__ import annotations

NAMES: dict[str, tuple[str, str]] = {
    "STM1001": (
        "unknown name",
        "An expression can name the scan's gates, its parameters and sizes, the sizes of its axes, the inputs `q`, `k`, "
        "`v`, and `pi`. The body of a `def` sees its own parameters, `q`, `k`, `v`, the sizes of the state and `pi`.",
    ),
    "STM1002": (
        "unknown function",
        "A call names a built-in function or a `def` of the same file, or one that the file imports with `use`.",
    ),
    "STM1003": (
        "unknown topology",
        "Behind `on` stands the name of a `topology` of the file or of an imported one, or a topology written in place.",
    ),
    "STM1004": (
        "declared twice",
        "A name means one thing in its scope: definitions and topologies share the names of a file, imported ones "
        "included; parameters, sizes of axes and gates share those of a scan.",
    ),
    "STM1005": (
        "name with a meaning of its own",
        "Indices, inputs, features, the four gates, the sizes of the state, built-in functions and `pi` keep their "
        "meaning everywhere and cannot be declared as something else.",
    ),
    "STM1007": (
        "recursive definition",
        "A `def` is expanded where it is called, so one that calls itself, directly or through others, would never end.",
    ),
    "STM1008": (
        "gates defined in a circle",
        "A gate is computed before the scan runs, from features, inputs and other gates. No order exists in which gates "
        "that need each other could be computed. The message prints the circle.",
    ),
    "STM1009": (
        "topologies named in a circle",
        "A topology that is a name, or a product with names in it, must come to an end.",
    ),
    "STM1010": (
        "unused parameter of a definition",
        "Arguments are looked at when they are used. One that its definition never uses could be wrong without anyone "
        "noticing.",
    ),
    "STM1011": (
        "name in the wrong place",
        "The name exists and means something else: features stand inside `linear`, indices in square brackets or behind "
        "`over =`, functions are called, and numbers that have to be known before a scan runs cannot be made of features "
        "or inputs.",
    ),
    "STM1012": (
        "no scan",
        "A file of definitions and topologies can be imported and checked. To be compiled or run it has to hold a `scan`.",
    ),
    "STM1013": (
        "unknown scan",
        "A file may hold several scans, the last of which is meant unless another one is named: `file.stm:NAME`.",
    ),
    "STM1014": (
        "unknown setting",
        "From outside one can set the parameters of the scan, `writes` and `reads` if it has them, `heads`, `key`, `value`, "
        "`track` if the state has tracks, and the sizes of its topology. Any other name is most likely misspelt.",
    ),
    "STM1015": (
        "no value",
        "A parameter without a default has to be set from outside. Only the axes of chains and grids may wait for their size.",
    ),
    "STM1020": (
        "import not found",
        "`use a.b` reads the file `a/b.stm`, looked for beside the importing file and then along the search path; `use "
        "std.a` reads one of the installed library.",
    ),
    "STM1021": (
        "import outside of its root",
        "A spec reads files only below the folder it lies in, the search path and the installed library. A symbolic link "
        "that leads out of there is not followed.",
    ),
    "STM1022": (
        "imports in a circle",
        "Files that need each other's definitions cannot be read one after the other. What both need belongs into a third "
        "file.",
    ),
    "STM1023": (
        "name not declared there",
        "`use` brings the definitions and topologies that a file itself declares: no scans, and nothing that it imported.",
    ),
    "STM1024": (
        "too many imports",
        "A spec may import 100 files, 30 deep.",
    ),
    "STM1030": (
        "wrong number of arguments",
        "A function takes the arguments that its usage line shows.",
    ),
    "STM1031": (
        "wrong argument name",
        "An argument is given by its place or once by its name.",
    ),
    "STM1032": (
        "gate missing",
        "Every scan has equations for `source` and `transition`. `mark` is 1 and `direct` is 0 where nothing is said.",
    ),
    "STM1033": (
        "gate given twice",
        "`read after` stands for an equation of `mark` and one of `direct`; with it, neither can be written.",
    ),
    "STM1034": (
        "unused gate",
        "A warning: no gate of the recurrence depends on this one. It is checked and left out, with the leaves in it.",
    ),
    "STM1035": (
        "unused parameter",
        "A warning: no equation and no size depends on this parameter.",
    ),
    "STM1036": (
        "not in the library",
        "`std:folder/name` names a file of the installed library.",
    ),
}
