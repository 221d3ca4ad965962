"""Second names of ops: the same function, called by another name."""

from __future__ import annotations

from stridescope.engine.dispatch.call import number_first
from stridescope.engine.dispatch.op import DECLARED, Op, define
from stridescope.engine.tensor import Tensor

# name -> its second names; an in-place form has them too.
ALIASES: dict[str, tuple[str, ...]] = {
    "abs": ("absolute",),
    "acos": ("arccos",),
    "acosh": ("arccosh",),
    "asin": ("arcsin",),
    "asinh": ("arcsinh",),
    "atan": ("arctan",),
    "atanh": ("arctanh",),
    "atan2": ("arctan2",),
    "clamp": ("clip",),
    "trunc": ("fix",),
    "neg": ("negative",),
    "mul": ("multiply",),
    "sub": ("subtract",),
    "div": ("divide", "true_divide"),
    "ne": ("not_equal",),
    "lt": ("less",),
    "le": ("less_equal",),
    "gt": ("greater",),
    "ge": ("greater_equal",),
    "outer": ("ger",),
    "mm": ("spmm",),
    "linalg_inv": ("inverse",),
    "linalg_householder_product": ("orgqr",),
}
# Second names that lack some of the overloads.
WITHOUT = {"true_divide": ("Tensor_mode", "Scalar_mode")}


def _add(op: Op, base: str, second: str) -> None:
    name = op.name.replace(base, second, 1)
    method = op.method or second in ("inverse", "orgqr")
    define(
        op.schema.text.replace(op.name, name, 1),
        doc=f"{op.doc} Another name of {base}.",
        composite=lambda *args: op.call(*args) if isinstance(args[0], Tensor) else number_first(op, args),
        samples=op.samples,
        method=bool(method),
        function=op.function,
    )


def declare() -> None:
    """Declare the second names, after all first ones."""
    for op in tuple(DECLARED):
        base = op.name.removesuffix("_")
        for second in ALIASES.get(base, ()):
            if op.schema.overload not in WITHOUT.get(second, ()) and (op.method or op.function):
                _add(op, base, second)
