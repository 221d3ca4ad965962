"""Window functions: the shapes that a signal is faded in and out with, under their old names (``hann_window``…)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.device import device
from stridescope.engine.dtype import FLOAT, default_float, dtype
from stridescope.engine.ops.creation import from_values
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor


def span(count: int, sym: bool) -> int:
    """How many steps the window's full width has; a periodic one leaves its last point out."""
    return count - 1 if sym else count


def cosines(count: int, sym: bool, weights: Sequence[float]) -> Array:
    """A weighted sum of cosines with alternating signs."""
    if count < 2:
        return np.ones(count)
    angle = np.arange(count) * (2 * math.pi / span(count, sym))
    return np.sum([(-1) ** i * w * np.cos(i * angle) for i, w in enumerate(weights)], axis=0)


def triangle(count: int, sym: bool) -> Array:
    """Bartlett's triangle."""
    if count < 2:
        return np.ones(count)
    return 1 - np.abs(np.arange(count) * (2 / span(count, sym)) - 1)


def kaiser(count: int, sym: bool, beta: float) -> Array:
    """Kaiser's window, by the Bessel function I0."""
    if count < 2:
        return np.ones(count)
    places = np.minimum(np.arange(count) * (2 * beta / span(count, sym)) - beta, beta)
    from scipy.special import i0  # SciPy takes longer to import than the whole engine

    return np.asarray(i0(np.sqrt(np.maximum(beta * beta - places * places, 0))) / i0(beta))


def window(values: Array, kind: dtype | None, on: Any, requires_grad: bool) -> Tensor:
    """The values as a tensor."""
    chosen = kind or default_float()
    return from_values(values.astype(chosen.np), chosen, None if on is None else device(on), requires_grad)


def _checked(name: str, length: int, kind: dtype | None) -> None:
    if kind is not None and kind.category != FLOAT:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {kind}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")


def _old(name: str, shape: Any, *extra: float) -> Any:
    """The function of an old name: ``periodic`` is the opposite of symmetric."""

    def function(
        window_length: int,
        periodic: bool = True,
        *numbers: float,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **named: float,
    ) -> Tensor:
        _checked(name, window_length, dtype)
        given = [*numbers, *named.values()]
        values = shape(window_length, not periodic, *(given + list(extra[len(given) :])))
        return window(values, dtype, device, requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``torch.{name}``: a window, periodic by default."
    return function


FUNCTIONS: dict[str, Any] = {
    "hann_window": _old("hann_window", lambda n, sym: cosines(n, sym, (0.5, 0.5))),
    "hamming_window": _old("hamming_window", lambda n, sym, alpha, beta: cosines(n, sym, (alpha, beta)), 0.54, 0.46),
    "blackman_window": _old("blackman_window", lambda n, sym: cosines(n, sym, (0.42, 0.5, 0.08))),
    "bartlett_window": _old("bartlett_window", triangle),
    "kaiser_window": _old("kaiser_window", kaiser, 12.0),
}
