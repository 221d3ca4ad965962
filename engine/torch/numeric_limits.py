"""``torch.finfo`` and ``torch.iinfo``: the limits of a dtype."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from stridescope.engine.dtype import INTEGER, default_float, dtype


class finfo:
    """The limits of a floating point dtype; of a complex one, those of its parts."""

    dtype: str
    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float

    def __new__(cls, type: Any = None) -> finfo:
        """Return the one object of the dtype; raises TypeError for integers."""
        kind = default_float() if type is None else type
        if not isinstance(kind, dtype):
            raise TypeError(f"finfo(): argument 'type' (position 1) must be torch.dtype, not {_type(kind)}")
        if kind.category < 2:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        return _floats(kind.to_real())

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'torch.finfo' object has no attribute '{name}'")

    def __repr__(self) -> str:
        fields = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        numbers = ", ".join(f"{name}={getattr(self, name):g}" for name in fields)
        return f"finfo({numbers}, dtype={self.dtype})"


class iinfo:
    """The limits of an integer dtype."""

    dtype: str
    bits: int
    max: int
    min: int

    def __new__(cls, type: Any) -> iinfo:
        """Return the one object of the dtype; raises TypeError for floats and bool."""
        if not isinstance(type, dtype):
            raise TypeError(f"iinfo(): argument 'type' (position 1) must be torch.dtype, not {_type(type)}")
        if type.category > INTEGER:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type.category < INTEGER:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        return _integers(type)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'torch.iinfo' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def _type(value: object) -> str:
    return value.__class__.__name__


@functools.cache
def _floats(kind: dtype) -> finfo:
    read: Any = ml_dtypes.finfo
    limits: Any = read(kind.np) if kind.name == "bfloat16" else np.finfo(kind.np)
    made: finfo = object.__new__(finfo)
    made.dtype, made.bits = kind.name, kind.itemsize * 8
    made.eps, made.max, made.min = float(limits.eps), float(limits.max), float(limits.min)
    made.tiny = made.smallest_normal = float(limits.smallest_normal)
    made.resolution = {"float64": 1e-15, "float32": 1e-06, "float16": 1e-03, "bfloat16": 1e-02}[kind.name]
    return made


@functools.cache
def _integers(kind: dtype) -> iinfo:
    limits = np.iinfo(kind.np)
    made: iinfo = object.__new__(iinfo)
    made.dtype, made.bits, made.max, made.min = kind.name, kind.itemsize * 8, int(limits.max), int(limits.min)
    return made


for _kind in (finfo, iinfo):
    _kind.__module__ = "torch"
