"""Elementwise functions of one tensor: exponentials, logarithms, trigonometry, roots."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.elementwise import Refusal, elementwise
from stridescope.engine.dispatch.op import Op, define
from stridescope.engine.dispatch.out_rule import Out
from stridescope.engine.dispatch.result_strides import like_strides
from stridescope.engine.dispatch.run import into
from stridescope.engine.ops.arithmetic import conj, mul_scalar
from stridescope.engine.ops.lanes import in_float
from stridescope.engine.ops.lookup import where
from stridescope.engine.tensor import Tensor

LN2, LN10 = math.log(2.0), math.log(10.0)


# In place these have no derivative in PyTorch.
NO_INPLACE_GRADIENT = ("acosh", "asinh", "atanh")


def _refused(name: str) -> Callable[..., Any]:
    def formula(grad: Tensor) -> Tensor:
        raise NotImplementedError(f"the derivative for 'inplace version of {name}' is not implemented.")

    return formula


def float_function(
    name: str,
    function: Callable[..., Any],
    doc: str,
    grad: Callable[..., Any] | None,
    *,
    takes: str = "bifc",
    label: str = "",
    refuse: dict[str, Refusal] | None = None,
    samples: tuple[Any, ...] = (((3, 4),),),
) -> Op:
    """Declare a function of one tensor that computes in floating point, with its in-place form."""
    run = elementwise(function, label or f"{name}_vml_cpu", takes, refuse, to_float=True)
    one_sided = name in NO_INPLACE_GRADIENT
    op = define(
        f"{name}(Tensor self) -> Tensor",
        doc=doc,
        run=run,
        grads={"self": grad} if grad else None,
        samples=samples,
        inplace=not one_sided,
    )
    if one_sided:
        define(
            f"{name}_(Tensor(a!) self) -> Tensor(a!)",
            doc=f"{doc} Written in place.",
            run=into(run),
            node=f"{name.capitalize()}Backward1",
            grads={"self": _refused(name)},
        )
    return op


def _one(a: Any) -> Any:
    return a.dtype.type(1)


def _rsqrt(a: Any) -> Any:
    return np.divide(_one(a), np.sqrt(a))


def _log2(a: Any) -> Any:
    return np.log(a) / a.dtype.type(LN2) if a.dtype.kind == "c" else np.log2(a)


def _sigmoid(a: Any) -> Any:
    return np.divide(_one(a), np.add(_one(a), np.exp(np.negative(a))))


def _sinc(a: Any) -> Any:
    product = a * a.dtype.type(math.pi)
    return np.where(a == 0, _one(a), np.sin(product) / np.where(product == 0, _one(a), product))


def _sinc_grad(grad: Tensor, self: Tensor) -> Tensor:
    angle = self * math.pi
    square = self * self * math.pi
    inside: Tensor = grad * conj((angle * angle.cos() - angle.sin()) / square)
    return where(square == 0.0, grad.new_zeros(()), inside)


def _erf(a: Any) -> Any:
    from scipy import special

    return special.erf(a)


def _erfc(a: Any) -> Any:
    from scipy import special

    return special.erfc(a)


def _erfinv(a: Any) -> Any:
    from scipy import special

    return np.where(np.equal(a, 0), a, special.erfinv(a))  # SciPy's loses the sign of a zero


def _acosh_grad(grad: Tensor, self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return grad * conj((self + 1).rsqrt() * (self - 1).rsqrt())  # type: ignore[no-any-return]
    return grad * (self * self - 1).rsqrt()  # type: ignore[no-any-return]


_TABLE: tuple[tuple[Any, ...], ...] = (
    ("exp", np.exp, "e to the power of each element.", lambda grad, result: grad * conj(result)),
    ("exp2", np.exp2, "2 to the power of each element.", lambda grad, result: grad * conj(result) * LN2),
    ("expm1", np.expm1, "e to the power of each element, minus 1; exact for small elements.",
     lambda grad, result: grad * (conj(result) + 1)),
    ("log", np.log, "The natural logarithm of each element.", lambda grad, self: grad / conj(self)),
    ("log2", _log2, "The logarithm to base 2.", lambda grad, self: grad / conj(self * LN2)),
    ("log10", np.log10, "The logarithm to base 10.", lambda grad, self: grad / conj(self * LN10)),
    ("log1p", np.log1p, "The natural logarithm of 1 plus each element.", lambda grad, self: grad / conj(self + 1)),
    ("sqrt", np.sqrt, "The square root of each element.", lambda grad, result: grad / (2 * conj(result))),
    ("rsqrt", _rsqrt, "One divided by the square root.", lambda grad, result: -0.5 * grad * conj(result.pow(3))),
    ("sin", np.sin, "The sine of each element.", lambda grad, self: grad * conj(self.cos())),
    ("cos", np.cos, "The cosine of each element.", lambda grad, self: grad * -conj(self.sin())),
    ("tan", np.tan, "The tangent of each element.", lambda grad, result: grad * conj(1 + result.pow(2))),
    ("asin", np.arcsin, "The angle whose sine is the element.",
     lambda grad, self: grad * conj((-self * self + 1).rsqrt())),
    ("acos", np.arccos, "The angle whose cosine is the element.",
     lambda grad, self: grad * -conj((-self * self + 1).rsqrt())),
    ("atan", np.arctan, "The angle whose tangent is the element.", lambda grad, self: grad / conj(self * self + 1)),
    ("sinh", np.sinh, "The hyperbolic sine.", lambda grad, self: grad * conj(self.cosh())),
    ("cosh", np.cosh, "The hyperbolic cosine.", lambda grad, self: grad * conj(self.sinh())),
    ("tanh", np.tanh, "Squeezes each element into (-1, 1).",
     lambda grad, result: in_float(lambda grad, result: grad * conj(1 - result * result), grad, result)),
    ("asinh", np.arcsinh, "The inverse of the hyperbolic sine.",
     lambda grad, self: grad * conj((self.pow(2) + 1).rsqrt())),
    ("acosh", np.arccosh, "The inverse of the hyperbolic cosine.", _acosh_grad),
    ("atanh", np.arctanh, "The inverse of the hyperbolic tangent.",
     lambda grad, self: grad * 1 / conj(1 - self.pow(2))),
    ("sigmoid", _sigmoid, "Squeezes each element into (0, 1).",
     lambda grad, result: grad * conj((1 - result) * result)),
    ("sinc", _sinc, "The sine of pi x divided by pi x, 1 at zero.", _sinc_grad),
)  # fmt: skip

# The domain a sample must lie in, where a standard normal one would leave it: the tests read it.
DOMAINS = {
    "log": (0.1, 3.0), "log2": (0.1, 3.0), "log10": (0.1, 3.0), "log1p": (-0.5, 3.0), "sqrt": (0.1, 3.0),
    "rsqrt": (0.1, 3.0), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9), "acosh": (1.1, 3.0),
    "erfinv": (-0.9, 0.9), "logit": (0.1, 0.9),
}  # fmt: skip

for _name, _function, _doc, _grad in _TABLE:
    float_function(_name, _function, _doc, _grad)

float_function(
    "erf", _erf, "The error function.",
    lambda grad, self: 2.0 / math.sqrt(math.pi) * (-self.pow(2)).exp() * grad, takes="bif",
)  # fmt: skip
float_function(
    "erfc", _erfc, "1 minus the error function.",
    lambda grad, self: -2.0 / math.sqrt(math.pi) * (-self.pow(2)).exp() * grad, takes="bif",
)  # fmt: skip
float_function(
    "erfinv", _erfinv, "The inverse of the error function.",
    lambda grad, self: 0.5 * math.sqrt(math.pi) * self.erfinv().pow(2).exp() * grad, takes="bif",
)  # fmt: skip


def _logit(a: Any, eps: float | None) -> Any:
    """In the operand's own precision: float16 and bfloat16 round after every step, as PyTorch's kernel does."""
    one = _one(a)
    if eps is not None:
        a = np.where(a < eps, a.dtype.type(eps), np.where(a > 1 - eps, one - a.dtype.type(eps), a))
    return np.log(np.divide(a, np.subtract(one, a)))


define(
    "logit(Tensor self, float? eps=None) -> Tensor",
    doc="The logarithm of x / (1 - x), the inverse of sigmoid.",
    run=elementwise(_logit, "logit_cpu", "bif", to_float=True, count=1, through=False),
    grads={"self": lambda grad, self, eps: _logit_grad(grad, self, eps)},
    samples=[((3, 4),)],
    inplace=True,
)


def _logit_slope(grad: Any, a: Any, eps: float | None) -> Any:
    one, low = _one(a), a.dtype.type(eps or 0.0)
    with np.errstate(all="ignore"):
        slope = np.divide(grad, np.multiply(a, np.subtract(one, a)))
    return np.where((a >= low) & (a <= one - low), slope, a.dtype.type(math.nan if eps is None else 0.0))


_logit_backward = elementwise(_logit_slope, "logit_backward_cpu", "f", count=2, through=False)


def _logit_grad(grad: Tensor, self: Tensor, eps: float | None) -> Tensor:
    """One kernel, or where it shall be differentiated again other ops, with their layout of the result."""
    if not grad_mode.enabled:
        return _logit_backward(grad, self, eps)
    low = eps or 0.0
    inside = (self >= low).logical_and(self <= 1.0 - low)
    return _select(inside, grad / (self * (1.0 - self)), math.nan if eps is None else 0.0)


def _select(condition: Tensor, inside: Tensor, outside: float) -> Tensor:
    return where(condition, inside, inside.new_full((), outside))


def _scaled_angle(name: str, factor: float, doc: str) -> None:
    define(
        f"{name}(Tensor self) -> Tensor",
        doc=doc,
        run=elementwise(
            lambda a: a * a.dtype.type(factor),
            name,
            strides=like_strides,
            refuse={"c": (RuntimeError, f"{name} is not supported for complex tensors.")},
            to_float=True,
        ),
        grads={"self": lambda grad: mul_scalar.call(grad, factor)},
        samples=[((3, 4),)],
        inplace=True,
    )


_scaled_angle("deg2rad", math.pi / 180.0, "Degrees as radians.")
_scaled_angle("rad2deg", 180.0 / math.pi, "Radians as degrees.")


def _square(self: Tensor) -> Tensor:
    result: Tensor = self.pow(2)
    return result


define(
    "square(Tensor self) -> Tensor",
    doc="Each element times itself.",
    composite=_square,
    out=Out(memory_first=True),
    samples=[((3, 4),)],
)
define(
    "square_(Tensor(a!) self) -> Tensor(a!)",
    doc="Each element times itself, written in place.",
    composite=lambda self: self.pow_(2),
)
