"""Elementwise functions of two tensors: angles, logarithms of sums, signs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise, not_implemented
from stridescope.engine.dispatch.op import define, no_derivative
from stridescope.engine.dispatch.out import warn_of_growth
from stridescope.engine.dispatch.out_rule import LEAVES, Out
from stridescope.engine.dispatch.result_strides import like_strides, output_strides, row_major
from stridescope.engine.dispatch.run import Guarded, into, pointwise
from stridescope.engine.dtype import BOOL, FLOAT, bfloat16, float16, float64, scalar_name
from stridescope.engine.layout import broadcast_shapes
from stridescope.engine.ops.arithmetic import conj
from stridescope.engine.ops.choice import where
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.ops.powers import complex_pow, pow_base
from stridescope.engine.tensor import Tensor, fresh

LN2 = math.log(2.0)


def _atan2_grads(grad: Tensor, self: Tensor, other: Tensor, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    size = (self * self + other * other).reciprocal()
    size = size.masked_fill((self * self + other * other) == 0, 0)
    return grad * other * size if needs[0] else None, grad * -self * size if needs[1] else None


define(
    "atan2(Tensor self, Tensor other) -> Tensor",
    doc="The angle of the point (other, self).",
    run=elementwise(np.arctan2, "atan2_cpu", "bif", to_float=True),
    grads={"self,other": _atan2_grads},
    samples=[((3, 4), (4,))],
    inplace=True,
)

define(
    "hypot(Tensor self, Tensor other) -> Tensor",
    doc="The length of the hypotenuse over two sides.",
    run=elementwise(np.hypot, "hypot_cpu", "f"),
    grads={
        "self": lambda grad, self, result: grad * self / result,
        "other": lambda grad, other, result: grad * other / result,
    },
    samples=[((3, 4), (4,))],
    inplace=True,
)


def _logaddexp(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind != "c":
        return np.logaddexp(a, b)
    return _complex_logaddexp(*np.broadcast_arrays(a, b))


def _complex_logaddexp(a: Any, b: Any) -> Any:
    """NaN in either part of either makes NaN of both parts; two infinite real parts are added as they are."""
    swap = a.real >= b.real
    larger, smaller = np.where(swap, a, b), np.where(swap, b, a)
    same = (larger.real == smaller.real) & np.isinf(larger.real)
    found = np.where(same & (larger.real < 0), smaller, larger + np.log1p(np.exp(smaller - larger)))
    found = np.where(same & (larger.real > 0), np.log(_grown(smaller) + _grown(larger)), found)
    return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(complex(math.nan, math.nan)), found)


def _grown(a: Any) -> Any:
    """e to the power of numbers with an infinite real part: infinite in each part whose factor is not zero."""
    sine, cosine = np.sin(a.imag), np.cos(a.imag)
    found = np.empty_like(a)
    found.real = np.where(np.isfinite(a.imag), np.where(cosine == 0, 0, np.inf * cosine), np.inf)
    found.imag = np.where(np.isfinite(a.imag), np.where(sine == 0, 0, np.inf * sine), np.nan)
    return found


define(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    doc="The logarithm of e to the self plus e to the other.",
    run=elementwise(_logaddexp, "logaddexp_cpu", "fc"),
    grads={
        "self": lambda grad, self, other: grad / conj(1 + (other - self).exp()),
        "other": lambda grad, self, other: grad / conj(1 + (self - other).exp()),
    },
    samples=[((3, 4), (4,))],
)

define(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    doc="The logarithm to base 2 of 2 to the self plus 2 to the other.",
    run=elementwise(np.logaddexp2, "logaddexp2_cpu", "f"),
    grads={
        "self": lambda grad, self, other: grad / (1 + op_call("pow.Scalar")(2, other - self)),
        "other": lambda grad, self, other: grad / (1 + op_call("pow.Scalar")(2, self - other)),
    },
    samples=[((3, 4), (4,))],
)


def _xlogy(a: Any, b: Any) -> Any:
    """PyTorch rounds the logarithm of a half-precision number before it multiplies."""
    kind = np.asarray(b).dtype
    log = np.log(b.astype(np.float32)).astype(kind) if kind.itemsize == 2 and kind.kind not in "iu" else np.log(b)
    product = np.multiply(a, log)
    return np.where(np.isnan(b), b, np.where(np.equal(a, 0), np.asarray(product).dtype.type(0), product))


_xlogy_run = elementwise(_xlogy, "xlogy_cpu", "bif", to_float=True, through=False)
_SELF_TENSOR = lambda grad, self, other: xlogy(grad, other).masked_fill((self == 0.0).logical_and(other <= 0.0), 0.0)  # noqa: E731


def xlogy(a: Any, b: Any) -> Tensor:
    """``a * log(b)``, 0 where a is 0."""
    overload = ("" if isinstance(a, Tensor) else "left") or ("" if isinstance(b, Tensor) else "right")
    return _XLOGY[overload].call(a, b)  # type: ignore[no-any-return]


_XLOGY = {
    "": define(
        "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
        doc="self times the logarithm of other, 0 where self is 0.",
        run=_xlogy_run,
        node="XlogyBackward0",
        grads={"self": _SELF_TENSOR, "other": lambda grad, self, other: grad * self / other},
        inplace=True,
    ),
    "left": define(
        "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
        doc="A number times the logarithm of other.",
        run=_xlogy_run,
        node="XlogyBackward1",
        grads={"other": lambda grad, self, other: grad * self / other},
        method=False,
    ),
    "right": define(
        "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
        doc="self times the logarithm of a number, 0 where self is 0.",
        run=_xlogy_run,
        node="XlogyBackward2",
        grads={
            "self": lambda grad, self, other: (
                xlogy(grad, other) if other > 0 else xlogy(grad, other).masked_fill(self == 0.0, 0.0)
            )
        },
        inplace=True,
    ),
}


def _copysign_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    ratio = where.call(self == 0, 0, result / self)
    return grad * ratio  # type: ignore[no-any-return]


_copysign_run = elementwise(np.copysign, "copysign_cpu", "bif", to_float=True)
define(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="The size of self with the sign of other.",
    run=_copysign_run,
    node="CopysignBackward0",
    grads={"self": _copysign_grad, "other": lambda grad: grad.new_zeros(grad.shape)},
    samples=[((3, 4), (4,))],
    inplace=True,
)
define(
    "copysign.Scalar(Tensor self, Scalar other) -> Tensor",
    doc="The size of self with the sign of a number.",
    run=_copysign_run,
    node="CopysignBackward1",
    grads={"self": _copysign_grad},
    samples=[((3, 4), -1.0)],
    inplace=True,
)


def _nextafter(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.itemsize == 2 and np.asarray(a).dtype.kind != "f":
        import ml_dtypes  # bfloat16 has its own ufunc there

        return np.nextafter(a, np.asarray(b, ml_dtypes.bfloat16))
    return np.nextafter(a, b)


define(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    doc="The next representable number towards other.",
    run=elementwise(_nextafter, "nextafter_cpu", "f", through=False),
    grads={
        "self": lambda grad, self, other: where.call(self != other, grad, 0),
        "other": lambda grad: grad.new_zeros(grad.shape),
    },
    inplace=True,
)


def _check_heaviside(self: Tensor, values: Tensor) -> None:
    if self.dtype.is_complex or values.dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


_heaviside_kernel = pointwise(lambda a, b: np.where(np.equal(a, 0), b, np.greater(a, 0).astype(np.asarray(a).dtype)))

define(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    doc="0 below zero, 1 above, values at zero.",
    run=Guarded(_check_heaviside, _heaviside_kernel),
    out=LEAVES,
    node="NotImplemented",
    grads={"self,values": no_derivative("heaviside")},
    inplace=True,
)


def _by_exponent(self: Tensor, other: Tensor) -> bool:
    """Whether PyTorch adds whole exponents to those of floats, instead of multiplying by a power of 2."""
    if self.dtype.category != FLOAT or other.dtype.category >= FLOAT:
        return False
    if other.dtype.category == BOOL:
        broadcast_shapes(self._array.shape, other._array.shape)
        raise not_implemented("ldexp_cpu_exp", other.dtype)
    return True


def _ldexp_run(self: Tensor, other: Tensor) -> Tensor:
    if not _by_exponent(self, other):
        return _times(self, _power_of_two(self, other))
    shape = broadcast_shapes(self._array.shape, other._array.shape)
    if shape != self._array.shape and self._array.size:  # PyTorch begins with a result like self
        warn_of_growth(self._array.shape, shape)
    return _scaled(self, other)


def _like_self(shape: tuple[int, ...], sources: Sequence[Any]) -> tuple[int, ...]:
    return (like_strides if sources[0].shape == shape else output_strides)(shape, sources)


def _ldexp_into(self: Tensor, other: Tensor) -> Tensor:
    if self.dtype.category < FLOAT:
        raise RuntimeError(f"ldexp can't be cast to the desired output type {scalar_name(self.dtype)}")
    by_exponent = _by_exponent(self, other)
    written: Tensor = _scale(self, other) if by_exponent else _multiply(self, _power_of_two(self, other))
    return written


def _power_of_two(self: Tensor, exponent: Tensor) -> Tensor:
    if self.dtype.is_complex:
        two = fresh(np.asarray(2, self.dtype.np), self.dtype, self.device)
        return (_complex_powers if exponent.dtype.is_complex else _real_powers)(two, exponent)
    # Of these dtypes the 2 is a tensor in PyTorch, whose power keeps the exponent's strides.
    return (_powers if self.dtype in (float16, bfloat16, float64) else _plain_powers)(2.0, exponent)


def _exp2(a: Any, b: Any) -> Any:
    return np.exp2(b) if np.asarray(b).dtype.kind != "c" else np.power(a, b)


def _exp2_of_complex(two: Any, exponent: Any) -> Any:
    """2 as a complex number to a real power: not exact for whole ones either, as in PyTorch, and NaN at infinity."""
    return np.where(np.isposinf(exponent.real), complex_pow(two, exponent), np.exp2(exponent))


def _shifted(a: Any, exponent: Any) -> Any:
    return np.ldexp(a, np.clip(exponent, -5000, 5000).astype(np.int32))  # farther ones end at 0 and infinity too


_scaled = elementwise(_shifted, "ldexp", "f", to_float=True, strides=_like_self)
_times = elementwise(np.multiply, "mul_cpu", to_float=True, precise=1)
_powers = pointwise(_exp2, to_float=True, through=True)
_plain_powers = pointwise(_exp2, to_float=True, through=True, strides=row_major)
_complex_powers = pointwise(complex_pow)
_real_powers = pointwise(_exp2_of_complex)
_scale, _multiply = into(_scaled), into(_times)

_LDEXP_GRADS: dict[str, Callable[..., Any]] = {
    "self": lambda grad, other: grad * conj(_two_to(other)),
    "other": lambda grad, result: grad * conj(result) * LN2,
}
define(
    "ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="self times 2 to the power of other.",
    run=_ldexp_run,
    out=Out(memory_first=True),
    node="LdexpBackward0",
    grads=_LDEXP_GRADS,
    samples=[((3, 4), (4,))],
)
define(
    "ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    doc="self times 2 to the power of other. Written in place.",
    run=_ldexp_into,
    node="LdexpBackward0",
    grads=_LDEXP_GRADS,
    samples=[((3, 4), (4,))],
)


def _two_to(exponent: Tensor) -> Tensor:
    return pow_base.call(2, exponent)  # type: ignore[no-any-return]
