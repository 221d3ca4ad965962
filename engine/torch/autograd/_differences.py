"""Numerical derivatives for ``gradcheck``: central differences of a function of tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.ops.arithmetic import BOOL_SUB
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Size, Tensor

Function = Callable[..., Any]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One result, or several in a list or tuple, as a tuple."""
    return value if isinstance(value, tuple) else tuple(value) if isinstance(value, list) else (value,)


def tracked(value: Any) -> bool:
    """Whether this is a tensor that requires grad."""
    return isinstance(value, Tensor) and value._requires_grad


class Differences:
    """The differences of ``func`` at ``inputs`` when one of them is moved by about ``eps``.

    Args:
        func: gives a tensor, or several.
        inputs: its arguments.
        eps: how far to move, to both sides.
        complex_results: whether the derivative by a real number may be complex (it may in forward mode).
    """

    def __init__(self, func: Function, inputs: Sequence[Any], eps: float, complex_results: bool = False) -> None:
        self.func, self.inputs, self.eps, self.complex_results = func, inputs, eps, complex_results

    def jacobians(self, target: Tensor) -> list[Array]:
        """For each result a matrix of (elements of ``target``, elements of the result)."""
        array = target._array
        rows = [self._by_one(array, index) for index in itertools.product(*map(range, array.shape))]
        if not rows:
            kind = array.dtype if array.dtype.kind == "c" else None
            return [np.zeros((0, v.size), kind or v.dtype) for v in map(resolved, self._results())]
        stacked = [np.stack(columns) for columns in zip(*rows, strict=True)]
        return stacked if self.complex_results else [a.astype(array.dtype, copy=False) for a in stacked]

    def _by_one(self, array: Array, index: tuple[int, ...]) -> list[Array]:
        def along(step: complex) -> list[Array]:
            delta = np.zeros_like(array)
            delta[index] = step
            return self._quotients(array, delta, index)

        return self._wirtinger(along(self.eps), (lambda: along(self.eps * 1j)) if array.dtype.kind == "c" else None)

    def along(self, target: Tensor, direction: Sequence[Any]) -> list[Array]:
        """For each result its derivative along a direction: of the real part and, of complex ones, the imaginary."""
        array, eps = target._array, self.eps
        real, *imaginary = (part._array.reshape(array.shape) * eps for part in direction)
        by_imaginary = (lambda: self._quotients(array, imaginary[0] * 1j)) if imaginary else None
        return self._wirtinger(self._quotients(array, real), by_imaginary)

    def _wirtinger(self, by_real: list[Array], by_imaginary: Callable[[], list[Array]] | None) -> list[Array]:
        """The derivative by a real number, or the conjugate Wirtinger derivative."""
        if by_imaginary is None:
            if not self.complex_results and any(d.dtype.kind == "c" for d in by_real):
                raise AssertionError("Expected ds_dx to be real-valued, not complex.")
            return by_real
        if any(d.dtype.kind == "c" for d in by_real):
            raise AssertionError("Expected ds_dx to be real-valued, not complex")
        return [re + im * 1j for re, im in zip(by_real, by_imaginary(), strict=True)]

    def _quotients(self, array: Array, delta: Array, index: tuple[int, ...] | None = None) -> list[Array]:
        """(f(x + delta) - f(x - delta)) / 2 eps; written into the memory itself, for no version counter may see it."""
        before = array.copy()
        try:
            array[...] = before - delta
            low = self._results()
            array[...] = before + delta
            high = self._results()
        finally:
            array[...] = before
        return [self._quotient(a, b, index) for a, b in zip(low, high, strict=False)]

    def _quotient(self, low: Tensor, high: Tensor, index: tuple[int, ...] | None) -> Array:
        where = "" if index is None else f"on index {index} "
        for what, a, b in (("shape", Size(low.shape), Size(high.shape)), ("dtype", low.dtype, high.dtype)):
            if a != b:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed {where}by "
                    f"{self.eps}, but got: {what}s {a} and {b}."
                )
        if low.dtype.name == "bool":
            raise RuntimeError(BOOL_SUB)
        return ((resolved(high) - resolved(low)) / (2 * self.eps)).reshape(-1)

    def _results(self) -> list[Any]:
        with no_grad():
            outputs = as_tuple(self.func(*[one.detach() if isinstance(one, Tensor) else one for one in self.inputs]))
            return [out.detach().clone() for out in outputs]
