"""Orthogonal polynomials of torch.special: Chebyshev, Hermite, Laguerre, Legendre."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stridescope.engine.dispatch.elementwise import elementwise
from stridescope.engine.dispatch.op import define

Recurrence = Callable[[Any, Any, Any, int], Any]


def _by_recurrence(first: Callable[[Any], Any], step: Recurrence) -> Callable[..., Any]:
    """A polynomial of degree n at x: 1, ``first(x)``, then each from the two before."""

    def compute(x: Any, n: Any) -> Any:
        kind = np.result_type(x)
        x, n = np.broadcast_arrays(x, n)
        degree = np.trunc(n).astype(np.int64)
        result = np.zeros(x.shape, kind)
        before, current = np.ones_like(x), first(x)
        result = np.where(degree == 0, before, result)
        for k in range(1, int(degree.max(initial=0)) + 1):
            result = np.where(degree == k, current, result)
            if not np.any((degree > k) & ~np.isnan(current)):  # nothing but NaN would follow
                return np.where(degree > k, np.nan, result).astype(kind)
            before, current = current, step(x, current, before, k)
        return result.astype(kind)

    return compute


def _chebyshev(x: Any, current: Any, before: Any, k: int) -> Any:
    return (x + x) * current - before


def _shifted(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, n: function(x + x - 1, n)


_T = _by_recurrence(lambda x: x, _chebyshev)
_U = _by_recurrence(lambda x: x + x, _chebyshev)
_V = _by_recurrence(lambda x: x + x - 1, _chebyshev)
_W = _by_recurrence(lambda x: x + x + 1, _chebyshev)

_TABLE: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("chebyshev_polynomial_t", _T),
    ("chebyshev_polynomial_u", _U),
    ("chebyshev_polynomial_v", _V),
    ("chebyshev_polynomial_w", _W),
    ("shifted_chebyshev_polynomial_t", _shifted(_T)),
    ("shifted_chebyshev_polynomial_u", _shifted(_U)),
    ("shifted_chebyshev_polynomial_v", _shifted(_V)),
    ("shifted_chebyshev_polynomial_w", _shifted(_W)),
    ("hermite_polynomial_h", _by_recurrence(lambda x: x + x, lambda x, c, b, k: (x + x) * c - 2.0 * k * b)),
    ("hermite_polynomial_he", _by_recurrence(lambda x: x, lambda x, c, b, k: x * c - float(k) * b)),
    ("laguerre_polynomial_l", _by_recurrence(
        lambda x: 1 - x, lambda x, c, b, k: ((2 * k + 1 - x) * c - k * b) / (k + 1))),
    ("legendre_polynomial_p", _by_recurrence(lambda x: x, lambda x, c, b, k: ((2 * k + 1) * x * c - k * b) / (k + 1))),
)  # fmt: skip

for _name, _function in _TABLE:
    _run = elementwise(_function, f"{_name}_cpu", "bif", to_float=True, halves=False)
    for _overload, _arguments in (
        ("", "Tensor x, Tensor n"),
        (".x_scalar", "Scalar x, Tensor n"),
        (".n_scalar", "Tensor x, Scalar n"),
    ):
        define(
            f"special_{_name}{_overload}({_arguments}) -> Tensor",
            doc=f"The {_name.replace('_', ' ')} of degree n at x.",
            run=_run,
            method=False,
            namespace="torch.special",
        )
