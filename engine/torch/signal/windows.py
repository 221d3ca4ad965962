"""``torch.signal.windows``: windows, symmetric by default."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from stridescope.engine.dtype import default_float
from stridescope.engine.layout import strided
from stridescope.engine.ops.windows import cosines, span, triangle, window
from stridescope.engine.ops.windows import kaiser as kaiser_shape
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor


def _check(name: str, count: int, kind: Any, layout: Any) -> None:
    if count < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={count}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if kind.name not in ("float32", "float64"):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")


def _positive(what: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"{what} must be positive, got: {value} instead.")


def _exponential(M: int, sym: bool, center: float | None = None, tau: float = 1.0) -> Array:
    _positive("Tau", tau)
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = span(M, sym or M <= 1) / 2 if center is None else center
    return np.exp(-np.abs(np.arange(M) - middle) / tau)


def _cosine(M: int, sym: bool) -> Array:
    return np.sin((np.arange(M) + 0.5) * math.pi / (M + 1 if not sym and M > 1 else M or 1))


def _gaussian(M: int, sym: bool, std: float = 1.0) -> Array:
    _positive("Standard deviation", std)
    return np.exp(-(((np.arange(M) - span(M, sym or M <= 1) / 2) / (std * math.sqrt(2))) ** 2))


def _kaiser(M: int, sym: bool, beta: float = 12.0) -> Array:
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return kaiser_shape(M, sym, beta)


def _general_cosine(M: int, sym: bool, a: Any) -> Array:
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    return cosines(M, sym, weights)


def _general_hamming(M: int, sym: bool, alpha: float = 0.54) -> Array:
    return cosines(M, sym, (alpha, 1 - alpha))


def _function(name: str, shape: Callable[..., Array], blamed: str = "") -> Callable[..., Tensor]:
    """The public function; ``blamed`` is the one that refusals name, where a window is another's special case."""

    def function(
        M: int,
        *,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = strided,
        device: Any = None,
        requires_grad: bool = False,
        **numbers: Any,
    ) -> Tensor:
        kind = dtype or default_float()
        _check(blamed or name, M, kind, layout)
        return window(shape(M, sym, **numbers), kind, device, requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"A {name} window of M points."
    return function


bartlett = _function("bartlett", triangle)
blackman = _function("blackman", lambda M, sym: cosines(M, sym, (0.42, 0.5, 0.08)))
cosine = _function("cosine", _cosine)
exponential = _function("exponential", _exponential)
gaussian = _function("gaussian", _gaussian)
general_cosine = _function("general_cosine", _general_cosine)
general_hamming = _function("general_hamming", _general_hamming, "general_cosine")
hamming = _function("hamming", lambda M, sym: _general_hamming(M, sym), "general_cosine")
hann = _function("hann", lambda M, sym: _general_hamming(M, sym, 0.5), "general_cosine")
kaiser = _function("kaiser", _kaiser)
nuttall = _function(
    "nuttall", lambda M, sym: cosines(M, sym, (0.3635819, 0.4891775, 0.1365995, 0.0106411)), "general_cosine"
)
