"""What other languages and libraries call the things of this one, and what there is in place of what is not here."""

from __future__ import annotations

from collections.abc import Mapping

_SUM = "a product along an index is `sum(a * b, over = key)`"
_CONDITION = "there are no conditions: `max`, `min`, `clip` and `relu` choose between values, `sigmoid` blends them"
_LOOP = "what comes before a node is summed by the scan itself: `source` writes, `transition` carries, `mark` reads"
_MATRIX = "a matrix is written entry by entry"
_LAYER = "that belongs into the model around the scan, not into its gates"

DEGREES: Mapping[str, str] = {
    name: f"degree({index})"
    for index in ("out", "in")
    for name in (f"{index}degree", f"{index}_degree", f"degree_{index}", f"deg_{index}", f"{index}deg")
} | dict.fromkeys(("deg", "degrees"), "degree(out)")
"""The number of a node's edges."""

NAMES: Mapping[str, str] = {
    **DEGREES,
    **dict.fromkeys(("query", "queries", "Q"), "q"),
    **dict.fromkeys(("keys", "K"), "k"),
    **dict.fromkeys(("values", "V"), "v"),
    **dict.fromkeys(("identity", "Identity"), "eye[key, key']"),
    "PI": "pi",
    **dict.fromkeys(("true", "True"), "1"),
    **dict.fromkeys(("false", "False"), "0"),
}
"""Other names of values, and what to write for them."""

NO_NAMES: Mapping[str, str] = {
    **dict.fromkeys(
        ("h", "hidden", "state", "c", "C", "carry"), "a state is no gate: `transition` carries it on, and `mark` reads it"
    ),
    **dict.fromkeys(("inf", "nan", "NaN", "None", "null", "infinity"), "gates are finite numbers"),
}
"""Values that there are not, and what is there instead."""

SIZES_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("num_heads", "n_heads", "nheads", "n_head", "head", "H"), "heads"),
    **dict.fromkeys(("d_key", "dk", "d_k", "key_dim", "head_dim", "d_head", "d_state"), "key"),
    **dict.fromkeys(("d_value", "dv", "d_v", "value_dim"), "value"),
    **dict.fromkeys(("tracks", "n_tracks", "num_tracks"), "track"),
    **dict.fromkeys(("num_writes", "n_writes", "num_householder"), "writes"),
    **dict.fromkeys(("num_reads", "n_reads"), "reads"),
}
"""Other names of the sizes of the state."""

TOPOLOGIES: Mapping[str, str] = {
    **dict.fromkeys(("sequence", "seq", "line", "list", "path", "linear", "time"), "chain"),
    **dict.fromkeys(("image", "volume", "lattice", "mesh", "plane", "array"), "grid"),
    **dict.fromkeys(("graph", "digraph", "network", "poset"), "dag"),
}
"""Other names of the kinds of topology."""

FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(("maximum", "fmax"), "max"),
    **dict.fromkeys(("minimum", "fmin"), "min"),
    **dict.fromkeys(("ln", "logarithm"), "log"),
    **dict.fromkeys(("logistic", "expit", "sigm", "sigma"), "sigmoid"),
    **dict.fromkeys(("fabs", "absolute"), "abs"),
    **dict.fromkeys(("clamp", "clip_by_value"), "clip"),
    **dict.fromkeys(("amax", "reduce_max", "segment_max"), "largest"),
    **dict.fromkeys(("reduce_sum", "segment_sum", "scatter_add"), "sum"),
    **dict.fromkeys(("average", "reduce_mean", "segment_mean"), "mean"),
    **dict.fromkeys(("Linear", "Dense", "dense", "affine", "fc"), "linear"),
    **dict.fromkeys(("Parameter", "parameter", "learned", "weight"), "param"),
    **dict.fromkeys(("argument", "external", "placeholder"), "given"),
    **dict.fromkeys(("normalize", "unit", "l2_normalize"), "l2norm"),
    **dict.fromkeys(("linspace", "uniform"), "spread"),
    **dict.fromkeys(("conj", "conjugated"), "conjugate"),
    **dict.fromkeys(("Re", "re", "real_part"), "real"),
    **dict.fromkeys(("Im", "im", "imag"), "imaginary"),
    **dict.fromkeys(("modulus",), "abs"),
}
"""Other names of functions that take the same arguments here."""

NO_FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(("pow", "power"), "a power is `a ^ b`"),
    "square": "a square is `a ^ 2`",
    "rsqrt": "write `a ^ -0.5`",
    "exp2": "write `2 ^ a`",
    "log1p": "write `log(1 + a)`",
    "expm1": "write `exp(a) - 1`",
    **dict.fromkeys(("cis", "expi"), "`exp(i a)` is `polar(1, a)`"),
    "tan": "write `sin(a) / cos(a)`",
    **dict.fromkeys(("silu", "swish"), "write `a * sigmoid(a)`"),
    "gelu": "write `a * sigmoid(1.702 * a)`",
    **dict.fromkeys(("norm", "l2"), "a norm is `sqrt(sum(a ^ 2, over = key))`; `l2norm` divides by it"),
    **dict.fromkeys(("dot", "inner", "matmul", "einsum", "bmm", "mm", "tensordot"), _SUM),
    "outer": f"{_MATRIX}: the outer product is `a[key] * b[key']`",
    **dict.fromkeys(("transpose", "swapaxes", "permute"), f"{_MATRIX}: the transpose of `f[key, key']` is `f[key', key]`"),
    **dict.fromkeys(("diag", "diagonal"), f"{_MATRIX}: `eye[key, key'] * a[key]` has `a` on its diagonal"),
    **dict.fromkeys(("zeros", "ones", "full", "zeros_like", "ones_like"), "a number broadcasts: write `0` or `1`"),
    **dict.fromkeys(("where", "select", "cond", "iff", "ifelse"), _CONDITION),
    **dict.fromkeys(("cumsum", "cumprod", "associative_scan", "segsum", "shift", "roll", "prev", "previous"), _LOOP),
    **dict.fromkeys(("concat", "concatenate", "cat", "stack"), "`linear` takes several features: `linear(x, e[in])`"),
    **dict.fromkeys(
        ("dropout", "layernorm", "rmsnorm", "LayerNorm", "RMSNorm", "batchnorm", "embed", "conv", "conv1d"), _LAYER
    ),
}
"""Functions that there are not, and what says the same."""
