"""Derivatives for ``gradcheck`` as autograd finds them: backward, row by row, and in forward mode, column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd import api
from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.autograd import forward_ad
from stridescope.engine.torch.autograd._differences import as_tuple, tracked

MAYBE_EXPECTED = """

NOTE: If your op relies on non-deterministic operations i.e., it is listed here:
https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
this failure might be expected.

If you are adding a new operator, please file an issue and then use one of the
workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck.
If the test
- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck
  with `nondet_tol=<tol>` as a keyword argument.
- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test
  to have `gradcheck_nondet_tol=<tol>`.
- is a Module test (e.g., in common_nn.py), then modify the corresponding
  module_test entry to have `gradcheck_nondet_tol=<tol>`
"""


class GradcheckError(RuntimeError):
    """What ``gradcheck`` and ``gradgradcheck`` raise when gradients are wrong."""


class Backward:
    """The gradients of one output by the inputs that require grad, asked for twice: both must agree.

    Attributes:
        reentrant: whether they did, up to ``nondet_tol``.
        sizes, dtypes: whether all gradients had those of their input.
    """

    def __init__(self, output: Tensor, inputs: Sequence[Any], nondet_tol: float) -> None:
        self.output, self.sources = output, [one for one in inputs if tracked(one)]
        self.nondet_tol = nondet_tol
        self.reentrant = self.sizes = self.dtypes = True

    def jacobians(self) -> list[Array]:
        """For each input a matrix of (its elements, the output's elements)."""
        return self._twice(lambda: list(map(self._basis, range(self.output.numel()))))

    def along(self, vector: Any) -> list[Array]:
        """For each input the gradient that one vector gives, as a matrix of one column."""
        return self._twice(lambda: [vector.reshape(self.output.shape)])

    def _basis(self, number: int) -> Tensor:
        start = zeros_like(self.output).contiguous()
        start._array.reshape(-1)[number] = 1
        return start  # type: ignore[no-any-return]

    def _twice(self, starts: Callable[[], list[Any]]) -> list[Array]:
        first, second = ([self._gradients(start) for start in starts()] for _ in range(2))
        matrices, again = self._columns(first), self._columns(second)
        # NaN fails here as any difference does not: it is not greater than the tolerance.
        for a, b in zip(matrices, again, strict=True):
            self.reentrant = self.reentrant and not (a.size and np.abs(a - b).max() > self.nondet_tol)
        return matrices

    def _gradients(self, start: Tensor) -> list[Any]:
        found = api.grad(self.output, self.sources, start, retain_graph=True, allow_unused=True)
        return [None if g is None else g.detach().clone() for g in found]

    def _columns(self, rows: list[list[Any]]) -> list[Array]:
        made = [np.zeros((one.numel(), len(rows)), one.dtype.np) for one in self.sources]
        for number, gradients in enumerate(rows):
            for matrix, gradient, one in zip(made, gradients, self.sources, strict=True):
                if gradient is None:
                    continue
                if gradient.shape != one.shape:
                    self.sizes = False
                    if gradient.numel() != one.numel():
                        raise AssertionError(
                            f"Expected out_jacobian column to have {gradient.numel()} elements, but got {one.numel()}"
                        )
                elif gradient.dtype is not one.dtype:
                    self.dtypes = False
                matrix[:, number] = resolved(gradient).reshape(-1)
        return made

    def check(self, dtypes: bool) -> None:
        """Raise GradcheckError when gradients had other looks than their inputs, or differed when asked for again."""
        if not self.dtypes and dtypes:
            raise GradcheckError("Gradient has dtype mismatch")
        if not self.sizes:
            raise GradcheckError("Analytical gradient has incorrect size")
        if not self.reentrant:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values, although analytical gradient matches numerical gradient.The tolerance for "
                f"nondeterminism was {self.nondet_tol}.{MAYBE_EXPECTED}"
            )


class Forward:
    """The tangents of a function's floating results, with tangents of zero but for one input."""

    def __init__(self, func: Callable[..., Any], inputs: Sequence[Any], dtypes: bool) -> None:
        self.func, self.inputs, self.dtypes = func, inputs, dtypes
        self.places = [i for i, one in enumerate(inputs) if tracked(one)]
        if any(inputs[i].dtype.is_complex for i in self.places):
            raise ValueError("Expected inputs to be non-complex for _get_analytical_jacobian_forward_ad.")

    def jacobians(self, place: int) -> list[Array]:
        """For each result a matrix of (elements of the input at ``place``, elements of the result)."""
        one = self.inputs[place]
        rows = []
        for number in range(one.numel()):
            tangent = zeros_like(one).contiguous()
            tangent._array.reshape(-1)[number] = 1
            rows.append(self.along(place, tangent))
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def along(self, place: int, tangent: Tensor | None) -> list[Array]:
        """For each result its tangent, flat; without ``tangent`` the input at ``place`` has none."""
        with forward_ad.dual_level():
            args = [self._dual(i, tangent if i == place else None, i == place) for i in range(len(self.inputs))]
            outputs = [out for out in as_tuple(self.func(*args)) if isinstance(out, Tensor)]
            return [self._tangent(out) for out in outputs if out.dtype.is_floating_point or out.dtype.is_complex]

    def _dual(self, number: int, tangent: Any, chosen: bool) -> Any:
        one = self.inputs[number]
        if number not in self.places:
            return one
        if chosen and tangent is None:
            return one.detach()
        return forward_ad.make_dual(one.detach(), zeros_like(one) if tangent is None else tangent.reshape(one.shape))

    def _tangent(self, output: Tensor) -> Array:
        tangent = forward_ad.unpack_dual(output).tangent
        if tangent is None:
            return np.zeros(output.numel(), output.dtype.np)
        if self.dtypes and tangent.dtype.is_complex != output.dtype.is_complex:
            raise GradcheckError("Forward AD gradient has dtype mismatch.")
        return resolved(tangent.detach()).reshape(-1).copy()
