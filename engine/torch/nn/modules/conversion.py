"""Moving and casting what a module holds, and forgetting its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.device import device
from stridescope.engine.dtype import dtype
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.parameter import Parameter


def clear_grad(parameter: Tensor, set_to_none: bool) -> None:
    """Forget a gradient, or detach and zero it."""
    grad = parameter.grad
    if grad is None:
        return
    if set_to_none:
        parameter.grad = None  # type: ignore[attr-defined]
        return
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()


def replace_data(parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> None:
    """Let a parameter and its gradient hold ``fn`` of what they hold."""
    before, grad_mode.enabled = grad_mode.enabled, False
    try:
        parameter.data = fn(parameter.data)  # type: ignore[attr-defined]
        if parameter.grad is not None:
            grad = parameter.grad
            wanted = grad.requires_grad
            grad.data = fn(grad.data)
            grad.requires_grad_(wanted)
    finally:
        grad_mode.enabled = before


def renewed(parameter: Any, fn: Callable[[Tensor], Tensor]) -> Parameter:
    """A new parameter that holds ``fn`` of what this one holds; its gradient too."""
    before, grad_mode.enabled = grad_mode.enabled, False
    try:
        made: Any = Parameter(fn(parameter), parameter.requires_grad)
        if (grad := parameter.grad) is not None:
            made.grad = fn(grad).requires_grad_(grad.requires_grad)
    finally:
        grad_mode.enabled = before
    return made  # type: ignore[no-any-return]


def parsed_target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, non_blocking and memory_format that ``Module.to`` was asked for."""
    place, kind = kwargs.get("device"), kwargs.get("dtype")
    non_blocking = bool(kwargs.get("non_blocking", False))
    for value in [*args, kwargs.get("tensor")]:
        if isinstance(value, Tensor):
            place, kind = value.device, value.dtype
        elif isinstance(value, dtype):
            kind = value
        elif isinstance(value, bool):
            non_blocking = value
        elif value is not None:
            place = device(value)
    return None if place is None else device(place), kind, non_blocking, kwargs.get("memory_format")
