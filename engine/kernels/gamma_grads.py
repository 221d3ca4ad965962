"""How a gamma or a Dirichlet number moves when its shape parameter does, at a fixed probability.

These implicit gradients (Figurnov et al. 2018, Jankowiak and Obermeyer 2018) have no closed form. As PyTorch does, each
region takes an expansion or a fitted rational function; the fits' coefficients are PyTorch's, so that results agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Digamma = Callable[[Array], Array]

_GAMMA_FIT = (
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (
        0.040121004, -0.0065914022, -0.0026286047, -0.0013441777, 0.017050642, -0.0021309326, 0.00085092367,
        -1.5247877e-07,
    ),
)  # fmt: skip
# By powers of log x, of log(alpha / x) and of the rest; the first half is the numerator.
_BETA_FIT = np.array([
    1.003668233, -0.01061107488, -0.0657888334, 0.01201642863, 0.6336835991, -0.3557432599, 0.05486251648,
    -0.001465281033, -0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013, 0.221950385, -0.3187676331,
    0.01799915743, 0.01074823814, -0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057, 0.02155310298,
    0.004170831599, 0.001292462449, 6.976601077e-05, -0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565,
    0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181, 0.005900514878, -0.001936558688, -9.495446725e-06,
    5.385558597e-05,
    1, -0.02924021934, -0.04438342661, 0.007285809825, 0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521,
    -0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149, 0.5925320577, -0.1757678135, 0.01505928619,
    0.000564515273, 0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956, -0.007258481865, 0.001096195486,
    0.0003934994223, -4.12701925e-05, 0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05, 0.001925008108,
    -0.002869809258, 0.0008000589141, -6.063713228e-05, -0.0003477407336, 6.959756487e-05, 1.097287507e-05,
    -1.650964693e-06,
]).reshape(2, 3, 3, 4)  # fmt: skip


def _counted(values: Array) -> Array:
    """Zero where the expansion gave no number."""
    return np.where(np.isnan(values), 0.0, values)


def _chosen(regions: list[tuple[Array, Callable[..., Array]]], *values: Array) -> Array:
    """Each element by the function of the first region that it lies in."""
    result, left = np.zeros_like(values[0]), np.ones(values[0].shape, bool)
    for inside, function in regions:
        here = inside & left
        left &= ~inside
        if here.any():
            result[here] = function(*(value[here] for value in values))
    return result


def gamma(alpha: Array, x: Array, digamma: Digamma) -> Array:
    """The derivative of a gamma number ``x`` by its shape parameter; both in float64 and of one shape."""
    everywhere = np.ones(x.shape, bool)
    near = (0.9 * alpha <= x) & (x <= 1.1 * alpha)
    regions: list[tuple[Array, Callable[..., Array]]] = [
        (x < np.float64(np.float32(0.8)), lambda a, y: _gamma_small(a, y, digamma)),
        ((alpha > 8) & near, _gamma_near),
        (alpha > 8, _gamma_saddle),
        (everywhere, _gamma_fitted),
    ]
    return _chosen(regions, alpha, x)


def _gamma_small(alpha: Array, x: Array, digamma: Digamma) -> Array:
    term, below = np.ones_like(x), alpha.copy()
    first, second = term / below, term / (below * below)
    for i in range(1, 6):
        term, below = term * (-x / i), below + 1
        first, second = first + term / below, second + term / (below * below)
    power = np.power(x, alpha)
    density = np.power(x, alpha - 1) * np.exp(-x)
    slope = (np.log(x) - digamma(alpha)) * (power * first) - power * second
    return _counted(-slope / density)


def _gamma_near(alpha: Array, x: Array) -> Array:
    first = 1 + 24 * alpha * (1 + 12 * alpha)
    second = 1440 * alpha**2 + 6 * x * (53 - 120 * x) - 65 * x * x / alpha + alpha * (107 + 3600 * x)
    return np.asarray(first * second / (1244160 * alpha**4))


def _gamma_saddle(alpha: Array, x: Array) -> Array:
    ratio, apart = np.log(x / alpha), alpha - x
    root = np.sqrt(8 * alpha)
    depth = np.power(-apart - alpha * ratio, -1.5)
    both = root / apart + np.where(x < alpha, -depth, depth)
    term = ratio * both - np.sqrt(2 / alpha) * (alpha + x) / (apart * apart)
    stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha))
    return np.asarray(-stirling * x * term / root)


def _gamma_fitted(alpha: Array, x: Array) -> Array:
    u, v = np.log(x / alpha), np.log(alpha)
    c = [low + u * (middle + u * high) for low, middle, high in zip(*_GAMMA_FIT, strict=True)]
    above = c[0] + v * (c[1] + v * (c[2] + v * c[3]))
    below = c[4] + v * (c[5] + v * (c[6] + v * c[7]))
    return np.asarray(np.exp(above / below))


def dirichlet(x: Array, alpha: Array, total: Array, digamma: Digamma) -> Array:
    """The derivative of a part ``x`` of a Dirichlet vector by its parameter; ``total`` is the sum of all parameters."""
    beta = total - alpha
    edge = total * x * (1 - x)
    regions: list[tuple[Array, Callable[..., Array]]] = [
        ((x <= 0.5) & (edge < 2.5), lambda y, a, b: _beta_low(y, a, b, digamma)),
        ((x >= 0.5) & (edge < 0.75), lambda y, a, b: -_beta_high(1 - y, b, a, digamma)),
        ((alpha > 6) & (beta > 6), _beta_large),
        (np.ones(x.shape, bool), lambda y, a, b: _beta_fitted(y, a, b, digamma)),
    ]
    return _chosen(regions, x, alpha, beta)


def _beta_low(x: Array, alpha: Array, beta: Array, digamma: Digamma) -> Array:
    factor = digamma(alpha) - digamma(alpha + beta) - np.log(x)
    term = np.ones_like(x)
    series = term / alpha * (factor + 1 / alpha)
    for i in range(1, 11):
        term = term * ((i - beta) * x / i)
        series = series + term / (alpha + i) * (factor + 1 / (alpha + i))
    return _counted(x * np.power(1 - x, -beta) * series)


def _beta_high(x: Array, alpha: Array, beta: Array, digamma: Digamma) -> Array:
    factor = digamma(alpha + beta) - digamma(beta)
    term, product, slope = np.ones_like(x), np.ones_like(x), np.zeros_like(x)
    series = factor / alpha
    for i in range(1, 9):
        term = term * (-x / i)
        slope, product = slope * (beta - i) + product, product * (beta - i)
        series = series + term / (alpha + i) * (slope + factor * product)
    return _counted(-np.power(1 - x, 1 - beta) * series)


def _beta_large(x: Array, alpha: Array, beta: Array) -> Array:
    total = alpha + beta
    mean, spread = alpha / total, np.sqrt(alpha * beta / (total + 1)) / total
    near = (mean - 0.1 * spread <= x) & (x <= mean + 0.1 * spread)
    return np.where(near, _beta_at_mean(x, alpha, beta), _beta_saddle(x, alpha, beta))


def _beta_at_mean(x: Array, alpha: Array, beta: Array) -> Array:
    total = alpha + beta
    inner = (453 + 1620 * beta * (1 - x) - 455 * x) * beta + alpha * (8 * (1 - x) * (135 * beta - 11))
    middle = 3 * (59 + 180 * beta - 90 * x) * beta**2 + alpha * inner
    outer = (43 + 20 * (16 + 27 * beta) * x) * beta**3 + alpha * middle
    above = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total)
    below = 12960 * alpha**3 * beta**2 * (1 + 12 * total)
    return np.asarray(above / (1 - x) * (47 * x * beta**4 + alpha * outer) / below)


def _stirling(n: Array) -> Array:
    return np.asarray(1 + 1 / (12 * n) + 1 / (288 * n * n))


def _beta_saddle(x: Array, alpha: Array, beta: Array) -> Array:
    total = alpha + beta
    apart = alpha * (x - 1) + beta * x
    above = 2 * alpha**2 * (x - 1) + alpha * beta * (x - 1) - x * beta**2
    first = above / (np.sqrt(2 * alpha / beta) * np.power(total, 1.5) * apart * apart)
    second = 0.5 * np.log(alpha / (total * x))
    third = np.sqrt(8 * alpha * beta / total) / apart
    depth = beta * np.log(beta / (total * (1 - x))) + alpha * np.log(alpha / (total * x))
    fourth = np.power(depth, -1.5)
    inside = first + second * (third + np.where(x < alpha / total, fourth, -fourth))
    scale = _stirling(alpha) * _stirling(beta) / _stirling(total)
    return np.asarray(scale * (-x / np.sqrt(2 * alpha * beta / total)) * inside)


def _beta_fitted(x: Array, alpha: Array, beta: Array, digamma: Digamma) -> Array:
    total = alpha + beta
    u = np.log(x)
    a = np.log(alpha) - u
    b = np.log(total) - a
    powers = [np.stack([np.ones_like(x), each, each * each, each**3]) for each in (u, a, b)]
    above, below = np.einsum("hijk,in,jn,kn->hn", _BETA_FIT, powers[0][:3], powers[1][:3], powers[2])
    return np.asarray(above / below * x * (digamma(total) - digamma(alpha)) / beta)
