"""``torch.autograd.gradcheck``: gradients against finite differences."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd import api
from stridescope.engine.autograd.blank import zeros_like
from stridescope.engine.autograd.edges import gradient_edge
from stridescope.engine.autograd.modes import enable_grad
from stridescope.engine.autograd.node import Gradients, Node, set_history
from stridescope.engine.tensor import Tensor, alias, from_array
from stridescope.engine.torch.autograd import _batched_check
from stridescope.engine.torch.autograd._compared import Comparison, Limits
from stridescope.engine.torch.autograd._differences import Differences, Function, as_tuple, tracked
from stridescope.engine.torch.autograd._jacobians import Backward, Forward, GradcheckError


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
    ``raise_exception``.

    Args:
        func: gives a tensor, or several.
        inputs: its arguments.
        eps: how far inputs are moved.
        atol: how far gradients may differ.
        rtol: the same, relative to the gradient.
        raise_exception: raise, instead of returning False.
        nondet_tol: how far gradients may differ that are asked for twice.
        check_undefined_grad: also that gradients that do not arrive count as zeros.
        check_grad_dtypes: also that gradients have the dtype of their input.
        check_batched_grad: also that ``vmap`` over the backward pass gives the same.
        check_batched_forward_grad: also that ``vmap`` over forward mode does.
        check_forward_ad: compare forward mode, too.
        check_backward_ad: compare backward.
        fast_mode: compare one number for each pair of input and output, a random combination of the Jacobian's.
        masked: accepted; it is about sparse tensors.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    limits = Limits(eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
    given = as_tuple(inputs)
    try:
        _check_inputs(given)
        _compare(func, given, limits, check_backward_ad, check_forward_ad, check_undefined_grad)
        if check_batched_forward_grad:
            _batched_check.check_forward(func, given)
        if check_backward_ad:
            _check_passes(func, given, check_batched_grad, check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    for position, one in enumerate(inputs):
        if not tracked(one):
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
    if not any(tracked(one) for one in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _compare(
    func: Function, inputs: tuple[Any, ...], limits: Limits, backward: bool, forward: bool, undefined: bool
) -> None:
    results = as_tuple(func(*inputs))
    if backward:
        parted = [i for i, out in enumerate(out for out in results if tracked(out)) if out.dtype.is_complex]
        if any(out.dtype.is_complex for out in results):
            for part in ("imaginary", "real"):
                Comparison(_result_part(func, part), inputs, limits, parted=parted, part=part).run()
        else:
            Comparison(func, inputs, limits).run()
    if forward:
        _compare_forward(func, inputs, limits, undefined)


def _compare_forward(func: Function, inputs: tuple[Any, ...], limits: Limits, undefined: bool) -> None:
    parted = [i for i, one in enumerate(inputs) if isinstance(one, Tensor) and one.dtype.is_complex]
    parts = [
        (part, _argument_part(func, parted, inputs, part), [_part(one, part) for one in inputs])
        for part in ("imaginary", "real")
    ]
    whole: list[tuple[str, Function, Any]] = [("real", func, inputs)]
    for part, function, given in parts if parted else whole:
        Comparison(function, given, limits, True, parted, part).run()
    for _, function, given in (parts if parted else whole) if undefined else ():
        _check_undefined_tangents(function, given)


def _part(one: Any, part: str) -> Any:
    """The real or imaginary part of a complex tensor."""
    if not (isinstance(one, Tensor) and one.dtype.is_complex):
        return one
    return getattr(one, "imag" if part == "imaginary" else "real")


def _result_part(func: Function, part: str) -> Function:
    """The function with one part of its complex results."""
    return lambda *args: tuple(_part(out, part) for out in as_tuple(func(*args)))


def _argument_part(func: Function, parted: Sequence[int], inputs: Sequence[Any], part: str) -> Function:
    """The function of one part of its complex arguments; the other part stays what it is."""

    def function(*args: Any) -> Any:
        given = list(args)
        for place in parted:
            other = inputs[place].detach()
            given[place] = given[place] + other.imag * 1j if part == "real" else other.real + given[place] * 1j
        return func(*given)

    return function


def _check_undefined_tangents(func: Function, inputs: Sequence[Any]) -> None:
    """No tangent must do what a tangent of zeros does."""
    pushed = Forward(func, inputs, False)
    for place in pushed.places:
        zero, none = (pushed.along(place, t) for t in (zeros_like(inputs[place]), None))
        for number, (a, b) in enumerate(zip(zero, none, strict=True)):
            if not np.allclose(a, b):
                raise GradcheckError(
                    "Mismatch in tangent values for output with index: ", number, " when input: ", inputs[place],
                    " has an undefined tangent value. ", " Got: ", from_array(a), " but expected: ", from_array(b),
                )  # fmt: skip


def _check_passes(func: Function, inputs: tuple[Any, ...], batched: bool, undefined: bool) -> None:
    """What single backward passes have to be like."""
    outputs = [out for out in as_tuple(func(*inputs)) if tracked(out)]
    for number, output in enumerate(outputs if batched else ()):
        _batched_check.check_backward(inputs, output, number)
    _check_scales(outputs, inputs)
    if undefined:
        _check_undefined(func, inputs)


def _check_scales(outputs: list[Tensor], inputs: tuple[Any, ...]) -> None:
    """A gradient of zeros must give zeros, that look like the inputs."""
    sources = [one for one in inputs if tracked(one)]
    if not outputs:
        return
    found = api.grad(outputs, sources, [zeros_like(out).contiguous() for out in outputs], allow_unused=True)
    for gradient, one in zip(found, sources, strict=True):
        if gradient is None:
            continue
        if np.any(gradient._array != 0):
            raise GradcheckError("backward not multiplied by grad_output")
        for what in ("dtype", "device", "shape"):
            if getattr(gradient, what) != getattr(one, what):
                raise GradcheckError(f"grad is incorrect {_LOOKS[what]}")


_LOOKS = {"dtype": "type", "device": "device", "shape": "size"}


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
    count = sum(tracked(out) for out in as_tuple(func(*inputs)))
    for undefined in [set(range(count)), *({number} for number in range(count) if count > 1)]:
        outputs = [out for out in as_tuple(func(*inputs)) if tracked(out)]
        cut = [UndefinedGrad.after(out) if number in undefined else out for number, out in enumerate(outputs)]
        _check_zero(cut, [one for one in inputs if tracked(one)])


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
    """Compare the gradients of the gradients of ``func`` with finite differences; see :func:`gradcheck`.

    Args:
        func: gives a tensor, or several.
        inputs: its arguments.
        grad_outputs: the gradients that the first pass starts with; random ones where not given.
        gen_non_contig_grad_outputs: put gaps between the random ones.
        check_fwd_over_rev: compare forward mode over the backward pass, too.
        check_rev_over_rev: compare backward over backward.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, asked in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        if asked and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    given = as_tuple(inputs)
    if grad_outputs is None:
        outputs = [out for out in as_tuple(func(*given)) if tracked(out)]
        starts = tuple(_random_like(out, gen_non_contig_grad_outputs) for out in outputs)
    else:
        starts = as_tuple(grad_outputs)
    return gradcheck(
        enable_grad()(_gradient_of(func, given, starts)), (*given, *starts), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad, fast_mode=fast_mode,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, masked=masked,
    )  # fmt: skip


def _gradient_of(func: Function, given: Sequence[Any], starts: Sequence[Any]) -> Function:
    """The gradients of ``func`` as a function of its arguments and of what the pass starts with."""
    wanted = [tracked(one) for one in (*given, *starts)]

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        args = tuple(
            a.requires_grad_() if want and not a._requires_grad else a for a, want in zip(args, wanted, strict=True)
        )
        points, vectors = args[: len(given)], args[len(given) :]
        outputs = [out for out in as_tuple(func(*points)) if tracked(out)]
        sources = [one for one, want in zip(points, wanted, strict=False) if want]
        found = api.grad(outputs, sources, vectors, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradients


def _random_like(output: Tensor, apart: bool) -> Any:
    """Random numbers in the shape of an output, from the global generator; ``apart`` puts gaps between them."""
    make_tensor = importlib.import_module("stridescope.engine.torch.testing").make_tensor
    options = {"low": -1, "high": 1, "requires_grad": True, "noncontiguous": apart}
    return make_tensor(tuple(output.shape), dtype=output.dtype, device=output.device, **options)


# ---- older names ----------------------------------------------------------------------------------------------------

_OLD = (
    "`{}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed "
    "in a future version of PyTorch. If you have a specific use for this or feature request for this to be a stable "
    "API, please file us an issue at https://github.com/pytorch/pytorch/issues/new"
)


def _of_old(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(_OLD.format(function.__name__), FutureWarning, stacklevel=2)
        if kwargs.get("grad_out", 1.0) != 1.0:
            raise ValueError(
                f"Expected grad_out to be 1.0. {function.__name__} no longer supports values of grad_out != 1.0."
            )
        return function(*args, **kwargs)

    return called


@_of_old
def get_numerical_jacobian(
    fn: Function, inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Any, ...]:
    """The Jacobians, by differences, of the first result of ``fn(inputs)`` by each tensor of ``target``."""
    sources = [one for one in as_tuple(inputs if target is None else target) if tracked(one)]
    differences = Differences(lambda *args: fn(args), as_tuple(inputs), eps)
    return tuple(from_array(differences.jacobians(one)[0]) for one in sources)


@_of_old
def get_analytical_jacobian(inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0) -> Any:
    """The Jacobians of ``output`` by each input, whether they are the same twice, and right in size and in dtype."""
    if output.dtype.is_complex:
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return "
            "complex outputs."
        )
    found = Backward(output, as_tuple(inputs), nondet_tol)
    jacobians = tuple(from_array(jacobian) for jacobian in found.jacobians())
    return jacobians, found.reentrant, found.sizes, found.dtypes


def get_numerical_jacobian_wrt_specific_input(
    fn: Function, input_idx: int, inputs: Any, outputs: Any, eps: float, input: Any = None, is_forward_ad: bool = False
) -> tuple[Any, ...]:
    """The Jacobians, by differences, of every result of ``fn`` by one input."""
    one = as_tuple(inputs)[input_idx] if input is None else input
    if not one._requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    return tuple(map(from_array, Differences(fn, as_tuple(inputs), eps, is_forward_ad).jacobians(one)))


GradcheckError.__module__ = "torch.autograd.gradcheck"
__all__ = [
    "GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "get_numerical_jacobian_wrt_specific_input",
    "gradcheck", "gradgradcheck",
]  # fmt: skip
