"""Division with its rounding modes, remainders, and the greatest common divisor."""

from __future__ import annotations

from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.dispatch.elementwise import elementwise
from stridescope.engine.dispatch.op import define, no_derivative
from stridescope.engine.dispatch.out_rule import LEAVES
from stridescope.engine.dispatch.promote import common
from stridescope.engine.dispatch.run import Guarded, pointwise
from stridescope.engine.dtype import bfloat16
from stridescope.engine.layout import broadcast_shapes
from stridescope.engine.ops.arithmetic import conj, real_if
from stridescope.engine.tensor import Tensor


def _no_zero(a: Any, b: Any) -> None:
    broadcast_shapes(np.shape(a), np.shape(b))
    if np.size(a) and np.any(np.equal(b, 0)):
        raise RuntimeError("ZeroDivisionError")


def _whole(a: Any) -> bool:
    return np.asarray(a).dtype.kind in "iub"


def _floor(a: Any, b: Any) -> Any:
    if _whole(a):
        _no_zero(a, b)
    return np.floor_divide(a, b)


def _trunc(a: Any, b: Any) -> Any:
    if not _whole(a):
        return np.trunc(np.true_divide(a, b))
    _no_zero(a, b)
    quotient = np.floor_divide(a, b)
    inexact = np.multiply(quotient, b) != a
    return quotient + (inexact & (np.less(a, 0) != np.less(b, 0)))


def _remainder(a: Any, b: Any) -> Any:
    if _whole(a):
        _no_zero(a, b)
    return np.remainder(a, b) if _whole(a) else _float_remainder(a, b)


def _float_remainder(a: Any, b: Any) -> Any:
    left = np.fmod(a, b)
    return np.where((left != 0) & (np.less(b, 0) != np.less(left, 0)), left + b, left)


def _fmod(a: Any, b: Any) -> Any:
    if _whole(a):
        _no_zero(a, b)
    return np.fmod(a, b)


_true_run = pointwise(np.true_divide, to_float=True, through=True, precise=1)
_MODES = {
    "floor": elementwise(_floor, "div_floor_cpu", "if", precise=1),
    "trunc": elementwise(_trunc, "div_trunc_cpu", "if", precise=1),
    None: _true_run,
}


def _check_mode(self: Tensor, other: Any, rounding_mode: str | None) -> None:
    if rounding_mode not in _MODES:
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '" + str(rounding_mode) + "'"
        )


def _with_mode(self: Tensor, other: Any, rounding_mode: str | None) -> Tensor:
    if rounding_mode == "trunc" and common((self, other)) is bfloat16:
        return _cut_off(self, other)
    return _MODES[rounding_mode](self, other)


def _cut_off_rounded(a: Any, b: Any) -> Any:
    """The quotient without its fraction, rounded to bfloat16 before as PyTorch's kernel does."""
    return np.trunc(np.asarray(np.true_divide(a, b)).astype(bfloat16.np).astype(np.float32))


_cut_off = elementwise(_cut_off_rounded, "div_trunc_cpu", "f", precise=1)


def _self_grad(grad: Tensor, other: Any, kind: Any) -> Tensor:
    return real_if(kind, grad / conj(other))


def _other_grad(grad: Tensor, self: Tensor, other: Any, kind: Any) -> Tensor:
    return real_if(kind, -grad * conj((self / other) / other))


div = define(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    doc="Divides element by element; integers give floats.",
    run=_true_run,
    grads={
        "self": lambda grad, other, self_scalar_type: _self_grad(grad, other, self_scalar_type),
        "other": lambda grad, self, other, other_scalar_type: _other_grad(grad, self, other, other_scalar_type),
    },
    samples=[((3, 4), (4,))],
    inplace=True,
)

div_mode = define(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    doc="Divides, then rounds towards zero (trunc) or down (floor).",
    run=Guarded(_check_mode, _with_mode),
    node="DivBackward2",
    grads={
        "self": lambda grad, other, self_scalar_type, rounding_mode: (
            _self_grad(grad, other, self_scalar_type) if rounding_mode is None else zeros_like(grad)
        ),
        "other": lambda grad, self, other, other_scalar_type, rounding_mode: (
            _other_grad(grad, self, other, other_scalar_type) if rounding_mode is None else zeros_like(grad)
        ),
    },
    samples=[],
    inplace=True,
)

div_scalar = define(
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    doc="Divides by a number.",
    run=_true_run,
    node="DivBackward1",
    grads={"self": lambda grad, other, self_scalar_type: _self_grad(grad, other, self_scalar_type)},
    samples=[((3, 4), 2.0)],
    method=False,
    function=False,
)

assert div.derivative is not None and div_scalar.derivative is not None
div.derivative.in_formulas(div_scalar.derivative)

floor_divide = define(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    doc="Divides and rounds down.",
    run=_MODES["floor"],
    out=LEAVES,
    node="NotImplemented",
    grads={"self,other": no_derivative("floor_divide")},
    inplace=True,
)

_remainder_run = elementwise(_remainder, "remainder_cpu", "if")
_fmod_run = elementwise(_fmod, "fmod_cpu", "if")


def _rest(name: str, run: Any, mode: str, words: str) -> None:
    """``name`` of two tensors; ``mode`` is how the quotient is rounded, ``words`` whose sign the rest has."""
    define(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        doc=f"What division leaves, with the sign of {words}.",
        run=run,
        node=f"{name.capitalize()}Backward1",
        grads={
            "self": lambda grad: grad,
            "other": lambda grad, self, other: -grad * self.div(other, rounding_mode=mode),
        },
        samples=[((3, 4), (4,))],
        inplace=True,
    )


def _rest_of_number(name: str, run: Any, words: str) -> None:
    define(
        f"{name}.Scalar(Tensor self, Scalar other) -> Tensor",
        doc=f"What division by a number leaves, with the sign of {words}.",
        run=run,
        node=f"{name.capitalize()}Backward0",
        grads={"self": lambda grad: grad},
        samples=[((3, 4), 0.7)],
        inplace=True,
    )


_rest("remainder", _remainder_run, "floor", "other")
remainder_left = define(
    "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    doc="What dividing a number by each element leaves.",
    run=_remainder_run,
    node="NotImplemented",
    grads={"other": no_derivative("remainder")},
    method=False,
)
_rest_of_number("remainder", _remainder_run, "other")
_rest("fmod", _fmod_run, "trunc", "self")
_rest_of_number("fmod", _fmod_run, "self")

for _name, _function, _words in (
    ("gcd", np.gcd, "greatest common divisor"),
    ("lcm", np.lcm, "least common multiple"),
):
    define(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        doc=f"The {_words} of each pair.",
        run=elementwise(_function, f"{_name}_cpu", "i"),
        out=LEAVES,
        inplace=True,
    )
