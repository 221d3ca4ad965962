"""Arithmetic: add, sub, mul, neg, reciprocal and the fused addcmul, addcdiv and lerp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.autograd.formula import Derivative, Formula
from stridescope.engine.dispatch.elementwise import elementwise, not_implemented
from stridescope.engine.dispatch.op import DECLARED, define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.result_strides import tensor_strides
from stridescope.engine.dispatch.run import Guarded, Pointwise, laid_out, pointwise, with_number
from stridescope.engine.dtype import BOOL, FROM_NUMPY, INTEGER, bool_, cpp_name, dtype, float64
from stridescope.engine.kernels.complex_product import multiplied
from stridescope.engine.kernels.fused import fused, half_fused
from stridescope.engine.layout import broadcast_shapes
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.number_range import number_of
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor

BOOL_SUB = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
    "instead."
)
BOOL_SUB_ONE = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead."
)


def scaled(grad: Tensor, factor: Any) -> Tensor:
    """``grad * factor``, or ``grad`` itself when the factor is 1 (``maybe_multiply``)."""
    result: Tensor = grad if factor == 1 and not isinstance(factor, bool) else grad * factor
    return result


def conj(value: Any) -> Any:
    """The complex conjugate; real values as they are."""
    if isinstance(value, Tensor):
        return value.conj() if value.dtype.is_complex else value
    return value.conjugate() if isinstance(value, complex) else value


def real_if(kind: dtype, grad: Tensor) -> Tensor:
    """The real part of a complex gradient for a real input (``handle_r_to_c``)."""
    result: Tensor = grad.real if grad.dtype.is_complex and not kind.is_complex else grad
    return result


def _times(array: Any, alpha: Any) -> Any:
    kind = np.asarray(array).dtype
    if alpha == 1 and kind.kind != "c":  # a complex 1 does change infinities
        return array
    return np.multiply(array, number_of(alpha, FROM_NUMPY[kind]))


_FUSED = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


def _is_fused(array: Any) -> bool:
    """Whether PyTorch's kernels multiply and add with one rounding."""
    return np.asarray(array).dtype in _FUSED


def plus_product(a: Any, b: Any, alpha: Any) -> Any:
    """``a + alpha * b``."""
    kind = np.asarray(b).dtype
    if alpha == 1 or kind not in _FUSED or np.asarray(a).dtype != kind:
        return np.add(a, _times(b, alpha))
    return fused(b, number_of(alpha, FROM_NUMPY[kind]), a, kind)


def _add(a: Any, b: Any, alpha: Any) -> Any:
    _check_scaled(a, b, alpha)
    return plus_product(a, b, alpha)


def _sub(a: Any, b: Any, alpha: Any) -> Any:
    _check_scaled(a, b, alpha)
    fusing = (alpha != 1 and _is_fused(b)) or np.asarray(b).dtype.kind == "c"  # complex ones add the negative
    return plus_product(a, b, -alpha) if fusing else np.subtract(a, _times(b, alpha))


def _check_scaled(a: Any, b: Any, alpha: Any) -> None:
    """Refuse shapes that do not match, then an ``alpha`` that does not suit."""
    if alpha.__class__ is not int:
        if (one := np.shape(a)) != (other := np.shape(b)):
            broadcast_shapes(one, other)
        check_alpha(a, alpha)


def check_alpha(array: Any, alpha: Any) -> None:
    """Refuse an ``alpha`` that the dtype cannot hold, with PyTorch's texts."""
    if alpha.__class__ is int:
        return
    kind = np.asarray(array).dtype.kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, (float, complex)) and kind in "iub":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and kind != "c" and str(kind) != "V":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


class Scaled(Pointwise):
    """``a + sign * alpha * b``, which half precision rounds otherwise when alpha is not 1."""

    def __init__(self, function: Callable[..., Any], sign: int, quick: np.ufunc) -> None:
        super().__init__(function, count=2, through=True, quick=quick)
        self.sign = sign

    def compute(self, arrays: list[Any], kind: dtype, rest: tuple[Any, ...], sources: list[Any]) -> Array:
        """The result array; see :class:`Pointwise`."""
        alpha = rest[0]
        if alpha == 1 or kind.itemsize != 2 or not kind.is_floating_point:
            return super().compute(arrays, kind, rest, sources)
        left, right = arrays
        broadcast_shapes(left.shape, right.shape)
        check_alpha(np.float32(0), alpha)
        result = half_fused(left, right, number_of(self.sign * alpha, kind), kind.np)
        return laid_out(result, self.strides(result.shape, sources))


class Subtraction(Scaled):
    """``a - alpha * b``; bool operands are refused."""

    def __call__(self, *args: Any) -> Tensor:
        """Compute the difference."""
        self.admit(*args)
        return super().__call__(*args)

    def admit(self, *args: Any) -> None:
        """Refuse bools."""
        kinds = [o.dtype.category == BOOL if isinstance(o, Tensor) else isinstance(o, bool) for o in args[:2]]
        if any(kinds):
            raise RuntimeError(BOOL_SUB if all(kinds) else BOOL_SUB_ONE)


_add_run = Scaled(_add, 1, np.add)
_subtract = Subtraction(_sub, -1, np.subtract)

_ADD_GRADS: dict[str, Callable[..., Any]] = {
    "self": lambda grad, self_scalar_type: real_if(self_scalar_type, grad),
    "other": lambda grad, other_scalar_type, alpha: real_if(other_scalar_type, scaled(grad, conj(alpha))),
}
_SUB_GRADS: dict[str, Callable[..., Any]] = {
    "self": lambda grad, self_scalar_type: real_if(self_scalar_type, grad),
    "other": lambda grad, other_scalar_type, alpha: real_if(other_scalar_type, scaled(-grad, conj(alpha))),
}

add = define(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    doc="Adds other, times alpha, to self.",
    run=_add_run,
    grads=_ADD_GRADS,
    samples=[((3, 4), (4,)), ((2, 1), (1, 5))],
    inplace=True,
)

sub = define(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    doc="Subtracts other, times alpha, from self.",
    run=_subtract,
    grads=_SUB_GRADS,
    samples=[((3, 4), (4,))],
    inplace=True,
)

# The forms with a number on the right stand apart in PyTorch's graph when its own C++ code uses them.
add_scalar = define(
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    doc="Adds a number, times alpha.",
    run=_add_run,
    node="AddBackward1",
    grads={"self": lambda grad, self_scalar_type: real_if(self_scalar_type, grad)},
    samples=[((3, 4), 2.0)],
    method=False,
    function=False,
)

sub_scalar = define(
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    doc="Subtracts a number, times alpha.",
    run=_subtract,
    node="SubBackward1",
    grads={"self": lambda grad, self_scalar_type: real_if(self_scalar_type, grad)},
    samples=[((3, 4), 2.0)],
    method=False,
    function=False,
)


def _from_number(self: Tensor, other: Any, alpha: Any) -> Tensor:
    usual = with_number(np.subtract, self, other, reflected=True) if alpha.__class__ is int and alpha == 1 else None
    return _subtract(other, self, alpha) if usual is None else usual


rsub_tensor = define(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    doc="Subtracts self, times alpha, from other.",
    run=lambda self, other, alpha: _subtract(other, self, alpha),
    node="RsubBackward0",
    grads={
        "self": lambda grad, self_scalar_type, alpha: real_if(self_scalar_type, scaled(-grad, conj(alpha))),
        "other": lambda grad, other_scalar_type: real_if(other_scalar_type, grad),
    },
    samples=[((3, 4), (4,))],
    method=False,
)

rsub = define(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    doc="Subtracts self, times alpha, from a number.",
    run=_from_number,
    node="RsubBackward1",
    grads={"self": lambda grad, self_scalar_type, alpha: real_if(self_scalar_type, scaled(-grad, conj(alpha)))},
    samples=[((3, 4), 2.0)],
    method=False,
)

mul = define(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="Multiplies element by element.",
    run=pointwise(multiplied, through=True, precise=1, quick=np.multiply),
    grads={
        "self": lambda grad, other, self_scalar_type: real_if(self_scalar_type, grad * conj(other)),
        "other": lambda grad, self, other_scalar_type: real_if(other_scalar_type, grad * conj(self)),
    },
    samples=[((3, 4), (4,)), ((2, 1), (1, 5))],
    inplace=True,
)

mul_scalar = define(
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    doc="Multiplies by a number.",
    run=pointwise(multiplied, through=True, precise=1, quick=np.multiply),
    node="MulBackward1",
    grads={"self": lambda grad, other, self_scalar_type: real_if(self_scalar_type, grad * conj(other))},
    samples=[((3, 4), 2.0)],
    method=False,
    function=False,
)


def _number_minus_tensor() -> Derivative:
    """The node of a number minus a tensor in C++: that of a difference whose first operand has no gradient."""
    formula = Formula.of("self", lambda grad, self_scalar_type: real_if(self_scalar_type, -grad))
    arguments = ("self", "other", "alpha")
    return Derivative("SubBackward0", ("other", "self"), (formula,), arguments, (), frozenset(("self",)))


_BY_NUMBER = {"add": add_scalar.derivative, "sub": sub_scalar.derivative, "mul": mul_scalar.derivative,
              "rsub": _number_minus_tensor()}  # fmt: skip
for _op in DECLARED:
    if (_number := _BY_NUMBER.get(_op.name.removesuffix("_"))) is not None and _op.derivative is not None:
        _op.derivative.in_formulas(_number)

neg = define(
    "neg(Tensor self) -> Tensor",
    doc="Changes the sign of each element.",
    run=elementwise(
        np.negative,
        "neg_cpu",
        refuse={"b": (RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
                      "to invert a mask, use the `~` or `logical_not()` operator instead.")},
        through=False,
    ),
    grads={"self": lambda grad: -grad},
    samples=[((3, 4),)],
    inplace=True,
)  # fmt: skip


def _reciprocal(a: Any) -> Any:
    return np.divide(a.dtype.type(1), a)


reciprocal = define(
    "reciprocal(Tensor self) -> Tensor",
    doc="One divided by each element.",
    run=pointwise(_reciprocal, to_float=True),
    grads={"self": lambda grad, result: -grad * conj(result * result)},
    samples=[((3, 4),)],
    inplace=True,
)


def _positive(self: Tensor) -> Tensor:
    if self.dtype.category == BOOL:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


positive = define(
    "positive(Tensor(a) self) -> Tensor(a)",
    doc="The tensor itself.",
    composite=_positive,
    samples=[((3, 4),)],
)


# ---- fused forms -------------------------------------------------------------------------------------------------


def _addcmul(a: Any, b: Any, c: Any, value: Any) -> Any:
    scaled = _times(b, value)
    return fused(scaled, c, a, scaled.dtype) if _is_fused(a) and _is_fused(c) else np.add(a, np.multiply(scaled, c))


def _addcdiv(a: Any, b: Any, c: Any, value: Any) -> Any:
    return np.add(a, np.divide(_times(b, value), c))


def _check_addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any) -> None:
    if tensor1.dtype.category <= INTEGER and tensor2.dtype.category <= INTEGER:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )


_addcdiv_kernel = elementwise(_addcdiv, "addcdiv_cpu_out", "ifc", count=3)

addcmul = define(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc="Adds value times tensor1 times tensor2.",
    run=elementwise(_addcmul, "addcmul_cpu_out", "ifc", count=3),
    grads={
        "self": lambda grad, self_scalar_type: real_if(self_scalar_type, grad),
        "tensor1": lambda grad, tensor2, value, tensor1_scalar_type: real_if(
            tensor1_scalar_type, grad * conj(tensor2 * value)
        ),
        "tensor2": lambda grad, tensor1, value, tensor2_scalar_type: real_if(
            tensor2_scalar_type, grad * conj(tensor1 * value)
        ),
    },
    samples=[((3, 4), (3, 4), (4,))],
    inplace=True,
)

addcdiv = define(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc="Adds value times tensor1 divided by tensor2.",
    run=Guarded(_check_addcdiv, _addcdiv_kernel),
    grads={
        "self": lambda grad, self_scalar_type: real_if(self_scalar_type, grad),
        "tensor1": lambda grad, tensor2, value, tensor1_scalar_type: real_if(
            tensor1_scalar_type, grad * conj(tensor2.new_full((), value) / tensor2)
        ),
        "tensor2": lambda grad, tensor1, tensor2, value, tensor2_scalar_type: real_if(
            tensor2_scalar_type, -grad * conj(value * tensor1 / (tensor2 * tensor2))
        ),
    },
    samples=[((3, 4), (3, 4), (4,))],
    inplace=True,
)


def _lerp(a: Any, b: Any, weight: Any) -> Any:
    # Two formulas meet in the middle, so that weight 1 gives exactly b.
    distance, low = np.subtract(b, a), np.less(np.abs(weight), 0.5)
    if not np.ndim(weight):
        return _from_start(a, distance, weight) if low else _from_end(b, distance, weight)
    return np.where(low, _from_start(a, distance, weight), _from_end(b, distance, weight))


def _from_start(a: Any, distance: Any, weight: Any) -> Any:
    if _is_fused(distance):
        return fused(distance, weight, a, distance.dtype)
    return np.add(a, np.multiply(weight, distance))


def _from_end(b: Any, distance: Any, weight: Any) -> Any:
    rest = np.subtract(np.asarray(weight).dtype.type(1), weight)
    if _is_fused(distance):
        return fused(distance, -rest, b, distance.dtype)
    return np.subtract(b, np.multiply(distance, rest))


def _check_lerp(self: Tensor, end: Tensor, weight: Any) -> None:
    if self.dtype is not end.dtype:
        raise RuntimeError(f"expected dtype {cpp_name(self.dtype)} for `end` but got dtype {cpp_name(end.dtype)}")
    if self.dtype.category <= INTEGER:
        broadcast_shapes(self._array.shape, end._array.shape)
        raise not_implemented("lerp_kernel_scalar", self.dtype)
    if isinstance(weight, complex) and weight.imag and not self.dtype.is_complex:
        kind = "double" if self.dtype is float64 else "float"
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")


def _check_lerp_tensor(self: Tensor, end: Tensor, weight: Tensor) -> None:
    for name, other in (("end", end), ("weight", weight)):
        if self.dtype is not other.dtype and (other._array.ndim or name == "end"):
            raise RuntimeError(
                f"expected dtype {cpp_name(self.dtype)} for `{name}` but got dtype {cpp_name(other.dtype)}"
            )


def _rest_of(weight: Tensor) -> Tensor:
    """What the weight leaves; the 1 is of its dtype, which a subtraction of bools refuses in words of its own."""
    return (weight.new_ones(()) if weight.dtype is bool_ else 1) - weight  # type: ignore[no-any-return]


_lerp_kernel = elementwise(_lerp, "lerp_kernel_scalar", "fc", precise=2, strides=tensor_strides)
_lerp_tensor_kernel = elementwise(_lerp, "lerp_kernel_tensor", "fc")

lerp = define(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    doc="Goes from self towards end by a share of the way for each element.",
    run=Guarded(_check_lerp_tensor, _lerp_tensor_kernel),
    out=Out(memory_first=True),
    node="LerpBackward1",
    grads={
        "self": lambda grad, weight: grad * conj(_rest_of(weight)),
        "end": lambda grad, weight: grad * conj(weight),
        "weight": lambda grad, self, end: grad * conj(end - self),
    },
    samples=[((3, 4), (4,), (3, 4))],
    inplace=True,
)

lerp_scalar = define(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    doc="Goes from self towards end by a share of the way.",
    run=Guarded(_check_lerp, _lerp_kernel),
    out=Out(memory_first=True),
    node="LerpBackward0",
    grads={
        "self": lambda grad, weight: grad * (1 - conj(weight)),
        "end": lambda grad, weight: grad * conj(weight),
    },
    samples=[((3, 4), (4,), 0.3)],
    inplace=True,
)

for _name, _factor in (("add", ", Scalar alpha=1"), ("sub", ", Scalar alpha=1"), ("mul", ""), ("div", "")):
    define(
        f"{_name}_.Scalar(Tensor(a!) self, Scalar other{_factor}) -> Tensor(a!)",
        doc=f"``{_name}_`` with a number, as C++ calls it.",
        composite=lambda self, other, *alpha, name=_name: op_call(f"{name}_.Tensor")(self, other, *alpha),
        samples=[((3, 4), 2.5)],
        method=False,
        function=False,
    )
