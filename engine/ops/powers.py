"""Powers: pow in all its forms, and float_power."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.promote import result_type
from stridescope.engine.dispatch.result_strides import row_major, tensor_strides
from stridescope.engine.dispatch.run import Guarded, laid_out, resolved, with_number
from stridescope.engine.dtype import INTEGER, bool_, complex128, float64
from stridescope.engine.layout import dense_strides_like
from stridescope.engine.ops.arithmetic import conj, real_if
from stridescope.engine.ops.lookup import where
from stridescope.engine.tensor import Tensor, fresh


def _pow(a: Any, b: Any) -> Any:
    letter = np.asarray(a).dtype.kind
    if letter in "iu":
        return _int_pow(a, b)
    return complex_pow(a, b) if letter == "c" else _real_pow(a, b)


def _real_pow(a: Any, b: Any) -> Any:
    """``pow`` of C: for exponents that are all 0.5 NumPy takes the root, which differs for -0 and minus infinity."""
    power, halves = np.power(a, b), np.equal(b, 0.5)
    if not np.any(halves):
        return power
    power = np.where(halves & np.equal(a, 0), power.dtype.type(0), power)
    return np.where(halves & np.equal(a, -np.inf), power.dtype.type(np.inf), power)


def complex_pow(a: Any, b: Any) -> Any:
    """``exp(b * log(a))`` as C's ``cpow`` has it: NumPy's own multiplies for whole exponents.

    Infinities need C's product, which does not lose them to NaN.
    """
    log = np.asarray(np.log(a))
    exponent = np.asarray(b)
    power = np.empty(np.broadcast_shapes(log.shape, exponent.shape), log.dtype)
    power.real = exponent.real * log.real - exponent.imag * log.imag
    power.imag = exponent.real * log.imag + exponent.imag * log.real
    lost = np.isnan(power.real) & np.isnan(power.imag) & ~(np.isfinite(a) & np.isfinite(exponent))
    return np.exp(np.where(lost, _infinite_product(log, exponent), power) if lost.any() else power)


def _infinite_product(a: Any, b: Any) -> Any:
    """C's product of complex numbers where the plain one is NaN: an infinity is a direction (C99, annex G.5.1)."""
    pairs = [list(np.broadcast_arrays(z.real, z.imag)) for z in (a, np.asarray(b, a.dtype))]
    endless = [np.isinf(real) | np.isinf(imag) for real, imag in pairs]
    for own, other in ((0, 1), (1, 0)):
        pairs[own] = [np.where(endless[own], np.copysign(np.isinf(x), x), x) for x in pairs[own]]
        pairs[other] = [np.where(endless[own] & np.isnan(x), np.copysign(0, x), x) for x in pairs[other]]
    (ar, ai), (br, bi) = pairs
    product = np.empty(np.broadcast_shapes(ar.shape, br.shape), a.dtype)
    scale = np.where(endless[0] | endless[1], np.inf, np.nan)
    product.real, product.imag = scale * (ar * br - ai * bi), scale * (ar * bi + ai * br)
    return product


# Exponents for which PyTorch's kernel has a shorter way than ``cpow``.
_SHORT: dict[complex, Callable[[Any], Any]] = {
    0.5: np.sqrt,
    -0.5: lambda a: np.divide(a.dtype.type(1), np.sqrt(a)),
    -1: lambda a: np.divide(a.dtype.type(1), a),
    -2: lambda a: np.divide(a.dtype.type(1), a * a),
    0: np.ones_like,
    1: np.copy,
    2: lambda a: a * a,
    3: lambda a: a * a * a,
}


def _pow_by_number(a: Any, b: Any) -> Any:
    letter = np.asarray(a).dtype.kind
    if (letter == "c" and complex(b) in _SHORT) or (letter == "f" and b in (0.5, -0.5)):
        return _SHORT[complex(b)](a)
    return _pow(a, b)


def _pow_of_number(a: Any, b: Any) -> Any:
    return np.ones_like(b) if a == 1 else _pow(a, b)


def _int_pow(a: Any, b: Any) -> Any:
    """Integer powers wrap around; a negative exponent gives 0, except for 1 and -1."""
    if not np.any(np.less(b, 0)):
        return np.power(a, b)
    power = np.power(a, np.where(np.less(b, 0), np.asarray(b).dtype.type(0), b))
    kind = np.asarray(a).dtype.type
    sign = np.where(np.mod(b, 2) == 0, kind(1), a)
    small = np.where(np.equal(a, 1), kind(1), np.where(np.equal(a, -1), sign, kind(0)))
    return np.where(np.less(b, 0), small, power)


_run = elementwise(_pow, "pow", "ifc")
_by_number = elementwise(_pow_by_number, "pow", "ifc", strides=tensor_strides)
_of_number = elementwise(_pow_of_number, "pow", "ifc", strides=row_major)


def _check_exponent(self: Tensor, exponent: Any) -> None:
    if exponent.__class__ is int and exponent < 0 and self.dtype.category <= INTEGER:
        raise RuntimeError("Integers to negative integer powers are not allowed.")


def _scalar_run(self: Tensor, exponent: Any) -> Tensor:
    if self.dtype is bool_ and (exponent == 0 or exponent == 1):
        kind = result_type(self, exponent)
        array = (resolved(self) if exponent == 1 else np.ones(self.shape)).astype(kind.np)
        base = self._array if kind is bool_ else laid_out(array, dense_strides_like(self.shape, self.strides))
        return fresh(laid_out(array, tensor_strides(self.shape, [base])), kind, self.device)
    usual = None if exponent in (0.5, -0.5) else with_number(np.power, self, exponent)
    return _by_number(self, exponent) if usual is None else usual


def _scalar_grad(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    if exponent == 0:
        return self.new_zeros(self.shape)  # type: ignore[no-any-return]
    return real_if(self.dtype, grad * conj(self.pow(exponent - 1) * exponent))


def _settles(exponent: Tensor) -> Tensor:
    """Where a power of 0 does not change with its exponent: where that is a real number, and not negative."""
    if exponent.dtype.is_complex:
        return (exponent.imag == 0).logical_and(exponent.real >= 0)  # type: ignore[no-any-return]
    return exponent >= 0  # type: ignore[no-any-return]


def _exponent_grad(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    log = self.to(result_type(self, exponent)).log()
    settled = (self == 0).logical_and(_settles(exponent))
    return real_if(exponent.dtype, grad * where(settled, grad.new_zeros(()), conj(result * log)))


def _exponent_grad_of_number(grad: Tensor, self: Any, exponent: Tensor, result: Tensor) -> Tensor:
    base = np.complex128(self) if exponent.dtype.is_complex or isinstance(self, complex) else np.float64(self)
    slope = conj(result * np.log(base).item())
    if self == 0:
        slope = where(_settles(exponent), grad.new_zeros(()), slope)
    return real_if(exponent.dtype, grad * slope)


pow_tensor = define(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    doc="Raises each element to the power that stands in exponent.",
    run=_run,
    node="PowBackward1",
    grads={
        "self": lambda grad, self, exponent: real_if(
            self.dtype, where(exponent == 0, grad.new_zeros(()), grad * conj(exponent * self.pow(exponent - 1)))
        ),
        "exponent": lambda grad, self, exponent, result: _exponent_grad(grad, self, exponent, result),
    },
    samples=[((3, 4), (4,))],
    inplace=True,
)

pow_base = define(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    doc="Raises a number to the power of each element.",
    run=_of_number,
    node="PowBackward2",
    grads={"exponent": lambda grad, self, exponent, result: _exponent_grad_of_number(grad, self, exponent, result)},
    method=False,
)


pow_scalar = define(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    doc="Raises each element to a power.",
    run=Guarded(_check_exponent, _scalar_run),
    node="PowBackward0",
    grads={"self": lambda grad, self, exponent: _scalar_grad(grad, self, exponent)},
    samples=[((3, 4), 2), ((3,), 3.0)],
    inplace=True,
)


def _wide(*operands: Any) -> Any:
    kind = complex128 if result_type(*operands).is_complex else float64
    return [o.to(kind) if isinstance(o, Tensor) else complex(o) if kind is complex128 else float(o) for o in operands]


for _overload, _arguments in (
    ("Tensor_Tensor", "Tensor self, Tensor exponent"),
    ("Scalar", "Scalar self, Tensor exponent"),
    ("Tensor_Scalar", "Tensor self, Scalar exponent"),
):
    define(
        f"float_power.{_overload}({_arguments}) -> Tensor",
        doc="A power, computed in double precision.",
        composite=lambda self, exponent: (
            lambda base, power: base.pow(power) if isinstance(base, Tensor) else pow_base.call(base, power)
        )(*_wide(self, exponent)),
        samples=[],
        method=_overload != "Scalar",
    )


def _float_power_inplace(self: Tensor, exponent: Any) -> Tensor:
    wanted = complex128 if result_type(self, exponent).is_complex else float64
    if self.dtype is not wanted:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {_name(self.dtype)} but the operation's result requires dtype "
            f"{_name(wanted)}"
        )
    return self.pow_(exponent.to(wanted) if isinstance(exponent, Tensor) else exponent)  # type: ignore[no-any-return]


def _name(kind: Any) -> str:
    from stridescope.engine.dtype import scalar_name

    return scalar_name(kind)


for _overload, _kind in (("Scalar", "Scalar"), ("Tensor", "Tensor")):
    define(
        f"float_power_.{_overload}(Tensor(a!) self, {_kind} exponent) -> Tensor(a!)",
        doc="A power, computed in double precision and written in place.",
        composite=_float_power_inplace,
        function=False,
    )
