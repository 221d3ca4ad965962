"""``torch.autograd.gradcheck``: gradients against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stridescope.engine.autograd import api
from stridescope.engine.autograd.blank import zeros, zeros_like
from stridescope.engine.autograd.edges import gradient_edge
from stridescope.engine.autograd.modes import enable_grad, no_grad
from stridescope.engine.autograd.node import Gradients, Node, set_history
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.ops.arithmetic import BOOL_SUB
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, alias, from_array

Function = Callable[..., Any]


class GradcheckError(RuntimeError):
    """What ``gradcheck`` and ``gradgradcheck`` raise when gradients are wrong."""


class Tolerances(NamedTuple):
    """How far to perturb, and how far gradients may differ."""

    eps: float
    atol: float
    rtol: float
    nondet: float


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else tuple(value) if isinstance(value, list) else (value,)


def _tracked(value: Any) -> bool:
    return isinstance(value, Tensor) and value._requires_grad


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of ``func`` with finite differences, for every input that requires grad.

    Works best in double precision. Raises GradcheckError on the first difference, or returns False when not
    ``raise_exception``. The whole Jacobian is always compared, also in ``fast_mode``.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    limits = Tolerances(eps, atol, rtol, nondet_tol)
    given = _as_tuple(inputs)
    try:
        _check_inputs(given)
        _check(func, given, limits, check_backward_ad, check_forward_ad, check_grad_dtypes, check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    for position, one in enumerate(inputs):
        if not _tracked(one):
            continue
        if one.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{position} requires gradient and is not a double precision floating point or complex. This "
                "check will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if any(stride == 0 and size > 1 for size, stride in zip(one.shape, one.strides, strict=True)):
            raise RuntimeError(
                f"The {position}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )
    if not any(_tracked(one) for one in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _check(
    func: Function,
    inputs: tuple[Any, ...],
    limits: Tolerances,
    backward: bool,
    forward: bool,
    dtypes: bool,
    undefined: bool,
) -> None:
    outputs = _as_tuple(func(*inputs))
    tracked = [out for out in outputs if _tracked(out)]
    if not tracked:
        _check_constant(func, inputs, limits)
        return
    complex_outputs = [i for i, out in enumerate(tracked) if out.dtype.is_complex]
    parts = [("imaginary", "imag"), ("real", "real")] if complex_outputs else [("", "")]
    for words, part in parts:
        heading = f"While considering the {words} part of complex outputs only, " if words else ""
        if backward:
            _check_part(_part(func, part), inputs, limits, dtypes, heading, complex_outputs)
    if forward:
        from stridescope.engine.torch.autograd.forward_check import check_forward

        check_forward(func, inputs, limits)
    if backward:
        _check_scales(func, inputs)
        if undefined:
            _check_undefined(func, inputs)


def _part(func: Function, part: str) -> Function:
    """The function with only the real or imaginary part of its complex outputs."""
    if not part:
        return func
    return lambda *args: tuple(
        getattr(out, part) if out.dtype.is_complex else out
        for out in _as_tuple(func(*args))
        if out.dtype.is_complex or out.dtype.is_floating_point
    )


def _check_part(
    func: Function, inputs: tuple[Any, ...], limits: Tolerances, dtypes: bool, heading: str, complex_outputs: list[int]
) -> None:
    outputs = _as_tuple(func(*inputs))
    positions = [i for i, one in enumerate(inputs) if _tracked(one)]
    numerical = [numerical_jacobian(func, inputs, i, limits.eps) for i in positions]
    shown = -1
    for number, output in enumerate(outputs):
        if not _tracked(output):
            continue
        shown += 1
        analytical = _analytical(output, inputs, positions, limits, dtypes)
        for column, a in enumerate(analytical):
            n = numerical[column][number]
            if not np.allclose(a, n, rtol=limits.rtol, atol=limits.atol):
                said = heading if shown in complex_outputs else ""
                raise GradcheckError(said + mismatch(a, n, shown, column))


def mismatch(analytical: Array, numerical: Array, output: int, column: int, mode: str = "") -> str:
    """What is said about two Jacobians that differ."""
    return (
        f"Jacobian {mode}mismatch for output {output} with respect to input {column},\n"
        f"numerical:{from_array(numerical)}\nanalytical:{from_array(analytical)}\n"
    )


def numerical_jacobian(func: Function, inputs: Sequence[Any], position: int, eps: float) -> list[Array]:
    """By central differences: for each output a matrix of (input elements, output elements)."""
    one = inputs[position]
    array = one._array
    rows = [_slopes(func, inputs, array, index, eps) for index in np.ndindex(*array.shape)]
    if not rows:
        outputs = _as_tuple(func(*inputs))
        return [np.zeros((0, out.numel()), array.dtype) for out in outputs]
    return [np.stack(columns).astype(array.dtype, copy=False) for columns in zip(*rows, strict=True)]


def _slopes(func: Function, inputs: Sequence[Any], array: Array, index: tuple[int, ...], eps: float) -> list[Array]:
    """The derivative of each output by one element (for a complex one, the conjugate Wirtinger derivative)."""
    along_real = _difference(func, inputs, array, index, eps)
    if array.dtype.kind != "c":
        return along_real
    along_imaginary = _difference(func, inputs, array, index, eps * 1j)
    return [re + 1j * im for re, im in zip(along_real, along_imaginary, strict=True)]


def _difference(func: Function, inputs: Sequence[Any], array: Array, index: tuple[int, ...], step: Any) -> list[Array]:
    # Written into the memory itself: the version counter must not see it.
    before = array[index]
    array[index] = before - step
    low = _values(func, inputs)
    array[index] = before + step
    high = _values(func, inputs)
    array[index] = before
    if any(values.dtype.kind == "b" for values in low):
        raise RuntimeError(BOOL_SUB)
    return [(b - a) / (2 * abs(step)) for a, b in zip(low, high, strict=True)]


def _values(func: Function, inputs: Sequence[Any]) -> list[Array]:
    with no_grad():
        outputs = _as_tuple(func(*[one.detach() if isinstance(one, Tensor) else one for one in inputs]))
    return [resolved(out.detach()).reshape(-1).copy() for out in outputs]


def _analytical(
    output: Tensor, inputs: Sequence[Any], positions: list[int], limits: Tolerances, dtypes: bool
) -> list[Array]:
    first, second = (_backward_jacobian(output, inputs, positions, dtypes) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        if not np.allclose(a, b, rtol=0, atol=limits.nondet, equal_nan=True):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values, although analytical gradient matches numerical gradient.The tolerance for "
                f"nondeterminism was {limits.nondet}.{_MAYBE_EXPECTED}"
            )
    return first


_MAYBE_EXPECTED = """

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


def _backward_jacobian(output: Tensor, inputs: Sequence[Any], positions: list[int], dtypes: bool) -> list[Array]:
    sources = [inputs[i] for i in positions]
    found = [np.zeros((one.numel(), output.numel()), one.dtype.np) for one in sources]
    for number in range(output.numel()):
        start = zeros_like(output).contiguous()
        start._array.reshape(-1)[number] = 1
        gradients = api.grad(output, sources, start, retain_graph=True, allow_unused=True)
        for jacobian, gradient, one in zip(found, gradients, sources, strict=True):
            if gradient is None:
                continue
            if dtypes and gradient.dtype is not one.dtype:
                raise GradcheckError("Gradient has dtype mismatch")
            if gradient.shape != one.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            jacobian[:, number] = resolved(gradient.detach()).reshape(-1)
    return found


def _check_constant(func: Function, inputs: tuple[Any, ...], limits: Tolerances) -> None:
    for position, one in enumerate(inputs):
        slopes = numerical_jacobian(func, inputs, position, limits.eps) if _tracked(one) else []
        if any(np.any(np.abs(slope) > limits.eps) for slope in slopes):
            raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_scales(func: Function, inputs: tuple[Any, ...]) -> None:
    """A gradient of zeros must give zeros."""
    for gradient in _of_zeros(func, inputs):
        if gradient is not None and np.any(gradient._array != 0):
            raise GradcheckError("backward not multiplied by grad_output")


def _of_zeros(func: Function, inputs: tuple[Any, ...]) -> Any:
    outputs = [out for out in _as_tuple(func(*inputs)) if _tracked(out)]
    sources = [one for one in inputs if _tracked(one)]
    return api.grad(outputs, sources, [zeros_like(out) for out in outputs], allow_unused=True)


class UndefinedGrad(Node):
    """Passes a tensor on, but no gradient back."""

    __slots__ = ()

    @classmethod
    def after(cls, tensor: Tensor) -> Tensor:
        """An alias of the tensor whose gradient does not get through."""
        made = alias(tensor)
        set_history(cls((gradient_edge(tensor),)), [made])
        return made

    def _run(self, gradients: Gradients) -> Gradients:
        """No gradient, whatever came."""
        return (None,)


def _check_undefined(func: Function, inputs: tuple[Any, ...]) -> None:
    """All outputs' gradients undefined, and each one's alone where there are several: all gradients must be zero."""
    count = sum(_tracked(out) for out in _as_tuple(func(*inputs)))
    for undefined in [set(range(count)), *({number} for number in range(count) if count > 1)]:
        outputs = [out for out in _as_tuple(func(*inputs)) if _tracked(out)]
        cut = [UndefinedGrad.after(out) if number in undefined else out for number, out in enumerate(outputs)]
        _check_zero(cut, [one for one in inputs if _tracked(one)])


def _check_zero(outputs: list[Tensor], sources: list[Tensor]) -> None:
    starts = [zeros_like(out).contiguous() for out in outputs]
    try:
        gradients = api.grad(outputs, sources, starts, allow_unused=True)
    except RuntimeError as error:
        warnings.warn(_BREAKING, stacklevel=7)
        raise GradcheckError(f"Expected backward function to handle undefined output grads. {_NOTES}") from error
    if any(g is not None and np.any(g._array != 0) for g in gradients):
        warnings.warn(_BREAKING, stacklevel=7)
        raise GradcheckError(
            "Expected all input grads to be undefined or zero when all output grads are undefined or zero. " + _NOTES
        )


_NOTES = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
_BREAKING = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
    'existing callers of this function. If this is true for you, you can call this function with "check_undefined_grad='
    'False" to disable the feature'
)


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the gradients of the gradients of ``func`` with finite differences."""
    given = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = [out for out in _as_tuple(func(*given)) if _tracked(out)]
        starts = tuple(_random_like(out, gen_non_contig_grad_outputs) for out in outputs)
    else:
        starts = _as_tuple(grad_outputs)

    tracked = [_tracked(one) for one in (*given, *starts)]

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        args = tuple(
            a.requires_grad_() if want and not a._requires_grad else a for a, want in zip(args, tracked, strict=True)
        )
        points, vectors = args[: len(given)], args[len(given) :]
        outputs = [out for out in _as_tuple(func(*points)) if _tracked(out)]
        sources = [one for one, want in zip(points, tracked, strict=False) if want]
        found = api.grad(outputs, sources, vectors, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        enable_grad()(gradients),
        (*given, *starts),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
    )


def _random_like(output: Tensor, apart: bool) -> Tensor:
    """Random numbers in the shape of an output, from the global generator; ``apart`` puts gaps between them."""
    made: Any = zeros(output.shape, output)
    (op_call("view_as_real")(made) if output.dtype.is_complex else made).uniform_(-1, 1)
    if apart and made.numel() > 1:
        made = made.repeat_interleave(2, -1)[..., ::2]
    return made.requires_grad_()  # type: ignore[no-any-return]


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
