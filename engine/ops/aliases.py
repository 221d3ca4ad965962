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
    "linalg_householder_product": ("orgqr",),
}
# Overloads for a number that these have of their own; the first names take it as a tensor.
FOR_NUMBERS: dict[tuple[str, str], str] = {
    ("multiply", "Tensor"): "Scalar other",
    ("subtract", "Tensor"): "Scalar other, Scalar alpha=1",
    ("divide", "Tensor"): "Scalar other",
    ("div", "Tensor_mode"): "Scalar other, *, str? rounding_mode",
    ("divide", "Tensor_mode"): "Scalar other, *, str? rounding_mode",
    ("true_divide", "Tensor"): "Scalar other",
    ("floor_divide", ""): "Scalar other",
}
# Second names that lack some of the overloads.
WITHOUT = {"true_divide": ("Tensor_mode", "Scalar_mode")}


def _add(op: Op, base: str, second: str) -> None:
    name = op.name.replace(base, second, 1)
    method = op.method or second == "orgqr"
    define(
        op.schema.text.replace(op.name, name, 1),
        doc=f"{op.doc} Another name of {base}.",
        composite=lambda *args: op.call(*args) if isinstance(args[0], Tensor) else number_first(op, args),
        samples=op.samples,
        method=bool(method),
        function=op.function,
        same_as=op.qualified,
    )


def _add_for_number(op: Op, second: str, arguments: str) -> None:
    """The overload of a second name that takes a number."""
    in_place = op.name.endswith("_")
    name, marks = (f"{second}_", "(a!)") if in_place else (second, "")
    overload = op.schema.overload.replace("Tensor", "Scalar") or "Scalar"
    first = next((o for o in DECLARED if o.name == op.name and o.schema.overload == overload), op)
    define(
        f"{name}.{overload}(Tensor{marks} self, {arguments}) -> Tensor{marks}",
        doc=f"{op.doc} For a number.",
        composite=first.call,
        samples=[] if "mode" in overload else [((3, 4), 2.5)],
        function=not in_place,
    )


def declare() -> None:
    """Declare the second names, after all first ones."""
    for_numbers = []
    for op in tuple(DECLARED):
        base = op.name.removesuffix("_")
        for second in (base, *ALIASES.get(base, ())):
            if op.schema.overload in WITHOUT.get(second, ()) or not (op.method or op.function):
                continue
            if second != base:
                _add(op, base, second)
            if arguments := FOR_NUMBERS.get((second, op.schema.overload)):
                for_numbers.append((op, second, arguments))
    for one in for_numbers:
        _add_for_number(*one)
