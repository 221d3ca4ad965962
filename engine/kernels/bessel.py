"""Bessel functions of the orders 0 and 1, as PyTorch's CPU kernels compute them.

The forms and coefficients are those of Cephes (S. L. Moshier, ``j0.c`` and ``j1.c``): up to 5 quotients of polynomials
of ``x²`` that have the function's first zeros split off, beyond it a modulus and a phase in ``25/x²``. Cephes leaves
the leading 1 of some denominators out of its tables, and PyTorch leaves it out of its sums, too: its values lie up to
9e-7 beside the true ones between 5 and 8, and up to 1e-8 below. SciPy's are the true ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]
Table = tuple[float, ...]
FAR = 5.0
TINY = 1e-5  # below it j0 is 1 - x²/4


@dataclasses.dataclass(frozen=True)
class Order:
    """The coefficients of one order, highest power first: near and far, each a numerator and a denominator."""

    zeros: tuple[float, float]  # the squares of the first two
    first: tuple[Table, Table]
    second: tuple[Table, Table]
    modulus: tuple[Table, Table]
    phase: tuple[Table, Table]


ZERO = Order(
    zeros=(5.78318596294678452118, 3.04712623436620863991e1),
    first=(
        (-4.79443220978201773821e9, 1.95617491946556577543e12, -2.49248344360967716204e14, 9.70862251047306323952e15),
        (4.99563147152651017219e2, 1.73785401676374683123e5, 4.84409658339962045305e7, 1.11855537045356834862e10,
         2.11277520115489217587e12, 3.10518229857422583814e14, 3.18121955943204943306e16, 1.71086294081043136091e18),
    ),
    second=(
        (1.55924367855235737965e4, -1.46639295903971606143e7, 5.43526477051876500413e9, -9.82136065717911466409e11,
         8.75906394395366999549e13, -3.46628303384729719441e15, 4.42733268572569800351e16, -1.84950800436986690637e16),
        (1.04128353664259848412e3, 6.26107330137134956842e5, 2.68919633393814121987e8, 8.64002487103935000337e10,
         2.02979612750105546709e13, 3.17157752842975028269e15, 2.50596256172653059228e17),
    ),
    modulus=(
        (7.96936729297347051624e-4, 8.28352392107440799803e-2, 1.23953371646414299388, 5.44725003058768775090,
         8.74716500199817011941, 5.30324038235394892183, 9.99999999999999997821e-1),
        (9.24408810558863637013e-4, 8.56288474354474431428e-2, 1.25352743901058953537, 5.47097740330417105182,
         8.76190883237069594232, 5.30605288235394617618, 1.00000000000000000218),
    ),
    phase=(
        (-1.13663838898469149931e-2, -1.28252718670509318512, -1.95539544257735972385e1, -9.32060152123768231369e1,
         -1.77681167980488050595e2, -1.47077505154951170175e2, -5.14105326766599330220e1, -6.05014350600728481186),
        (6.43178256118178023184e1, 8.56430025976980587198e2, 3.88240183605401609683e3, 7.24046774195652478189e3,
         5.93072701187316984827e3, 2.06209331660327847417e3, 2.42005740240291393179e2),
    ),
)  # fmt: skip
ONE = Order(
    zeros=(1.46819706421238932572e1, 4.92184563216946036703e1),
    first=(
        (-8.99971225705559398224e8, 4.52228297998194034323e11, -7.27494245221818276015e13, 3.68295732863852883286e15),
        (6.20836478118054335476e2, 2.56987256757748830383e5, 8.35146791431949253037e7, 2.21511595479792499675e10,
         4.74914122079991414898e12, 7.84369607876235854894e14, 8.95222336184627338078e16, 5.32278620332680085395e18),
    ),
    second=(
        (1.26320474790178026440e9, -6.47355876379160291031e11, 1.14509511541823727583e14, -8.12770255501325109621e15,
         2.02439475713594898196e17, -7.78877196265950026825e17),
        (5.94301592346128195359e2, 2.35564092943068577943e5, 7.34811944459721705660e7, 1.87601316108706159478e10,
         3.88231277496238566008e12, 6.20557727146953693363e14, 6.87141087355300489866e16, 3.97270608116560655612e18),
    ),
    modulus=(
        (7.62125616208173112003e-4, 7.31397056940917570436e-2, 1.12719608129684925192, 5.11207951146807644818,
         8.42404590141772420927, 5.21451598682361504063, 1.00000000000000000254),
        (5.71323128072548699714e-4, 6.88455908754495404082e-2, 1.10514232634061696926, 5.07386386128601488557,
         8.39985554327604159757, 5.20982848682361821619, 9.99999999999999997461e-1),
    ),
    phase=(
        (5.10862594750176621635e-2, 4.98213872951233449420, 7.58238284132545283818e1, 3.66779609360150777800e2,
         7.10856304998926107277e2, 5.97489612400613639965e2, 2.11688757100572135698e2, 2.52070205858023719784e1),
        (7.42373277035675149943e1, 1.05644886038262816351e3, 4.98641058337653607651e3, 9.56231892404756170795e3,
         7.99704160447350683650e3, 2.82619278517639096600e3, 3.36093607810698293419e2),
    ),
)  # fmt: skip


def _elementwise(function: Callable[[Values], Values]) -> Callable[[Values], Values]:
    """Compute in the dtype given, silently; tables are rounded to it."""

    def call(x: Values) -> Values:
        with np.errstate(all="ignore"):
            return np.asarray(function(np.asarray(x)))

    return call


@_elementwise
def j0(x: Values) -> Values:
    """The function of the first kind, order 0; even."""
    x = np.abs(x)
    return np.where(x <= FAR, np.where(x < TINY, 1 - x * x / 4, _near(ZERO, x)), _far(ZERO, x, math.pi / 4)[0])


@_elementwise
def j1(x: Values) -> Values:
    """The function of the first kind, order 1; odd."""
    size = np.abs(x)
    found = np.where(size <= FAR, size * _near(ONE, size), _far(ONE, size, 3 * math.pi / 4)[0])
    return np.where(x < 0, -found, found)


@_elementwise
def y0(x: Values) -> Values:
    """The function of the second kind, order 0; NaN below 0."""
    found = _quotient(ZERO.second, x * x) + 2 / math.pi * np.log(x) * j0(x)
    return _above_zero(x, np.where(x <= FAR, found, _far(ZERO, x, math.pi / 4)[1]))


@_elementwise
def y1(x: Values) -> Values:
    """The function of the second kind, order 1; NaN below 0."""
    found = x * _quotient(ONE.second, x * x) + 2 / math.pi * (j1(x) * np.log(x) - 1 / x)
    return _above_zero(x, np.where(x <= FAR, found, _far(ONE, x, 3 * math.pi / 4)[1]))


def _quotient(table: tuple[Table, Table], x: Values) -> Values:
    above, below = (np.polyval(np.asarray(each, x.dtype), x) for each in table)
    return np.asarray(above / below)


def _near(order: Order, x: Values) -> Values:
    square, (a, b) = x * x, order.zeros
    return np.asarray((square - a) * (square - b) * _quotient(order.first, square))


def _far(order: Order, x: Values, shift: float) -> tuple[Values, Values]:
    """Both kinds beyond 5."""
    square, at = 25 / (x * x), x - shift
    modulus, phase = _quotient(order.modulus, square), 5 / x * _quotient(order.phase, square)
    scale = math.sqrt(2 / math.pi) / np.sqrt(x)
    return (modulus * np.cos(at) - phase * np.sin(at)) * scale, (modulus * np.sin(at) + phase * np.cos(at)) * scale


def _above_zero(x: Values, found: Values) -> Values:
    return np.where(x > 0, found, np.where(x == 0, -np.inf, np.nan))
