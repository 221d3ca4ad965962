"""Arithmetic: add, sub, mul, div, neg, pow and their friends."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import pointwise
from stridescope.engine.dtype import dtype
from stridescope.engine.tensor import Tensor


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


def _add(a: Any, b: Any, alpha: Any) -> Any:
    return np.add(a, b) if alpha == 1 else np.add(a, np.multiply(b, np.asarray(b).dtype.type(alpha)))


def _sub(a: Any, b: Any, alpha: Any) -> Any:
    if np.asarray(a).dtype == np.bool_:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    return np.subtract(a, b) if alpha == 1 else np.subtract(a, np.multiply(b, np.asarray(b).dtype.type(alpha)))


add = define(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    doc="Adds other, times alpha, to self.",
    run=pointwise(_add, count=2, quick=np.add),
    grads={
        "self": lambda grad, self_scalar_type: real_if(self_scalar_type, grad),
        "other": lambda grad, other_scalar_type, alpha: real_if(other_scalar_type, scaled(grad, conj(alpha))),
    },
    samples=[((3, 4), (4,)), ((2, 1), (1, 5))],
    inplace=True,
)

sub = define(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    doc="Subtracts other, times alpha, from self.",
    run=pointwise(_sub, count=2, quick=np.subtract),
    grads={
        "self": lambda grad, self_scalar_type: real_if(self_scalar_type, grad),
        "other": lambda grad, other_scalar_type, alpha: real_if(other_scalar_type, scaled(-grad, conj(alpha))),
    },
    samples=[((3, 4), (4,))],
    inplace=True,
)

rsub = define(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    doc="Subtracts self, times alpha, from other.",
    run=pointwise(lambda a, b, alpha: _sub(b, a, alpha), count=2),
    node="RsubBackward1",
    grads={"self": lambda grad, self_scalar_type, alpha: real_if(self_scalar_type, scaled(-grad, conj(alpha)))},
    samples=[((3, 4), 2.0)],
)

mul = define(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="Multiplies element by element.",
    run=pointwise(np.multiply),
    grads={
        "self": lambda grad, other, self_scalar_type: real_if(self_scalar_type, grad * conj(other)),
        "other": lambda grad, self, other_scalar_type: real_if(other_scalar_type, grad * conj(self)),
    },
    samples=[((3, 4), (4,)), ((2, 1), (1, 5))],
    inplace=True,
)

div = define(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="Divides element by element; integers give floats.",
    run=pointwise(np.true_divide, to_float=True),
    grads={
        "self": lambda grad, other, self_scalar_type: real_if(self_scalar_type, grad / conj(other)),
        "other": lambda grad, self, other, other_scalar_type: real_if(
            other_scalar_type, -grad * conj((self / other) / other)
        ),
    },
    samples=[((3, 4), (4,))],
    inplace=True,
)

neg = define(
    "neg(Tensor self) -> Tensor",
    doc="Changes the sign of each element.",
    run=pointwise(np.negative),
    grads={"self": lambda grad: -grad},
    samples=[((3, 4),)],
    inplace=True,
)

reciprocal = define(
    "reciprocal(Tensor self) -> Tensor",
    doc="One divided by each element.",
    run=pointwise(np.reciprocal, to_float=True),
    grads={"self": lambda grad, result: -grad * conj(result * result)},
    samples=[((3, 4),)],
    inplace=True,
)


def _pow_scalar(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    if exponent == 0:
        return self.new_zeros(self.shape)
    power = self if exponent == 2 else self.pow(exponent - 1)
    result: Tensor = grad * conj(power * exponent)
    return result


def _pow(a: Any, b: Any) -> Any:
    kind = np.asarray(a).dtype
    if kind.kind in "iu" and np.any(np.less(b, 0)):
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return np.power(a, b)


pow_scalar = define(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    doc="Raises each element to a power.",
    run=pointwise(_pow),
    node="PowBackward0",
    grads={"self": _pow_scalar},
    samples=[((3, 4), 2), ((3,), 3.0)],
    inplace=True,
)


def _pow_other(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    safe = (self == 0).logical_and(exponent >= 0)
    logs = self.log().masked_fill(safe, 0)
    return grad * conj(result * logs)  # type: ignore[no-any-return]


pow_tensor = define(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    doc="Raises each element to the power that stands in exponent.",
    run=pointwise(_pow),
    node="PowBackward1",
    grads={
        "self": lambda grad, self, exponent: (
            grad * conj(exponent * self.pow(exponent - 1)).masked_fill(exponent == 0, 0)
        ),
        "exponent": _pow_other,
    },
    samples=[((3, 4), (4,))],
    inplace=True,
)
