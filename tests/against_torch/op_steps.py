"""The steps of the op programs: elementwise ops, reductions, casts, in-place forms, out= and products."""

from __future__ import annotations

import math
from typing import Any

from op_programs import COMMON, COMPLEX, DTYPES, FLOATS, INTEGERS, Inexact, OpProgram, step

EXACT_UNARY = [
    "abs",
    "neg",
    "sign",
    "sgn",
    "floor",
    "ceil",
    "round",
    "trunc",
    "frac",
    "square",
    "relu",
    "logical_not",
    "bitwise_not",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "isposinf",
    "isneginf",
    "clone",
    "positive",
    "real",
    "imag",
    "conj",
    "conj_physical",
    "resolve_conj",
    "resolve_neg",
    "nan_to_num",
    "fix",
    "negative",
    "absolute",
    "isreal",
    "contiguous",
    "detach",
    "ravel",
]
FREE_UNARY = [
    "exp",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sigmoid",
    "erf",
    "erfc",
    "erfinv",
    "lgamma",
    "digamma",
    "exp2",
    "deg2rad",
    "rad2deg",
    "angle",
    "logit",
    "sinc",
    "i0",
]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor"]
EXACT_BINARY = ["add", "sub", "mul", "maximum", "minimum", "fmax", "fmin", "remainder", "fmod", "floor_divide", "rsub",
                "copysign", "heaviside", "nextafter", "gcd", "lcm", "subtract", "multiply", *COMPARISONS, *LOGICAL,
                *BITS, "bitwise_left_shift", "bitwise_right_shift"]  # fmt: skip
FREE_BINARY = [
    "div",
    "true_divide",
    "pow",
    "atan2",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "xlogy",
    "float_power",
    "ldexp",
]
PARTIAL = ["remainder_", "floor_divide_", "fmod_", "//=", "%="]
OPERATORS = ["+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^"]
FREE_OPERATORS = ["/", "**"]


def applied(p: OpProgram, one: Any, sign: str, other: Any) -> Any:
    p.words.append(sign)
    return eval(f"a {sign} b", {"a": one, "b": other})


def called(p: OpProgram, name: str, one: Any, *args: Any, **options: Any) -> Any:
    """By function or method, as the seed says."""
    p.words.append(name)
    if hasattr(p.torch.Tensor, name) and p.chance(0.5):
        return getattr(one, name)(*args, **options)
    return getattr(p.torch, name)(one, *args, **options)


def whole(p: OpProgram, one: Any) -> bool:
    """Whether results of this dtype are exact."""
    return p.kind(one) in INTEGERS or p.kind(one) == "bool"


def signless(p: OpProgram, one: Any) -> Any:
    """The tensor with one NaN for all: which sign a NaN gets depends on the width of vectors and on the processor."""
    floats = isinstance(one, p.torch.Tensor) and one.is_floating_point()
    return one.masked_fill(one.isnan(), math.nan) if floats else one


# ---- elementwise -----------------------------------------------------------------------------------------------------


@step(8)
def unary(p: OpProgram) -> Any:
    one, name = p.tensor(), p.pick(EXACT_UNARY)
    one = signless(p, one) if name == "signbit" else one
    if name in ("contiguous", "abs", "absolute") or not hasattr(p.torch, name):
        found = getattr(one, name)()
        return Inexact(found) if p.kind(one) in COMPLEX and name.startswith("abs") else found
    found = called(p, name, one)
    return Inexact(found) if name in ("sgn", "neg", "negative") and p.kind(one) in COMPLEX else found


@step(4)
def free_unary(p: OpProgram) -> Any:
    one = p.tensor()
    if p.kind(one) in COMPLEX:
        return Inexact(called(p, p.pick(["exp", "sin", "cos", "sqrt", "reciprocal", "sigmoid", "angle"]), one))
    return Inexact(called(p, p.pick(FREE_UNARY), one))


@step(12)
def binary(p: OpProgram) -> Any:
    one, name = p.tensor(), p.pick(EXACT_BINARY)
    other = p.other(one)
    found = called(p, name, one, signless(p, other) if name == "copysign" else other)
    if name in ("maximum", "minimum", "fmax", "fmin"):  # which of +0 and -0 wins depends on the width of vectors
        return Inexact(found)
    return Inexact(found) if name in ("remainder", "fmod", "mul", "multiply") and loose(p, found) else found


def loose(p: OpProgram, found: Any) -> bool:
    return p.kind(found) in (*COMPLEX, "float16", "bfloat16")


@step(3)
def free_binary(p: OpProgram) -> Any:
    one = p.tensor()
    return Inexact(called(p, p.pick(FREE_BINARY), one, p.other(one)))


@step(6)
def operator(p: OpProgram) -> Any:
    one = p.tensor()
    found = applied(
        p, *((one, p.pick(OPERATORS), p.other(one)) if p.chance(0.7) else (p.number(), p.pick(OPERATORS), one))
    )
    return Inexact(found) if isinstance(found, p.torch.Tensor) and loose(p, found) else found


@step(2)
def free_operator(p: OpProgram) -> Any:
    one = p.tensor()
    sign = p.pick(FREE_OPERATORS)
    if p.chance(0.3):
        return Inexact(applied(p, p.number(), sign, one))
    return Inexact(applied(p, one, sign, p.other(one)))


@step(2)
def scaled(p: OpProgram) -> Any:
    one = p.tensor()
    return Inexact(called(p, p.pick(["add", "sub"]), one, p.other(one), alpha=p.number()))


@step(2)
def rounded_quotient(p: OpProgram) -> Any:
    one = p.tensor()
    return Inexact(called(p, "div", one, p.other(one), rounding_mode=p.pick(["floor", "trunc", None])))


@step(2)
def clamped(p: OpProgram) -> Any:
    one = p.tensor()
    name = p.pick(["clamp", "clip", "clamp_min", "clamp_max"])
    if name in ("clamp", "clip"):
        return called(p, name, one, **p.options(min=[-1, 0.5, 0], max=[2, 1.5, -1]))
    other = p.other(one)
    found = called(p, name, one, other)
    return found if isinstance(other, (int, float)) else Inexact(found)


@step(3)
def chosen(p: OpProgram) -> Any:
    one = p.tensor()
    condition = p.tensor(["bool"])
    return p.torch.where(condition if p.chance(0.5) else one == p.number_for(one), one, p.other(one))


@step(2)
def ternary(p: OpProgram) -> Any:
    one = p.tensor()
    name = p.pick(["addcmul", "addcdiv", "lerp"])
    first, second = p.other(one), p.other(one)
    if name == "addcdiv" and isinstance(second, p.torch.Tensor) and whole(p, second):
        second = second.double()  # PyTorch fails to differentiate a division by integers
    found = called(p, name, one, first, second, **({} if name == "lerp" else p.options(value=[2, 0.5])))
    return Inexact(found)


@step(3)
def activated(p: OpProgram) -> Any:
    one, name = p.tensor(), p.pick(["relu", "relu6", "leaky_relu", "elu", "gelu", "silu", "softplus", "hardtanh",
        "selu", "hardsigmoid", "hardswish", "hardshrink", "softshrink", "threshold", "mish", "celu", "logsigmoid",
        "tanhshrink", "softsign", "softmax", "log_softmax", "normalize", "glu", "prelu", "dropout"])  # fmt: skip
    function = getattr(p.torch.nn.functional, name)
    if name in ("softmax", "log_softmax", "glu"):
        return Inexact(function(one, p.dim(one)))
    if name == "threshold":
        return function(one, 0.5, p.number())
    if name == "prelu":
        return Inexact(function(one.contiguous(), p.torch.tensor([0.25])))
    return function(one, 0.5, False) if name == "dropout" else Inexact(function(one))


@step(2)
def compared(p: OpProgram) -> Any:
    one = p.tensor()
    other = p.other(one)
    if not isinstance(other, p.torch.Tensor):
        other = one.clone()
    name = p.pick(["equal", "allclose", "isclose", "result_type", "is_same_size"])
    found = getattr(p.torch, name)(one, other)
    return str(found) if name == "result_type" else found


# ---- in place --------------------------------------------------------------------------------------------------------


@step(8)
def written(p: OpProgram) -> Any:
    one = p.target()
    name = p.pick(["add_", "sub_", "mul_", "copy_", "remainder_", "floor_divide_", "bitwise_and_", "bitwise_or_", "eq_",
                   "lt_", "logical_and_", "fmod_", "bitwise_xor_", "ge_", "logical_xor_"])  # fmt: skip
    if name in ("mul_", "remainder_", "fmod_") and p.kind(one) not in (*INTEGERS, "float32", "float64"):
        one = one.clone()
    if name in PARTIAL and whole(p, one):  # a division by zero leaves some elements written
        one = one.clone()
    p.words.append("on itself")
    return getattr(one, name)(p.source(one))


@step(4)
def changed(p: OpProgram) -> Any:
    one = p.target()
    if one.is_complex():  # the signs of zeros depend on the width of vectors
        return Inexact(one.clone().neg_())
    name = p.pick(["neg_", "abs_", "zero_", "relu_", "floor_", "round_", "trunc_", "sign_", "logical_not_", "ceil_",
                   "bitwise_not_", "square_", "nan_to_num_", "frac_", "conj_physical_"])  # fmt: skip
    return getattr(one, name)()


@step(3)
def changed_freely(p: OpProgram) -> Any:
    one = p.tensor().clone()
    name = p.pick(
        ["exp_", "sin_", "sqrt_", "sigmoid_", "tanh_", "reciprocal_", "log_", "div_", "pow_", "atan_", "erf_"]
    )
    return Inexact(getattr(one, name)(*([p.other(one)] if name in ("div_", "pow_") else [])))


@step(2)
def filled(p: OpProgram) -> Any:
    one = p.target()
    return one.fill_(p.other(one) if p.chance(0.2) else p.number())


@step(3)
def augmented(p: OpProgram) -> Any:
    one = p.target()
    names = {"a": one, "b": p.source(one)}
    sign = p.pick(["+=", "-=", "*=", "//=", "%=", "&=", "|=", "^=", "<<=", ">>="])
    if sign in ("*=", "%=") and p.kind(one) not in (*INTEGERS, "float32", "float64"):
        names["a"] = one.clone()
    if sign in PARTIAL and whole(p, one):
        names["a"] = one.clone()
    exec(f"a {sign} b", names)
    return names["a"]


# ---- out= ------------------------------------------------------------------------------------------------------------


@step(4)
def into_out(p: OpProgram) -> Any:
    one, name = p.tensor(), p.pick(["add", "sub", "mul", "maximum", "eq", "logical_and", "neg", "sum", "cat",
                                    "floor", "where", "bitwise_and", "cumsum", "stack", "remainder"])  # fmt: skip
    out = p.target() if p.chance(0.5) else p.torch.empty(0, dtype=p.dtype(DTYPES))
    if name == "remainder":
        out = out.clone()
    where = out.untyped_storage().data_ptr()
    if any(t is not out and t.untyped_storage().data_ptr() == where for t in p.tensors.values()):
        out = out.clone()  # others would see its memory move, or be written to, when it grows
    if name in ("cat", "stack"):
        if any(out is t for t in p.tensors.values()):
            out = out.clone()  # PyTorch resizes before it finds that the output is an input
        return getattr(p.torch, name)([one, one], out=out)
    return written_out(p, name, one, out)


def written_out(p: OpProgram, name: str, one: Any, out: Any) -> Any:
    shape = out.shape
    try:
        return into(p, name, one, out)
    except Exception:
        if out.shape != shape:  # it has grown before the kernel refused, and holds what was never written
            p.tensors = {known: t for known, t in p.tensors.items() if t is not out}
        raise


def into(p: OpProgram, name: str, one: Any, out: Any) -> Any:
    if name == "neg" and out.is_complex():  # the signs of zeros depend on the width of vectors
        return Inexact(p.torch.neg(one, out=out.clone()))
    if name in ("neg", "abs", "floor"):
        return getattr(p.torch, name)(one, out=out)
    if name in ("sum", "cumsum"):
        out = out.clone()  # a reduction over its own output reads what it has written
        return getattr(p.torch, name)(one, p.dim(one), out=out)
    if name == "where":
        return p.torch.where(one == 0, one, one, out=out)
    if name == "maximum":
        out = out.clone()
    found = getattr(p.torch, name)(one, p.other(one), out=out)
    if name == "maximum":
        return Inexact(found)
    return Inexact(found) if name in ("mul", "remainder") and loose(p, found) else found


# ---- casts and numbers -----------------------------------------------------------------------------------------------


@step(5)
def cast(p: OpProgram) -> Any:
    one, kind = p.tensor(), p.pick(DTYPES)
    if kind in INTEGERS and p.kind(one) in FLOATS:  # what an infinity or a large float becomes is left open by C
        one = one.nan_to_num(0, 7, -7).clamp(0, 100)
    if kind in INTEGERS and p.kind(one) in COMPLEX:
        one = one.real.nan_to_num(0, 7, -7).clamp(0, 100)
    wanted = getattr(p.torch, kind)
    return p.pick([lambda: one.to(wanted), lambda: one.type(wanted), lambda: one.to(wanted, copy=True)])()


@step(2)
def short_cast(p: OpProgram) -> Any:
    one = p.tensor()
    return getattr(one, p.pick(["float", "double", "half", "bfloat16", "bool", "cfloat", "cdouble"]))()


@step(2)
def asked(p: OpProgram) -> Any:
    one = p.tensor()
    questions = ["item", "tolist", "numel", "dim", "size", "stride", "is_contiguous", "nelement", "element_size",
                 "is_floating_point", "is_complex", "is_signed", "storage_offset", "__len__", "__bool__", "__int__",
                 "__float__", "__index__", "__complex__", "__repr__", "is_nonzero"]  # fmt: skip
    return Inexact(getattr(one, p.pick(questions))())


# ---- new tensors -----------------------------------------------------------------------------------------------------


@step(3)
def alike(p: OpProgram) -> Any:
    one = p.tensor()
    name = p.pick(["zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "new_tensor"])
    options = p.options(dtype=[p.dtype(DTYPES)])
    if name == "full_like":
        return p.torch.full_like(one, p.number(), **options)
    if name in ("zeros_like", "ones_like"):
        return getattr(p.torch, name)(one, **options)
    if name == "new_tensor":  # of a conjugated one PyTorch fails
        return one.resolve_conj().new_tensor([1, 0, 1])
    return getattr(one, name)((2, 1), *([p.number()] if name == "new_full" else []), **options)


@step(3)
def created(p: OpProgram) -> Any:
    torch, name = (
        p.torch,
        p.pick(["arange", "full", "eye", "tensor", "linspace", "zeros", "scalar_tensor", "tril_indices"]),
    )
    options = p.options(dtype=[p.dtype(DTYPES)])
    if name == "arange":
        return torch.arange(*p.pick([(4,), (1, 5), (0, 2, 0.5), (5, 0, -2), (3, 1), (1.5,)]), **options)
    if name == "full":
        return torch.full(p.pick([(2,), (), (1, 3), (0,)]), p.number(), **options)
    if name == "eye":
        return torch.eye(*p.pick([(2,), (2, 3), (0,)]), **options)
    if name == "linspace":
        return Inexact(torch.linspace(p.number(), p.number(), p.pick([0, 1, 5]), **options))
    if name == "tensor":
        return torch.tensor(
            p.pick([[1, 2.5], [True, False], 3, [[1], [2]], [], [1, 2j], [[1, 2], [3]], 0.5]), **options
        )
    if name == "scalar_tensor":
        return torch.scalar_tensor(p.number(), **options)
    return torch.tril_indices(3, 2) if name == "tril_indices" else torch.zeros(p.pick([2, (1, 2), ()]), **options)


@step(1)
def promoted(p: OpProgram) -> Any:
    one, other = p.dtype(DTYPES), p.dtype(COMMON)
    return [
        str(p.torch.promote_types(one, other)),
        p.torch.can_cast(one, other),
        str(p.torch.result_type(p.tensor(), 0.5)),
    ]
