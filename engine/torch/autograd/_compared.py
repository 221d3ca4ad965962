"""The comparison of ``gradcheck``: whole Jacobians, or in fast mode one number for each, v·J·u with random v and u."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.ops.generator import Generator
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, from_array
from stridescope.engine.torch.autograd._differences import Differences, as_tuple, tracked
from stridescope.engine.torch.autograd._jacobians import Backward, Forward, GradcheckError

ZERO = "Numerical gradient for function expected to be zero"
_SLOW_WOULD_PASS = """
Fast gradcheck failed but element-wise differences are small. This means that the
test might've passed in slow_mode!

If you are adding a new operator, please file an issue and then use one of the
workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck:

If the test
- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck
  with `fast_mode=False` as a keyword argument.
- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test
  to have `gradcheck_fast_mode=False`
- is a Module test (e.g., in common_nn.py), then modify the corresponding
  module_test entry to have `gradcheck_fast_mode=False`
""".strip()


@dataclasses.dataclass(frozen=True)
class Limits:
    """How far to perturb, how far gradients may differ, and how they are compared."""

    eps: float
    atol: float
    rtol: float
    nondet: float
    dtypes: bool
    fast: bool


def _random(like: Tensor, generator: Generator, real: bool = False) -> Any:
    """A random vector of length one with as many elements as ``like``, with ``real`` of its real dtype."""
    kind = like.dtype.to_real() if real and like.dtype.is_complex else like.dtype
    made = op_call("rand")([like.numel()], generator=generator).to(dtype=kind)
    made /= made.norm()
    return made


class Comparison:
    """One comparison: of a function whose complex results (or, in forward mode, arguments) are seen by parts.

    Args:
        func: the function.
        inputs: its arguments.
        limits: what is allowed.
        forward: compare forward mode, instead of backward.
        parted: the numbers of the results (in forward mode, of the arguments) of which one ``part`` is taken.
        part: ``real`` or ``imaginary``.
    """

    def __init__(
        self, func: Callable[..., Any], inputs: Sequence[Any], limits: Limits, forward: bool = False,
        parted: Sequence[int] = (), part: str = "real",
    ) -> None:  # fmt: skip
        self.func, self.inputs, self.limits, self.forward = func, inputs, limits, forward
        self.parted, self.part = parted, part
        self.results = as_tuple(func(*inputs))
        self.outputs = [out for out in self.results if tracked(out)]
        self.places = [i for i, one in enumerate(inputs) if tracked(one)]
        self.differences = Differences(func, inputs, limits.eps, complex_results=forward)

    def run(self) -> None:
        """Raise GradcheckError on the first difference."""
        if self.limits.fast:
            self._run_fast()
        elif not self.outputs:
            self._check_constant()
        else:
            self._run_whole()

    def _check_constant(self) -> None:
        for place in self.places:
            if any(np.any(jacobian != 0) for jacobian in self.differences.jacobians(self.inputs[place])):
                raise GradcheckError(ZERO)

    def _run_whole(self) -> None:
        by_input = [self.differences.jacobians(self.inputs[place]) for place in self.places]
        tracking = [i for i, out in enumerate(self.results) if tracked(out)]
        numerical = [[jacobians[i] for jacobians in by_input] for i in tracking]
        if self.forward:
            pushed = Forward(self.func, self.inputs, self.limits.dtypes)
            columns = [pushed.jacobians(place) for place in self.places]
        for number, output in enumerate(self.outputs):
            analytical = [c[number] for c in columns] if self.forward else self._backward(output)
            for column, (a, n) in enumerate(zip(analytical, numerical[number], strict=True)):
                if not _close(a, n, self.limits.rtol, self.limits.atol):
                    raise GradcheckError(self._mismatch(from_array(a), from_array(n), number, column))

    def _backward(self, output: Tensor) -> list[Array]:
        found = Backward(output, self.inputs, self.limits.nondet)
        jacobians = found.jacobians()
        found.check(self.limits.dtypes)
        return jacobians

    def _mismatch(self, analytical: Any, numerical: Any, output: int, column: int) -> str:
        """What is said about two Jacobians, or numbers, that differ."""
        said, mode = "", "computed with forward mode " if self.forward else ""
        if (column if self.forward else output) in self.parted:
            said = f"While considering the {self.part} part of complex {'inputs' if self.forward else 'outputs'} only, "
        return (
            f"{said}Jacobian {mode}mismatch for output {output} with respect to input {column},\n"
            f"numerical:{numerical}\nanalytical:{analytical}\n"
        )

    # ---- fast mode -----------------------------------------------------------------------------------------------

    def _run_fast(self) -> None:
        generator = Generator()
        directions = [self._direction(self.inputs[place], generator) for place in self.places]
        vectors = None if self.forward else [_random(out, generator) for out in self.outputs]
        slopes = [
            self.differences.along(self.inputs[p], u) for p, u in zip(self.places, directions, strict=True)
        ]  # fmt: skip
        steepest = max((np.abs(slope).max(initial=0) for each in slopes for slope in each), default=0)
        if not self.forward and not self.outputs and steepest > self.limits.nondet:
            raise GradcheckError(ZERO)
        floating = [i for i, out in enumerate(self.results) if out.dtype.is_floating_point or out.dtype.is_complex]
        numerical = [[from_array(each[i]) for i in floating] for each in slopes]
        if vectors is not None:
            numerical = [[(v * n).sum() for v, n in zip(vectors, each, strict=False)] for each in numerical]
        self._compare_fast(numerical, directions, vectors)

    @staticmethod
    def _direction(one: Tensor, generator: Generator) -> Any:
        return tuple(_random(one, generator, True) for _ in range(1 + one.dtype.is_complex))

    def _compare_fast(self, numerical: list[list[Any]], directions: list[Any], vectors: list[Any] | None) -> None:
        analytical = self._pushed(directions) if vectors is None else self._pulled(directions, vectors)
        for column, each in enumerate(numerical):
            for output, n in enumerate(each):
                a = analytical[column][output]
                weight = sum(float(part.sum()) for part in directions[column])
                weight *= 1.0 if vectors is None else float(vectors[output].sum().real)
                if not _close(a._array, n._array, self.limits.rtol, self.limits.atol * weight):
                    raise GradcheckError(self._mismatch(a, n, output, column) + self._slowly(output, column))

    def _pushed(self, directions: list[Any]) -> list[list[Any]]:
        pushed = Forward(self.func, self.inputs, self.limits.dtypes)
        return [[from_array(t) for t in pushed.along(p, u[0])] for p, u in zip(self.places, directions, strict=True)]

    def _pulled(self, directions: list[Any], vectors: list[Any]) -> list[list[Any]]:
        rows = []
        for output, vector in zip(self.outputs, vectors, strict=True):
            found = Backward(output, self.inputs, self.limits.nondet)
            gradients = found.along(vector)
            found.check(self.limits.dtypes)
            rows.append([_dot(g[:, 0], u) for g, u in zip(gradients, directions, strict=True)])
        return [list(column) for column in zip(*rows, strict=True)]

    def _slowly(self, output: int, column: int) -> str:
        """The whole Jacobians, for whoever looks for the fault."""
        place = self.places[column]
        numerical = self.differences.jacobians(self.inputs[place])[output]
        if self.forward:
            analytical = Forward(self.func, self.inputs, False).jacobians(place)[output]
        else:
            analytical = Backward(self.outputs[output], self.inputs, np.inf).jacobians()[column]
        return (
            "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
            "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n"
            "about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
            f"Numerical:\n {from_array(numerical)}\nAnalytical:\n{from_array(analytical)}\n\n"
            f"The max per-element difference (slow mode) is: {np.abs(numerical - analytical).max()}.\n"
            + (_SLOW_WOULD_PASS if _close(analytical, numerical, self.limits.rtol, self.limits.atol) else "")
        )


def _dot(gradient: Array, direction: Any) -> Any:
    """The product of a gradient and a direction; of complex ones by parts."""
    if gradient.dtype.kind != "c":
        return from_array(gradient.copy()).dot(direction[0])
    real, imaginary = (from_array(part.copy()) for part in (gradient.real, gradient.imag))
    return real.dot(direction[0]) + imaginary.dot(direction[1]) * 1j


def _close(analytical: Array, numerical: Array, rtol: float, atol: float) -> bool:
    return bool(np.allclose(analytical, numerical, rtol=rtol, atol=atol))
