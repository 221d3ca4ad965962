"""Tensors of regular numbers: arange, linspace, logspace, eye, the indices of triangles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stridescope.engine.device import CPU, device
from stridescope.engine.dispatch.converters import plain_number
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.out_rule import RANGE, Out
from stridescope.engine.dtype import (
    BOOL,
    INTEGER,
    cpp_name,
    default_complex,
    default_float,
    dtype,
    int32,
    int64,
    of_number,
    scalar_name,
)
from stridescope.engine.kernels.fused import fused
from stridescope.engine.ops.creation import OPTIONS, made
from stridescope.engine.ops.number_range import number_of
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import warn


def _real(value: Any) -> Any:
    if isinstance(value, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    return value


def _check_range(start: Any, end: Any, step: Any) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {_shown(start)} -> {_shown(end)}")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _shown(value: Any) -> str:
    return f"{value:g}"


def _arange(start: Any, end: Any, step: Any, kind: dtype | None, on: device | None, grad: bool | None) -> Tensor:
    start, end, step = _real(start), _real(end), _real(step)
    if kind is None:
        whole = all(of_number(v).category in (BOOL, INTEGER) for v in (start, end, step))
        kind = int64 if whole else default_float()
    if kind.category == BOOL or kind.is_complex:
        raise not_implemented("arange_cpu", kind)
    if kind is int64 and step and not int(step):
        raise ValueError("step must be nonzero")
    _check_range(start, end, step)
    count = -((int(start) - int(end)) // int(step)) if kind is int64 else math.ceil((end - start) / step)
    return made(_steps(start, step, count, kind), kind, on, grad)


def _steps(start: Any, step: Any, count: int, kind: dtype) -> Array:
    """``start + i * step``, computed as PyTorch's kernel does: in int64, or in double and rounded once."""
    places = np.arange(count)
    if kind.category == INTEGER:
        return (int(start) + places * int(step)).astype(kind.np)
    return (float(start) + places.astype(np.float64) * float(step)).astype(kind.np)


define(
    f"arange(Scalar end, {OPTIONS}) -> Tensor",
    doc="0, 1, … up to end.",
    run=lambda end, dtype, layout, device, pin, grad: _arange(0, end, 1, dtype, device, grad),
    out=RANGE,
)
define(
    f"arange.start(Scalar start, Scalar end, {OPTIONS}) -> Tensor",
    doc="start, start + 1, … up to end.",
    run=lambda start, end, dtype, layout, device, pin, grad: _arange(start, end, 1, dtype, device, grad),
    out=RANGE,
)
define(
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor",
    doc="start, start + step, … up to end.",
    run=lambda start, end, step, dtype, layout, device, pin, grad: _arange(start, end, step, dtype, device, grad),
    out=RANGE,
)


def _closed_range(start: Any, end: Any, step: Any, kind: dtype | None, on: Any, grad: bool | None) -> Tensor:
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    _check_range(start, end, step)
    chosen = kind or default_float()
    values = _steps(start, step, math.floor((end - start) / step) + 1, chosen)
    return made(values, chosen, on or CPU, grad)  # no default device, as in PyTorch


define(
    f"range(Scalar start, Scalar end, Scalar step=1, {OPTIONS}) -> Tensor",
    doc="start, start + step, … up to end, end included; deprecated.",
    run=lambda start, end, step, dtype, layout, device, pin, grad: _closed_range(start, end, step, dtype, device, grad),
    out=Out(own_dtype=True),
)


# ---- linspace, logspace ----------------------------------------------------------------------------------------------


def _spaced_dtype(name: str, start: Any, end: Any, kind: dtype | None) -> dtype:
    if isinstance(start, complex) or isinstance(end, complex):
        if kind is not None and not kind.is_complex:
            raise RuntimeError(
                f"{name}(): inferred dtype {cpp_name(default_complex())} can't be safely cast to passed dtype "
                f"{scalar_name(kind)}"
            )
        return kind or default_complex()
    return kind or default_float()


def _numbers(name: str, start: Any, end: Any) -> list[Any]:
    given = [("start", start), ("end", end)]
    tensors = [(which, value._array.ndim) for which, value in given if isinstance(value, Tensor)]
    if any(ndim for _, ndim in tensors):
        listed = " and ".join(f"{which} with {ndim} dimension(s)" for which, ndim in tensors)
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {listed}.")
    return [plain_number(value) for _, value in given]


def _spaced(name: str, start: Any, end: Any, steps: int, kind: dtype) -> Array:
    """Evenly spaced numbers: the first half counted from the start, the second from the end."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if steps == 0:
        return np.empty(0, kind.np)
    if steps == 1:
        return np.full(1, number_of(start, kind) if name == "linspace" else start)
    if kind.category == BOOL:
        raise not_implemented(f"{name}_cpu", kind)
    if kind.category == INTEGER:
        wide: Any = np.float64
        first, last = int(number_of(start, kind)), int(number_of(end, kind))
    else:
        wide = np.float32 if kind.itemsize == 2 else kind.np.type
        first, last = wide(start), wide(end)
    step = wide(wide(last - first) / wide(steps - 1))
    places = np.arange(steps)
    counted = np.where(places < steps // 2, places, places - (steps - 1)).astype(wide)
    ends = np.where(places < steps // 2, wide(first), wide(last))
    if wide in (np.float32, np.float64):  # PyTorch's compiler makes one fused step of it
        return fused(counted, step, ends, wide)
    return np.asarray(ends + step * counted)


def _linspace(start: Any, end: Any, steps: int, kind: dtype | None, on: Any, grad: bool | None) -> Tensor:
    start, end = _numbers("linspace", start, end)
    chosen = _spaced_dtype("torch.linspace", start, end, kind)
    return made(_spaced("linspace", start, end, steps, chosen).astype(chosen.np), chosen, on, grad)


def _logspace(start: Any, end: Any, steps: int, base: float, kind: dtype | None, on: Any, grad: bool | None) -> Tensor:
    start, end = _numbers("logspace", start, end)
    chosen = _spaced_dtype("torch.logspace", start, end, kind)
    exponents = _spaced("logspace", start, end, steps, chosen)
    with np.errstate(all="ignore"):
        if chosen.category == INTEGER or chosen.itemsize == 2:
            values = np.power(float(base), exponents.astype(np.float64))
        else:
            values = np.power(chosen.np.type(base), exponents)
        return made(values.astype(chosen.np), chosen, on, grad)


for _overload, _first, _last in (
    ("Tensor_Tensor", "Tensor", "Tensor"),
    ("Scalar_Tensor", "Scalar", "Tensor"),
    ("Tensor_Scalar", "Tensor", "Scalar"),
    ("", "Scalar", "Scalar"),
):
    _dot = f".{_overload}" if _overload else ""
    define(
        f"linspace{_dot}({_first} start, {_last} end, int steps, {OPTIONS}) -> Tensor",
        doc="steps numbers from start to end, evenly spaced.",
        run=lambda start, end, steps, dtype, layout, device, pin, grad: _linspace(
            start, end, steps, dtype, device, grad
        ),
        out=RANGE,
        method=False,
    )
    define(
        f"logspace{_dot}({_first} start, {_last} end, int steps, float base=10.0, {OPTIONS}) -> Tensor",
        doc="base to the power of evenly spaced numbers.",
        run=lambda start, end, steps, base, dtype, layout, device, pin, grad: _logspace(
            start, end, steps, base, dtype, device, grad
        ),
        out=RANGE,
        method=False,
    )


# ---- eye, triangles --------------------------------------------------------------------------------------------------


def _eye(n: int, m: int, kind: dtype | None, on: Any, grad: bool | None) -> Tensor:
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    chosen = kind or default_float()
    return made(np.eye(n, m, dtype=np.int8).astype(chosen.np), chosen, on, grad)


define(
    f"eye(SymInt n, {OPTIONS}) -> Tensor",
    doc="A matrix with ones on its diagonal.",
    run=lambda n, dtype, layout, device, pin, grad: _eye(n, n, dtype, device, grad),
    out=RANGE,
)
define(
    f"eye.m(SymInt n, SymInt m, {OPTIONS}) -> Tensor",
    doc="A matrix with ones on its diagonal.",
    run=lambda n, m, dtype, layout, device, pin, grad: _eye(n, m, dtype, device, grad),
    out=RANGE,
)


def _triangle(name: str, row: int, col: int, offset: int, kind: dtype | None, on: Any, grad: bool | None) -> Tensor:
    for side, size in (("row", row), ("col", col)):
        if size < 0:
            raise RuntimeError(f"{side} must be non-negative, got{size}")
    chosen = kind or int64
    if chosen not in (int64, int32):
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(chosen)}'")
    part = np.tril_indices if name == "tril_indices" else np.triu_indices
    return made(np.stack(part(row, offset, col)).astype(chosen.np), chosen, on, grad)


for _name in ("tril_indices", "triu_indices"):
    define(
        f"{_name}(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, bool? requires_grad=False) -> Tensor",
        doc=f"The indices of a matrix's {'lower' if _name == 'tril_indices' else 'upper'} triangle, row by row.",
        run=lambda row, col, offset, dtype, layout, device, pin, grad, name=_name: _triangle(
            name, row, col, offset, dtype, device, grad
        ),
    )
