"""Python numbers as values of a dtype, with PyTorch's refusal where one does not fit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from stridescope.engine.dtype import BOOL, FLOAT, INTEGER, dtype, float32, float64

C_TYPES = {
    "float32": "float", "float64": "double", "int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t",
    "uint8": "uint8_t", "bool": "bool", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "uint16": "uint16_t",
    "uint32": "uint32_t", "uint64": "uint64_t",
}  # fmt: skip


def largest(kind: dtype) -> float:
    """The largest finite number of a floating point dtype."""
    read: Any = ml_dtypes.finfo
    return float(read(kind.np).max)


def check_number(value: Any, kind: dtype) -> None:
    """Raise RuntimeError for a number that the dtype cannot hold; a negative int may wrap around in an unsigned."""
    if kind.is_complex or kind.category == BOOL or isinstance(value, bool):
        return
    if isinstance(value, complex):
        fits, value = not value.imag, value.real
    else:
        fits = True
    if not fits or not isinstance(value, (int, float)) or not _within(value, kind):
        raise RuntimeError(f"value cannot be converted to type {C_TYPES[kind.name]} without overflow")


def _within(value: float, kind: dtype) -> bool:
    if kind.category == FLOAT:
        return not np.isfinite(value) or abs(value) <= largest(kind)
    assert kind.category == INTEGER
    limits = np.iinfo(kind.np)
    low = -int(limits.max) if isinstance(value, int) and kind.name.startswith("uint") else int(limits.min)
    return low <= value <= limits.max


def filler_of(value: Any, kind: dtype, count: int) -> Any:
    """The number to fill ``count`` elements with; one half goes by way of a double, which is what a refusal names."""
    if count == 1 and isinstance(value, complex) and kind.itemsize == 2 and kind.category == FLOAT:
        check_number(value, float64)
    return number_of(value, kind)


_USUAL: frozenset[Any] = frozenset((int, float))
_EXACT = 1 << 24  # up to here every dtype that is asked first holds the number, however it is converted


def number_of(value: Any, kind: dtype) -> Any:
    """The number as a NumPy scalar of the dtype; raises RuntimeError where it does not fit."""
    if value.__class__ in _USUAL and kind in (float32, float64) and -_EXACT <= value <= _EXACT:
        return kind.np.type(value)
    check_number(value, kind)
    if isinstance(value, complex) and not kind.is_complex and kind.category != BOOL:
        value = value.real
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(kind.np)[()]
