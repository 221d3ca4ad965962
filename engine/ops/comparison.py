"""Comparisons and logic: results are bool and carry no gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import FREE
from stridescope.engine.dispatch.run import into, pointwise, resolved
from stridescope.engine.dtype import FLOAT, bool_, scalar_name
from stridescope.engine.ops.arithmetic import real_if
from stridescope.engine.ops.valueless import need_values
from stridescope.engine.tensor import Tensor, bump_version

_NO_SLOPE: dict[str, Any] = {
    "self": lambda grad: grad.new_zeros(grad.shape),
    "other": lambda grad, other_scalar_type: real_if(other_scalar_type, grad.new_zeros(grad.shape)),
}


def _compare(name: str, function: Callable[..., Any], words: str, takes: str) -> None:
    run = elementwise(function, f"{name}_cpu", takes, gives=bool_, through=False)
    for kind, number in (("Tensor", 1), ("Scalar", 0)):
        define(
            f"{name}.{kind}(Tensor self, {kind} other) -> Tensor",
            doc=f"Whether each element is {words} other's.",
            run=run,
            out=FREE,
            samples=[((3, 4), (4,))] if kind == "Tensor" else [((3, 4), 0.5)],
        )
        define(
            f"{name}_.{kind}(Tensor(a!) self, {kind} other) -> Tensor(a!)",
            doc=f"Whether each element is {words} other's, written in place as ones and zeros; no gradient passes.",
            run=into(run),
            node=f"{name.capitalize()}Backward{number}",
            grads=_NO_SLOPE if kind == "Tensor" else {"self": _NO_SLOPE["self"]},
            samples=[((3, 4), (4,))] if kind == "Tensor" else [((3, 4), 0.5)],
            function=False,
        )


for _name, _function, _words, _takes in (
    ("eq", np.equal, "equal to", "bifc"),
    ("ne", np.not_equal, "not equal to", "bifc"),
    ("lt", np.less, "less than", "bif"),
    ("le", np.less_equal, "at most", "bif"),
    ("gt", np.greater, "greater than", "bif"),
    ("ge", np.greater_equal, "at least", "bif"),
):
    _compare(_name, _function, _words, _takes)

for _name, _logic, _words in (
    ("logical_and", np.logical_and, "and"),
    ("logical_or", np.logical_or, "or"),
    ("logical_xor", np.logical_xor, "exclusive or"),
):
    define(
        f"{_name}(Tensor self, Tensor other) -> Tensor",
        doc=f"Logical {_words}; every value but zero is true.",
        run=pointwise(_logic, gives=bool_),
        out=FREE,
        samples=[((3, 4), (4,))],
        inplace=True,
    )

logical_not = define(
    "logical_not(Tensor self) -> Tensor",
    doc="Whether each element is zero.",
    run=pointwise(np.logical_not, gives=bool_),
    out=FREE,
    samples=[((3, 4),)],
    inplace=True,
)


def _isclose(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    if self.dtype is not other.dtype:
        raise RuntimeError(f"{scalar_name(self.dtype)} did not match {scalar_name(other.dtype)}")
    if rtol < 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol}")
    if atol < 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol}")
    close = _close_run(self, other, rtol, atol, equal_nan)
    # PyTorch writes into its result: for NaNs, and for what is close without being equal
    for _ in range((equal_nan and self.dtype.category >= FLOAT) + (rtol != 0 or atol != 0)):
        bump_version(close)
    return close


def _close(a: Any, b: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    close = np.equal(a, b)
    if equal_nan and a.dtype.kind in "fcV":
        close = close | (np.isnan(a) & np.isnan(b))
    if rtol == 0 and atol == 0:
        return close
    if a.dtype.kind in "iub":
        a, b = a.astype(np.float64), b.astype(np.float64)
    distance = np.abs(a - b)
    allowed = atol + np.abs(rtol * b)
    return close | (np.isfinite(distance) & (distance <= allowed))


_close_run = pointwise(_close, gives=bool_, through=True, count=2)

isclose = define(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    doc="Whether each pair differs by at most atol plus rtol times the size of other's element.",
    run=_isclose,
    samples=[((3, 4), (4,))],
)


def _allclose(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> bool:
    return bool(isclose.call(self, other, rtol, atol, equal_nan).all().item())


define(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
    doc="Whether isclose holds for all elements.",
    composite=_allclose,
)


def _equal(self: Tensor, other: Tensor) -> bool:
    need_values("equal", self, other)
    if self._array.shape != other._array.shape:
        return False
    return bool(np.all(resolved(self) == resolved(other)))


define(
    "equal(Tensor self, Tensor other) -> bool",
    doc="Whether two tensors have the same shape and the same elements.",
    composite=_equal,
)
