"""Normalisation: batch, layer, group, instance and RMS norms.

Statistics of float32 are computed in float64, as PyTorch's CPU kernels accumulate them. Where a gradient is itself
to be differentiated, it is computed by ops from the input; otherwise by one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stridescope.engine.autograd.modes import grad_mode, in_cpp
from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.overlap import refuse_overlap
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import FLOAT, dtype, float32, float64, scalar_name
from stridescope.engine.kernels.normal_rows import as_rows, centre, gradient_of_rows, inverse_deviation
from stridescope.engine.layout import is_channels_last, suggests_channels_last, wrap_dim
from stridescope.engine.ops.conv import formatted
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, bump_version, dense, fresh

Ints = Sequence[int]


def kind_of_statistics(input: Tensor, *others: Tensor | None) -> dtype:
    """The dtype of saved statistics: float32 for a half-precision input with parameters or averages in float32."""
    if input.dtype is float32:
        return float32
    return float32 if any(t is not None and t.dtype is float32 for t in others) else input.dtype


def check_mixed(input: Tensor, *parameters: Tensor | None) -> None:
    """Refuse parameters of another dtype than the input's: only halves may have them, all in float32.

    Which of the two cases it is PyTorch reads off the first of them.
    """
    given = [tensor.dtype for tensor in parameters if tensor is not None]
    if not given or all(kind is input.dtype for kind in given):
        return
    if given[0] is not input.dtype:
        if any(kind is not float32 for kind in given):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if input.dtype.itemsize != 2 or input.dtype.category != FLOAT:
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
    elif input.dtype.category == FLOAT:
        other = next(kind for kind in given if kind is not input.dtype)
        raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(other)}")


def _channels(array: Array) -> Array:
    """One row per channel, in double precision."""
    return as_rows(array.swapaxes(0, 1), array.shape[1])


def _column(tensor: Tensor | None) -> Array:
    """One number per channel, in double precision."""
    assert tensor is not None
    return resolved(tensor).astype(np.float64)[:, None]


def _like(rows: Array, source: Tensor) -> Tensor:
    """What rows of channels are in ``source``'s dtype, channels last as it is or else row by row."""
    batch, channels, *sizes = source._array.shape
    array = rows.reshape((channels, batch, *sizes)).swapaxes(0, 1).astype(source.dtype.np, order="C")
    return fresh(formatted(array, source), source.dtype, source.device)


def _row(array: Array, kind: dtype, source: Tensor) -> Tensor:
    return fresh(dense(np.asarray(array, kind.np)), kind, source.device)


def gradient(grad: Tensor, hat: Tensor, rstd: Tensor, weight: Any, dims: tuple[int, ...], trained: bool) -> Tensor:
    """The input's gradient by ops: ``hat`` is the normalised input, the mean and deviation belong to ``dims``."""
    scaled = grad if weight is None else grad * weight
    if not trained:
        return scaled * rstd  # type: ignore[no-any-return]
    return rstd * (scaled - scaled.mean(dims, True) - hat * (scaled * hat).mean(dims, True))  # type: ignore[no-any-return]


# ---- batch norm ----------------------------------------------------------------------------------------------------


def _channel_axes(ndim: int) -> tuple[int, ...]:
    return (0, *range(2, ndim))


def _update(running: Tensor | None, value: Array, momentum: float) -> None:
    """Move a running average; PyTorch counts no in-place write here."""
    if running is not None:
        array = running._array
        array[...] = (momentum * value.reshape(-1) + (1 - momentum) * array.astype(np.float64)).astype(array.dtype)


def _batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    if input.dtype.category != FLOAT:
        alike = running_mean is not None and running_mean.dtype is input.dtype and input.dtype.category < FLOAT
        if training and alike and not (input.is_contiguous() or is_channels_last(input._array.shape, input.strides)):
            raise RuntimeError(
                "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
                f"Got: {scalar_name(input.dtype)}"
            )
        raise not_implemented("batch_norm", input.dtype)
    check_mixed(input, weight, bias, running_mean, running_var)
    kind = kind_of_statistics(input, weight, bias, running_mean, running_var)
    rows = _channels(resolved(input))
    centred: Any = 0.0
    if training:
        mean, var = centre(rows)
        centred = mean
        count = rows.shape[1]
        _update(running_mean, mean, momentum)
        _update(running_var, var * (count / max(count - 1, 1)), momentum)
        # PyTorch normalises by the statistics as it saves them
        mean, invstd = (np.asarray(a, kind.np).astype(np.float64) for a in (mean, inverse_deviation(var, eps)))
    else:
        mean = _column(running_mean)
        # in single precision, as PyTorch's kernel takes this root
        invstd = inverse_deviation(_column(running_var).astype(_working(input)), eps)
    _scale_and_shift(rows, centred, mean, invstd, weight, bias, _working(input))
    saved = (mean, invstd) if training else (np.empty(0), np.empty(0))
    return _like(rows, input), _row(saved[0].reshape(-1), kind, input), _row(saved[1].reshape(-1), kind, input)


def _working(input: Tensor) -> Any:
    return np.float64 if input.dtype is float64 else np.float32


def _scale_and_shift(
    rows: Array, centred: Any, mean: Array, invstd: Array, weight: Tensor | None, bias: Tensor | None, working: Any
) -> None:
    """A factor and a summand per channel, rounded as PyTorch's kernel keeps them; written over the rows.

    ``centred`` was taken out of the rows before. Products and sums are fused there, and rounded once here.
    """
    factor = invstd.astype(working)
    if weight is not None:
        factor = factor * _column(weight).astype(working)
    wide = factor.astype(np.float64)
    summand = ((0.0 if bias is None else _column(bias)) - mean * wide).astype(working).astype(np.float64)
    np.multiply(rows, wide, rows)
    np.add(rows, summand + centred * wide, rows)


def _batch_back(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Any, ...]:
    grad, hat = _channels(resolved(grad_out)), _channels(resolved(input))
    if train:
        _, var = centre(hat)
    else:
        hat -= _column(running_mean)
        var = _column(running_var)
    rstd = inverse_deviation(var, eps)
    hat *= rstd
    kind = input.dtype if weight is None else weight.dtype
    found: list[Any] = [None, None, None]
    if output_mask[1]:
        found[1] = _row(np.vecdot(grad, hat), kind, input)
    if output_mask[2]:
        found[2] = _row(grad.sum(1), kind, input)
    if output_mask[0]:
        if weight is not None:
            grad *= _column(weight)
        found[0] = _like(gradient_of_rows(grad, hat, rstd) if train else grad * rstd, input)
    return tuple(found)


_batch_backward = define(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
    "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> "
    "(Tensor, Tensor, Tensor)",
    doc="The gradients of a batch norm's input, weight and bias.",
    run=_batch_back,
    method=False,
    function=False,
)


def _batch_grad(
    grad: Tensor,
    needs: Sequence[bool],
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    result1: Tensor,
    result2: Tensor,
    training: bool,
    eps: float,
) -> Any:
    if not grad_mode.enabled:
        return _batch_backward.call(
            grad, input, weight, running_mean, running_var, result1, result2, training, eps, tuple(needs)
        )
    dims, shape = _channel_axes(input.dim()), (1, -1, *(1,) * (input.dim() - 2))
    if training:
        mean = input.mean(dims, True)
        var = (input - mean).square().mean(dims, True)
    else:
        mean, var = running_mean.view(shape), running_var.view(shape)  # type: ignore[union-attr]
    rstd = (var + eps).rsqrt()
    hat = (input - mean) * rstd
    scale = None if weight is None else weight.view(shape)
    return (
        gradient(grad, hat, rstd, scale, dims, training) if needs[0] else None,
        (grad * hat).sum(dims) if needs[1] else None,
        grad.sum(dims) if needs[2] else None,
    )


_STATS = "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
batch_norm = define(
    f"native_batch_norm({_STATS}float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    doc="Each channel with its mean taken out and divided by its deviation, then scaled; also the statistics.",
    run=_batch_norm,
    grads={"input,weight,bias": _batch_grad},
    differentiable_outputs=(0,),
    method=False,
)


def _check_features(name: str, tensor: Tensor | None, count: int) -> None:
    if tensor is not None and tensor.numel() != count:
        raise RuntimeError(f"{name} should contain {count} elements not {tensor.numel()}")


def _blank(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Any:
    """What an input without elements becomes."""
    out = input.clone() if weight is None else input.clone() * weight.select(0, 0)
    return out if bias is None else out + bias[0]


def _checked_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    if not input._array.size:
        return _blank(input, weight, bias)
    features = input.shape[wrap_dim(1, input._array.ndim)]
    stats = (("running_mean", running_mean), ("running_var", running_var))
    for name, tensor in stats:
        if tensor is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    for name, tensor in (*stats, ("weight", weight), ("bias", bias)):
        _check_features(name, tensor, features)
    if not input.numel():
        return _blank(input, weight, bias)
    return batch_norm.call(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


define(
    f"batch_norm({_STATS}float momentum, float eps, bool cudnn_enabled) -> Tensor",
    doc="Each channel with its mean taken out and divided by its deviation, then scaled.",
    composite=_checked_batch_norm,
    method=False,
)
# With running statistics, and without: the node says which.
define(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    doc="``native_batch_norm`` under the name that says which statistics it writes.",
    run=_batch_norm,
    grads={"input,weight,bias": _batch_grad},
    differentiable_outputs=(0,),
    method=False,
)
_legit_alone = define(
    f"_batch_norm_legit.no_stats({_STATS}float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    doc="``native_batch_norm`` with a node of another name.",
    run=_batch_norm,
    grads={"input,weight,bias": _batch_grad},
    node="NativeBatchNormLegitBackward1",
    differentiable_outputs=(0,),
    method=False,
    function=False,
)
define(
    "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
    "float eps) -> (Tensor, Tensor, Tensor)",
    doc="``native_batch_norm`` without running statistics.",
    composite=lambda input, weight, bias, training, momentum, eps: _legit_alone.call(
        input, weight, bias, None, None, training, momentum, eps
    ),
    method=False,
)


def _instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    count, channels = input.shape[:2]
    flat = input.contiguous().view((1, count * channels, *input.shape[2:]))
    stats = [None if t is None else t.to(input.dtype) for t in (running_mean, running_var)]  # of any dtype here
    parts = [None if t is None else t.repeat(count) for t in (weight, bias, *stats)]
    out = _checked_batch_norm(flat, *parts, use_input_stats, momentum, eps, cudnn_enabled)  # type: ignore[arg-type, call-arg]
    for running, repeated in ((running_mean, parts[2]), (running_var, parts[3])):
        if running is not None and repeated is not None and use_input_stats:
            refuse_overlap(running, ())
            running._array[...] = resolved(repeated).reshape((count, channels)).mean(0)
            bump_version(running)
    return out.view(input.shape)


define(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    doc="Batch norm of every sample by itself.",
    composite=_instance_norm,
    method=False,
)

# ---- RMS norm --------------------------------------------------------------------------------------------------------


def check_normalized(input: Tensor, shape: Ints, weight: Tensor | None, bias: Tensor | None, rms: bool = False) -> None:
    """Raise RuntimeError unless the input ends with the normalised shape and weight and bias have it."""
    sizes = tuple(shape)
    same = (weight is None or weight._array.shape == sizes) and (bias is None or bias._array.shape == sizes)
    if same and sizes and input._array.shape[-len(sizes) :] == sizes:
        return
    wanted = list(sizes)
    if not wanted:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and list(tensor._array.shape) != wanted:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(tensor.shape)} and normalized_shape = {wanted}"
            )
    if list(input._array.shape[-len(wanted) :]) != wanted:
        between = "" if rms else ", "
        stars = between + ", ".join(map(str, wanted))
        raise RuntimeError(
            f"Given normalized_shape={wanted}, expected input with shape [*{stars}], but got input of "
            f"size{list(input.shape)}"
        )


@in_cpp
def _rms_norm(input: Tensor, normalized_shape: Ints, weight: Tensor | None, eps: float | None) -> Any:
    check_normalized(input, normalized_shape, weight, None, rms=True)
    if input.dtype.category < FLOAT:
        raise not_implemented("rms_norm", input.dtype)
    dims = tuple(range(input.dim() - len(normalized_shape), input.dim()))
    small = input.dtype.itemsize == 2 and not input.dtype.is_complex
    wide = input.to(float32) if small else input
    if eps is None:
        eps = float(np.finfo(np.float64 if input.dtype.itemsize == 8 and input.dtype.category == FLOAT
                             or input.dtype.itemsize == 16 else np.float32).eps)  # fmt: skip
    scale = op_call("rsqrt")(op_call("pow.Tensor_Scalar")(wide, 2).mean(dims, True) + eps)
    result = wide.mul(scale) if weight is None else wide.mul(scale).mul(weight)
    kept = suggests_channels_last(input._array.shape, input.strides)
    return (result if kept else result.contiguous()).to(input.dtype)


define(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    doc="The last dims divided by their root mean square, then scaled.",
    composite=_rms_norm,
    samples=[((2, 3, 4), [4], (4,))],
    method=False,
)
