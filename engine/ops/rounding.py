"""Rounding, signs and the repair of NaN and infinity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.blank import zeros, zeros_like
from stridescope.engine.dispatch.elementwise import Refusal, elementwise
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import FREE, Out
from stridescope.engine.dispatch.overlap import refuse_internal_overlap
from stridescope.engine.dispatch.result_strides import blank, like_strides, output_strides
from stridescope.engine.dispatch.run import Strides, cast, into, laid_out, store
from stridescope.engine.dtype import FLOAT, bool_
from stridescope.engine.tensor import Tensor, bump_version, fresh


def _zeros(grad: Tensor) -> Tensor:
    return zeros_like(grad)


def _unless_whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Integers are already rounded."""
    return lambda a: np.positive(a) if a.dtype.kind in "iu" else function(a)


def _step(name: str, function: Callable[..., Any], doc: str, refuse: dict[str, Refusal] | None = None) -> None:
    define(
        f"{name}(Tensor self) -> Tensor",
        doc=doc,
        run=elementwise(_unless_whole(function), f"{name}_vml_cpu", "if", refuse),
        grads={"self": _zeros},
        samples=[((3, 4),)],
        inplace=True,
    )


for _name, _function, _doc in (
    ("floor", np.floor, "The largest whole number that is not greater."),
    ("ceil", np.ceil, "The smallest whole number that is not smaller."),
    ("trunc", np.trunc, "The whole part: rounds towards zero."),
):
    _step(_name, _function, _doc, {"c": (NotImplementedError, f"{_name} is not supported for complex inputs")})
_step("round", np.rint, "The nearest whole number; halves go to the even one.")


def _round_decimals(a: Any, decimals: int) -> Any:
    if decimals == 0:
        return np.rint(a)
    factor = a.dtype.type(10.0 ** abs(decimals))
    return np.rint(a * factor) / factor if decimals > 0 else np.rint(a / factor) * factor


_round_run = elementwise(_round_decimals, "round_cpu", "f", count=1)
_round_whole = elementwise(_round_decimals, "round_vml_cpu", "f", count=1)

define(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    doc="Rounds to a number of decimals.",
    run=lambda self, decimals: (_round_run if decimals else _round_whole)(self, decimals),
    out=Out(memory_first=True),
    node="RoundBackward1",
    grads={"self": _zeros},
    inplace=True,
)

define(
    "frac(Tensor self) -> Tensor",
    doc="What trunc cuts off.",
    run=elementwise(lambda a: a - np.trunc(a), "frac_cpu", "f"),
    grads={"self": lambda grad: grad},
    samples=[((3, 4),)],
    inplace=True,
)


def _sign(a: Any) -> Any:
    if a.dtype.kind == "b":
        return np.positive(a.view(np.uint8)).view(np.bool_) if a.flags.c_contiguous else a.copy()
    if a.dtype.kind in "iu":
        return np.sign(a)
    return (a > 0).astype(a.dtype) - (a < 0).astype(a.dtype)  # NaN has sign 0 here


define(
    "sign(Tensor self) -> Tensor",
    doc="-1, 0 or 1.",
    run=elementwise(
        _sign, "sign_cpu", refuse={"c": (NotImplementedError, "Unlike NumPy, torch.sign is not intended to support "
                                         "complex numbers. Please use torch.sgn instead.")},
    ),
    grads={"self": _zeros},
    samples=[((3, 4),)],
    inplace=True,
)  # fmt: skip


def _sgn(a: Any) -> Any:
    if a.dtype.kind != "c":
        return _sign(a)
    size = np.abs(a)
    return np.where(size == 0, a.dtype.type(0), a / np.where(size == 0, size.dtype.type(1), size))


def _sgn_grad(self: Tensor, grad: Tensor, result: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return zeros(grad.shape, grad)
    size = self.abs()
    turned = grad / size - (grad / self).real * result
    return turned.masked_fill_(size == 0, 0)  # type: ignore[no-any-return]


define(
    "sgn(Tensor self) -> Tensor",
    doc="The sign; for complex numbers the direction, a number of size 1.",
    run=elementwise(_sgn, "sgn_cpu"),
    grads={"self": lambda grad, self, result: _sgn_grad(self, grad, result)},
    samples=[((3, 4),)],
    inplace=True,
)


def _absolute(a: Any) -> Any:
    return np.abs(a)


def _abs_run(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return _abs_kernel(self)
    result, kind = _complex_abs_kernel(self), self.dtype.to_real()
    return fresh(laid_out(cast(result._array, kind), result.strides), kind, self.device)


_abs_kernel = elementwise(_absolute, "abs_cpu", "ifc", through=False)
_complex_abs_kernel = elementwise(_absolute, "abs_cpu", "c", through=False, strides=like_strides)

absolute = define(
    "abs(Tensor self) -> Tensor",
    doc="The size of each element, without its sign.",
    run=_abs_run,
    out=Out(memory_first=True, casts=lambda self: self.dtype.is_complex),
    grads={"self": lambda grad, self: grad * self.sgn()},
    samples=[((3, 4),)],
)


def _abs_inplace(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    refuse_internal_overlap(self)
    store(self, _abs_kernel(self))
    return self


define(
    "abs_(Tensor(a!) self) -> Tensor(a!)",
    doc="The size of each element, written in place.",
    run=_abs_inplace,
    node="AbsBackward0",
    grads={"self": lambda grad, self: grad * self.sgn()},
)


def _nan_to_num(a: Any, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
    if a.dtype.kind in "iub":
        return np.positive(a) if a.dtype.kind != "b" else a.copy()
    if a.dtype.kind == "c":
        cleaned = np.empty_like(a)
        cleaned.real, cleaned.imag = (_nan_to_num(part, nan, posinf, neginf) for part in (a.real, a.imag))
        return cleaned
    limits = _limits(a.dtype)
    low = limits[0] if neginf is None else neginf
    high = limits[1] if posinf is None else posinf
    kind = a.dtype.type
    cleaned = np.where(np.isnan(a), kind(nan or 0.0), a)
    return np.where(cleaned == np.inf, kind(high), np.where(cleaned == -np.inf, kind(low), cleaned))


def _limits(kind: Any) -> tuple[Any, Any]:
    import ml_dtypes

    info = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
    return info.min, info.max


_replacing = elementwise(_nan_to_num, "nan_to_num", through=False, count=1, strides=like_strides)
_replace = into(_replacing)

define(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    doc="Replaces NaN by 0 and infinities by the largest finite numbers, or by numbers of your own.",
    run=_replacing,
    grads={"self": lambda grad, self: grad * self.isfinite()},
    samples=[((3, 4),)],
)
define(
    "nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor(a!)",
    doc="Replaces NaN and infinities in place.",
    run=lambda self, nan, posinf, neginf: self if self.dtype.category < FLOAT else _replace(self, nan, posinf, neginf),
    grads={"self": lambda grad, self: grad * self.isfinite()},
    node="NanToNumBackward0",
)

define(
    "signbit(Tensor self) -> Tensor",
    doc="Whether the sign bit is set; -0.0 has it.",
    run=elementwise(
        lambda a: np.zeros(a.shape, bool) if a.dtype.kind in "ub" else a < 0 if a.dtype.kind == "i" else np.signbit(a),
        "signbit_cpu",
        refuse={"c": (NotImplementedError, "signbit is not implemented for complex tensors.")},
        gives=bool_,
        through=False,
    ),
    out=FREE,
    samples=[((3, 4),)],
)


def _check(
    name: str,
    function: Callable[..., Any],
    doc: str,
    refuse: dict[str, Refusal] | None = None,
    strides: Strides | None = None,
) -> None:
    define(
        f"{name}(Tensor self) -> Tensor",
        doc=doc,
        run=elementwise(function, name, refuse=refuse, gives=bool_, through=False, strides=strides),
        out=FREE,
        samples=[((3, 4),)],
    )


def _only_float(test: Callable[..., Any], otherwise: bool = False) -> Callable[..., Any]:
    """A test that needs floating point; whole numbers have one answer."""
    return lambda a: np.full(a.shape, otherwise) if a.dtype.kind in "iub" else test(a)


def _of_size(shape: tuple[int, ...], source: Any) -> tuple[int, ...]:
    """The strides of ``source.abs() == number``."""
    return output_strides(shape, (blank(shape, output_strides(shape, (source,))), 0))


def _of_infinite(shape: tuple[int, ...], sources: Sequence[Any]) -> tuple[int, ...]:
    """The strides of ``isinf``: complex numbers are infinite when a part is."""
    source = sources[0]
    if source.dtype.kind in "iub":
        return like_strides(shape, sources)
    return _of_size(shape, source.real)


def _of_finite(shape: tuple[int, ...], sources: Sequence[Any]) -> tuple[int, ...]:
    """The strides of ``isfinite``, which is ``(a == a) * (a.abs() != inf)``."""
    source = sources[0]
    if source.dtype.kind in "iub":
        return like_strides(shape, sources)
    same = blank(shape, output_strides(shape, (source.real, source.real)))
    return output_strides(shape, (same, blank(shape, _of_size(shape, source.real))))


def _like_real(shape: tuple[int, ...], sources: Sequence[Any]) -> tuple[int, ...]:
    """Real numbers have one answer, too."""
    if sources[0].dtype.kind == "c":
        return output_strides(shape, (sources[0].imag, 0))
    return like_strides(shape, sources)


_check("isnan", _only_float(np.isnan), "Whether the element is not a number.")
_check("isinf", _only_float(np.isinf), "Whether the element is infinite.", strides=_of_infinite)
_finite = elementwise(_only_float(np.isfinite, True), "isfinite", gives=bool_, through=False, strides=_of_finite)


def _isfinite(self: Tensor) -> Tensor:
    finite = _finite(self)
    if self.dtype.is_complex:  # PyTorch tests the parts, one into the other's result
        bump_version(finite)
    return finite


define(
    "isfinite(Tensor self) -> Tensor",
    doc="Whether the element is neither NaN nor infinite.",
    run=_isfinite,
    samples=[((3, 4),)],
)
_check("isreal", lambda a: a.imag == 0 if a.dtype.kind == "c" else np.ones(a.shape, bool), "Whether the imaginary "
       "part is zero.", strides=_like_real)  # fmt: skip
_check("isposinf", _only_float(lambda a: a == np.inf), "Whether the element is plus infinity.",
       {"c": (RuntimeError, "isposinf does not support complex inputs.")})  # fmt: skip
_check("isneginf", _only_float(lambda a: a == -np.inf), "Whether the element is minus infinity.",
       {"c": (RuntimeError, "isneginf does not support complex inputs.")})  # fmt: skip
