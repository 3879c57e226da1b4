"""What calls of scans in a function run, and what a function costs."""

import jax


def programs(function, *arguments):
    """The strategies whose calls a function is made of."""
    found = set()

    def visit(jaxpr):
        for equation in jaxpr.eqns:
            call = equation.params.get("call")
            if call is not None and equation.primitive.name == "scan_call":
                found.add((call.program.choice.strategy, call.batch))
            for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "eqns")):
                visit(getattr(inner, "jaxpr", inner)) if hasattr(inner, "eqns") or hasattr(inner, "jaxpr") else None

    visit(jax.make_jaxpr(function)(*arguments).jaxpr)
    return found


def work(function, *arguments):
    """The operations and bytes of a compiled function."""
    analysis = jax.jit(function).lower(*arguments).compile().cost_analysis()
    return analysis["flops"], analysis["bytes accessed"]
