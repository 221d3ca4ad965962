"""Clipping gradients by their norm or by value."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from stridescope.engine.autograd.modes import no_grad
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import warn

Tensors = Tensor | Iterable[Tensor]


def _listed(parameters: Tensors) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        return [parameters]
    found = list(parameters)
    if isinstance(parameters, types.GeneratorType) and not found:
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    return found


def _norm_of(tensor: Tensor, norm_type: float) -> Any:
    return FUNCTIONS["torch.linalg"]["vector_norm"](tensor, norm_type)


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as if they were one vector."""
    with no_grad():
        parts = _listed(tensors)
        norm_type = float(norm_type)
        if not parts:
            return FUNCTIONS["torch"]["scalar_tensor"](0.0)  # type: ignore[no-any-return]
        first = parts[0].device
        norms = [_norm_of(t, norm_type).to(first) for t in parts]
        total = _norm_of(FUNCTIONS["torch"]["stack"](norms), norm_type)
    if error_if_nonfinite and bool(total.isnan().logical_or(total.isinf())):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total  # type: ignore[no-any-return]


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients down by a norm that is known."""
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for parameter in _listed(parameters):
            if parameter.grad is not None:
                parameter.grad.mul_(factor.to(parameter.grad.device))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients so that their norm is at most ``max_norm``; returns the norm that they had."""
    found = _listed(parameters)
    total = get_total_norm([p.grad for p in found if p.grad is not None], norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(found, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of ``clip_grad_norm_``."""
    advice = "is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`."
    warn(f"`torch.nn.utils.clip_grad_norm` {advice}", FutureWarning)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Hold every gradient between minus and plus ``clip_value``."""
    with no_grad():
        for parameter in _listed(parameters):
            if parameter.grad is not None:
                parameter.grad.clamp_(min=-float(clip_value), max=float(clip_value))
