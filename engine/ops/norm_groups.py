"""Layer and group norms: statistics of each sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, dtype
from stridescope.engine.kernels.normal_rows import as_rows, centre, gradient_of_rows, inverse_deviation
from stridescope.engine.ops.conv import formatted
from stridescope.engine.ops.norm_layers import check_mixed, check_normalized, gradient, kind_of_statistics
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, canonical, fresh

Ints = Sequence[int]


_sum: Any = np.add.reduce


def _made(array: Array, kind: dtype, source: Tensor) -> Tensor:
    return fresh(canonical(array.astype(kind.np, "C")), kind, source.device)


# ---- layer norm ----------------------------------------------------------------------------------------------------


def _layer_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    check_normalized(input, normalized_shape, weight, bias)
    check_mixed(input, weight, bias)
    if input.dtype.category != FLOAT:
        raise not_implemented("LayerNormKernelImpl", input.dtype)
    array, kind = resolved(input), kind_of_statistics(input, weight, bias)
    axes = tuple(range(array.ndim - len(normalized_shape), array.ndim))
    if not array.size:
        stats = np.zeros((*array.shape[: axes[0]], *(1,) * len(axes)))
        return _made(array, input.dtype, input), _made(stats, kind, input), _made(stats, kind, input)
    outer = array.shape[: axes[0]]
    rows = as_rows(array, math.prod(outer))
    mean, var = centre(rows)
    rstd = inverse_deviation(var, eps)
    np.multiply(rows, rstd, rows)
    if weight is not None:
        np.multiply(rows, resolved(weight).reshape(-1).astype(np.float64), rows)
    if bias is not None:
        np.add(rows, resolved(bias).reshape(-1).astype(np.float64), rows)
    shape = (*outer, *(1,) * len(axes))
    mean, rstd = mean.reshape(shape), rstd.reshape(shape)
    return _made(rows.reshape(array.shape), input.dtype, input), _made(mean, kind, input), _made(rstd, kind, input)


def _layer_back(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Ints,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[Any, ...]:
    array = resolved(input)
    if not array.size:
        return _blank(input, weight, bias, output_mask)
    count = math.prod(array.shape[: array.ndim - len(normalized_shape)])
    grad, hat = as_rows(resolved(grad_out), count), as_rows(array, count)
    spread = as_rows(resolved(rstd), count)
    hat -= as_rows(resolved(mean), count)
    hat *= spread
    found: list[Any] = [None, None, None]
    if output_mask[1] and weight is not None:
        found[1] = _made(_sum(grad * hat).reshape(weight._array.shape), weight.dtype, input)
    if output_mask[2] and bias is not None:
        found[2] = _made(_sum(grad).reshape(bias._array.shape), bias.dtype, input)
    if output_mask[0]:
        if weight is not None:
            grad *= as_rows(resolved(weight), 1)
        found[0] = _made(gradient_of_rows(grad, hat, spread).reshape(array.shape), input.dtype, input)
    return tuple(found)


def _blank(input: Tensor, weight: Tensor | None, bias: Tensor | None, wanted: Sequence[bool]) -> tuple[Any, ...]:
    """The gradients where there are no elements."""
    tensors = zip((input, weight, bias), wanted, strict=True)
    return tuple(
        [None if t is None or not want else _made(np.zeros(t._array.shape), t.dtype, t) for t, want in tensors]
    )


_layer_backward = define(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
    "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    doc="The gradients of a layer norm's input, weight and bias.",
    run=_layer_back,
    method=False,
    function=False,
)


def _layer_grad(
    grad: Tensor,
    needs: Sequence[bool],
    input: Tensor,
    normalized_shape: Ints,
    result1: Tensor,
    result2: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
) -> Any:
    if not grad_mode.enabled:
        return _layer_backward.call(grad, input, normalized_shape, result1, result2, weight, bias, tuple(needs))
    first = input.dim() - len(normalized_shape)
    inner, outer = tuple(range(first, input.dim())), tuple(range(first))
    rstd = result2.detach() * 0 + _inverse_deviation(input, inner, result2)
    hat = (input - input.mean(inner, True)) * rstd
    return (
        gradient(grad, hat, rstd, weight, inner, True) if needs[0] else None,
        ((grad * hat).sum(outer) if outer else grad * hat) if needs[1] else None,
        (grad.sum(outer) if outer else grad) if needs[2] else None,
    )


def _inverse_deviation(input: Tensor, dims: tuple[int, ...], rstd: Tensor) -> Any:
    """``rstd`` as a function of the input again; the node keeps no eps, so it is read off the saved result."""
    var = (input - input.mean(dims, True)).square().mean(dims, True)
    eps = rstd.detach() ** -2 - var.detach()  # which may be negative
    return (var + eps).rsqrt()


layer_norm = define(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor, Tensor, Tensor)",
    doc="The last dims with their mean taken out and divided by their deviation, then scaled; also the statistics.",
    run=_layer_norm,
    grads={"input,weight,bias": _layer_grad},
    differentiable_outputs=(0,),
    samples=[((2, 3, 4), [4], (4,), (4,), 1e-5)],
    method=False,
)
define(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor",
    doc="The last dims with their mean taken out and divided by their deviation, then scaled.",
    composite=lambda input, normalized_shape, weight, bias, eps, cudnn_enable: layer_norm.call(
        input, normalized_shape, weight, bias, eps
    )[0],
    samples=[((2, 3, 4), [4], (4,), (4,))],
    method=False,
)

# ---- group norm ----------------------------------------------------------------------------------------------------


def _per_channel(tensor: Tensor, ndim: int) -> Array:
    return resolved(tensor).astype(np.float64).reshape((-1, *(1,) * (ndim - 2)))


def _group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    check_mixed(input, weight, bias)
    if input.dtype.category != FLOAT:
        raise not_implemented("GroupNormKernelImpl", input.dtype)
    array, kind = resolved(input), kind_of_statistics(input, weight, bias)
    if not array.size:
        stats = np.zeros((N, group))
        return _made(array, input.dtype, input), _made(stats, kind, input), _made(stats, kind, input)
    rows = as_rows(array, N * group)
    mean, var = centre(rows)
    rstd = inverse_deviation(var, eps)
    rows *= rstd
    result = rows.reshape(array.shape)
    if weight is not None:
        result *= _per_channel(weight, array.ndim)
    if bias is not None:
        result += _per_channel(bias, array.ndim)
    out = fresh(formatted(result.astype(input.dtype.np), input), input.dtype, input.device)
    return out, _made(mean.reshape((N, group)), kind, input), _made(rstd.reshape((N, group)), kind, input)


def _group_back(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[Any, ...]:
    if not input._array.size:
        found_none = _blank(input, weight, weight, output_mask)
        if N and not HxW and found_none[1] is not None:  # the deviation of nothing is NaN
            found_none[1]._array[...] = np.nan
        return found_none
    shape, kind = input._array.shape, input.dtype if weight is None else weight.dtype
    grad, hat = as_rows(resolved(grad_out), N * group), as_rows(resolved(input), N * group)
    spread = as_rows(resolved(rstd), N * group)
    hat -= as_rows(resolved(mean), N * group)
    hat *= spread
    axes, whole = (0, *range(2, len(shape))), grad.reshape(shape)
    found: list[Any] = [None, None, None]
    if output_mask[1]:
        found[1] = _made(_sum(whole * hat.reshape(shape), axes), kind, input)
    if output_mask[2]:
        found[2] = _made(_sum(whole, axes), kind, input)
    if output_mask[0]:
        if weight is not None:
            whole *= _per_channel(weight, len(shape))
        inner = gradient_of_rows(grad, hat, spread).reshape(shape)
        found[0] = fresh(formatted(inner.astype(input.dtype.np), input), input.dtype, input.device)
    return tuple(found)


_group_backward = define(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, "
    "SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    doc="The gradients of a group norm's input, weight and bias.",
    run=_group_back,
    method=False,
    function=False,
)


def _group_grad(
    grads: Sequence[Tensor | None],
    needs: Sequence[bool],
    input: Tensor,
    result1: Tensor,
    result2: Tensor,
    weight: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> Any:
    grad, of_mean, of_rstd = grads
    if grad is None:
        grad = input.new_zeros(input.shape)
    if of_mean is None and of_rstd is None and not grad_mode.enabled:
        return _group_backward.call(grad, input, result1, result2, weight, N, C, HxW, group, tuple(needs))
    size = (N, group, C // group * HxW)
    parts = input.reshape(size)
    mean = parts.mean((2,), True)
    rstd = ((parts - mean).square().mean((2,), True) + eps).rsqrt()
    hat = (parts - mean) * rstd
    shape = (1, -1, *(1,) * (input.dim() - 2))
    scaled = grad if weight is None else grad * weight.view(shape)
    axes = (0, *range(2, input.dim()))
    inner = gradient(scaled.reshape(size), hat, rstd, None, (2,), True)
    if of_mean is not None:
        inner = inner + of_mean.reshape((N, group, 1)) / parts.shape[2]
    if of_rstd is not None:
        inner = inner - of_rstd.reshape((N, group, 1)) * rstd.square() * hat / parts.shape[2]
    return (
        inner.reshape(input.shape) if needs[0] else None,
        (grad * hat.reshape(input.shape)).sum(axes) if needs[1] else None,
        grad.sum(axes) if needs[2] else None,
    )


group_norm = define(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, "
    "float eps) -> (Tensor, Tensor, Tensor)",
    doc="Groups of channels with their mean taken out and divided by their deviation, then scaled.",
    run=_group_norm,
    grads={"input,weight,bias": _group_grad},
    method=False,
)


def _check_groups(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None) -> None:
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    channels = input.shape[1]
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and list(tensor.shape) != [channels]:
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(tensor.shape)} and input of shape {list(input.shape)}"
            )


def _group_norm_public(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float, cudnn_enabled: bool
) -> Any:
    _check_groups(input, num_groups, weight, bias)
    shape = input._array.shape
    source = input if input.dim() in (4, 5) else input.contiguous()
    plane = math.prod(shape[2:])
    scale, shift = (None if t is None else t.contiguous() for t in (weight, bias))
    return group_norm.call(source, scale, shift, shape[0], shape[1], plane, num_groups, eps)[0]


define(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enabled=True) -> Tensor",
    doc="Groups of channels with their mean taken out and divided by their deviation, then scaled.",
    composite=_group_norm_public,
    samples=[((2, 4, 3), 2, (4,), (4,))],
    method=False,
)
