"""Convolutions: one op with its gradients, and the public functions for 1, 2 and 3 dims and their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.one_device import one_device
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import laid_out, resolved
from stridescope.engine.dtype import BOOL, INTEGER, complex64, dtype, float32, int64
from stridescope.engine.kernels import convolution as kernels
from stridescope.engine.kernels.convolution import Geometry
from stridescope.engine.layout import channels_last_strides, suggests_channels_last
from stridescope.engine.ops.arithmetic import mul_scalar
from stridescope.engine.ops.conv_checks import (
    check_batch,
    check_bias,
    check_kinds,
    check_parts,
    check_places,
    check_shapes,
    expanded,
    goes_to_onednn,
    refuse_empty,
    transposed_sizes,
)
from stridescope.engine.ops.lookup import op_call
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh
from stridescope.engine.warn import internal, warn_once

Ints = Sequence[int]


def formatted(array: Array, *like: Tensor) -> Array:
    """The result in memory of its own: channels last when one of ``like`` is.

    In one dim only what follows the first of them counts, a weight: PyTorch makes an input contiguous there.
    """
    if array.ndim == 3 and array.size and any(_last_in_one_dim(t) for t in like[1:]):
        return laid_out(array, (array.shape[1] * array.shape[2], 1, array.shape[1]))
    if array.ndim in (4, 5) and any(_last(t) for t in like if t._array.ndim == array.ndim):
        return laid_out(array, channels_last_strides(array.shape))
    return dense(array)


def _last(tensor: Tensor) -> bool:
    return suggests_channels_last(tensor._array.shape, tensor.strides)


def _last_in_one_dim(weight: Tensor) -> bool:
    """Whether a weight of one dim is channels last where it is taken for one of two dims."""
    (out, channels, size), (first, second, third) = weight.shape, weight.strides
    strides = (first, second, size * third, third)
    return not weight._array.flags.c_contiguous and suggests_channels_last((out, channels, 1, size), strides)


def _geometry(dims: int, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Geometry:
    step, pad = expanded("stride", stride, dims), expanded("padding", padding, dims)
    return Geometry(step, pad, expanded("dilation", dilation, dims), groups)


def _need_kernel(kind: dtype, how: Geometry, window: Ints, transposed: bool) -> None:
    """Refuse the dtypes for which PyTorch has no kernel, by the name of the kernel that it would take."""
    points = all(n == 1 for n in (*window, *how.stride)) and not any(how.padding)
    dims = max(len(how.stride), 2)
    dilated = any(d != 1 for d in how.dilation)
    if kind.category == BOOL or (kind.category == INTEGER and kind is not int64 and (transposed or dilated)):
        plain = f"slow_conv{dims}d_cpu" if dims < 3 or points else "compute_columns3d"
        label = f"slow_conv_transpose{dims}d_out_cpu" if transposed else "slow_conv_dilated<>" if dilated else plain
        raise not_implemented(label, kind)


def _run(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Tensor:
    dims = weight.dim() - 2
    if dims < 1:
        raise RuntimeError("weight should have at least three dimensions")
    output_padding = expanded("output_padding", output_padding, dims)
    how = _geometry(dims, stride, padding, dilation, groups)
    check_shapes(input, weight, bias, how, transposed, output_padding)
    check_places(input, weight, bias)
    check_bias(input, bias, transposed)
    _need_kernel(input.dtype, how, weight._array.shape[2:], transposed)
    check_kinds(input, weight, bias, groups)
    if transposed and not weight._array.size:
        refuse_empty(input, weight, groups)
    array, matrix = resolved(input), resolved(weight)
    if transposed:
        sizes = transposed_sizes(array.shape[2:], matrix.shape[2:], how, output_padding)
        result = kernels.backward_input(array, matrix, sizes, how)
        if bias is not None:
            result = (result + resolved(bias).reshape((-1, *(1,) * dims))).astype(result.dtype, copy=False)
    else:
        result = kernels.forward(array, matrix, how, None if bias is None else resolved(bias))
    return fresh(formatted(result, *_laid_like(input, weight, groups)), input.dtype, one_device((input, weight, bias)))


def _laid_like(input: Tensor, weight: Tensor, groups: int) -> tuple[Tensor, ...]:
    """What results are laid out like; of three dims PyTorch's plain kernels, those without oneDNN, know one layout."""
    plain = input.dtype not in (float32, complex64) or not goes_to_onednn(input, weight, groups)
    return () if weight._array.ndim == 5 and plain else (input, weight)


def _run_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Ints | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Any, ...]:
    dims = weight.dim() - 2
    how = _geometry(dims, stride, padding, dilation, groups)
    grad, array, matrix = resolved(grad_output), resolved(input), resolved(weight)
    found: list[Array | None] = [None, None, None]
    if output_mask[0]:
        found[0] = kernels.forward(grad, matrix, how) if transposed else kernels.backward_input(
            grad, matrix, array.shape[2:], how)  # fmt: skip
        if transposed:  # output padding may leave positions that no input reaches
            found[0] = found[0][(..., *(slice(0, n) for n in array.shape[2:]))]  # type: ignore[arg-type, index]
    if output_mask[1]:
        pair = (array, grad) if transposed else (grad, array)
        found[1] = kernels.backward_weight(*pair, matrix.shape[2:], how)
    if output_mask[2]:
        found[2] = kernels.backward_bias(grad, how if not transposed else how._replace(dilation=(1,) * dims))
    both = _laid_like(input, weight, groups)
    like = (both if dims > 1 else (input,), both, ())
    return tuple(
        None if a is None else fresh(formatted(a, *keep), input.dtype, input.device)
        for a, keep in zip(found, like, strict=True)
    )


def _second(
    grads: Any,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> tuple[Any, ...]:
    """The double backward: every part is a convolution, or a gradient of one, again."""
    first, second, third = (*grads, None, None, None)[:3]
    how = (stride, padding, dilation, transposed, output_padding, groups)
    outer: Any = None
    if first is not None:
        outer = convolution.call(first, weight, None, *how)
    if second is not None:
        part = convolution.call(input, second, None, *how)
        outer = part if outer is None else outer + part
    if third is not None:
        part = third.reshape((1, -1, *(1,) * (input.dim() - 2))).expand(grad_output.shape)
        outer = part if outer is None else outer + part
    into_input = into_weight = None
    if second is not None:
        into_input = backward.call(grad_output, input, second, None, *how, (True, False, False))[0]
    if first is not None:
        found = backward.call(grad_output, first, weight, None, *how, (False, True, False))[1]
        into_weight = found.transpose(0, 1).contiguous().transpose(0, 1)  # PyTorch convolves with both of these swapped
    return outer, into_input, into_weight


backward = define(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    doc="The gradients of a convolution's input, weight and bias.",
    run=_run_backward,
    grads={"grad_output,input,weight": _second},
    method=False,
    function=False,
)


def _first(
    grad: Tensor,
    needs: Sequence[bool],
    input: Tensor,
    weight: Tensor,
    bias_sym_sizes_opt: Ints | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Any:
    how = (stride, padding, dilation, transposed, output_padding, groups)
    return backward.call(grad, input, weight, bias_sym_sizes_opt, *how, tuple(needs))


convolution = define(
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    doc="Windows of the input times the weight: every convolution, transposed or not.",
    run=_run,
    grads={"input,weight,bias": _first},
    method=False,
)


def _parts(tensor: Tensor) -> tuple[Any, Any]:
    pair = op_call("view_as_real")(tensor.resolve_conj())
    return pair.select(-1, 0), pair.select(-1, 1)


def convolved(input: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Any:
    """``convolution``, by three real ones when the numbers are complex."""
    if not input.dtype.is_complex:
        return convolution.call(input, weight, bias, *how)
    check_parts(input, weight, bias, how[3])
    (real, imag), (w_real, w_imag) = _parts(input), _parts(weight)
    b_real, b_imag = (None, None) if bias is None else _parts(bias)
    a = convolution.call(real, w_real, b_real, *how)
    b = convolution.call(imag, w_imag, None, *how)
    c = convolution.call(real + imag, w_real + w_imag, None if bias is None else b_real + b_imag, *how)  # type: ignore[operator]
    return a - b + mul_scalar.call(c - a - b, 1j)


def _same(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, dilation: Ints, groups: int) -> Any:
    """Padding so that the result is as large as the input; an odd amount is padded at the end first."""
    dims = weight.dim() - 2
    if weight.dim() != input.dim():
        raise RuntimeError(
            f"Expected {weight.dim()}-dimensional input for {weight.dim()}-dimensional weight{list(weight.shape)}, "
            "but got "
            f"{input.dim()}-dimensional input of size {list(input.shape)} instead"
        )
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    dilation = expanded("dilation", dilation, dims)
    total = [d * (k - 1) for d, k in zip(dilation, weight._array.shape[2:], strict=True)]
    low, high = [t // 2 for t in total], [t - t // 2 for t in total]
    if low == high:
        return convolved(input, weight, bias, stride, low, dilation, False, (0,) * dims, groups)
    if groups <= 0:  # refused before anything is said of the padding
        return convolved(input, weight, bias, stride, low, dilation, False, (0,) * dims, groups)
    warn_once(
        internal(
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the "
            "input be created",
            "aten/src/ATen/native/Convolution.cpp:1101",
        )
    )
    extra: list[int] = []
    for a, b in zip(reversed(low), reversed(high), strict=True):
        extra.extend((0, b - a))
    wide = op_call("constant_pad_nd")(input, tuple(extra), 0)
    return convolved(wide, weight, bias, stride, low, dilation, False, (0,) * dims, groups)


def _plain(dims: int) -> Any:
    def run(
        input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Any, dilation: Ints, groups: int
    ) -> Any:
        input, batched = check_batch(input, dims, f"conv{dims}d")
        if padding == "same":
            output = _same(input, weight, bias, stride, dilation, groups)
        elif padding == "valid":
            output = convolved(input, weight, bias, stride, (0,) * dims, dilation, False, (0,) * dims, groups)
        elif isinstance(padding, str):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        else:
            output = convolved(input, weight, bias, stride, padding, dilation, False, (0,) * dims, groups)
        return output if batched else output.squeeze(0)

    return run


def _transposed(dims: int) -> Any:
    def run(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: Ints,
        padding: Ints,
        output_padding: Ints,
        groups: int,
        dilation: Ints,
    ) -> Any:
        input, batched = check_batch(input, dims, f"conv_transpose{dims}d")
        output = convolved(input, weight, bias, stride, padding, dilation, True, output_padding, groups)
        return output if batched else output.squeeze(0)

    return run


def _define(dims: int) -> None:
    start = "(Tensor input, Tensor weight, Tensor? bias=None, "
    sizes = {1: (2, 3, 8), 2: (2, 3, 6, 6), 3: (1, 2, 4, 4, 4)}[dims]
    weights = (4, sizes[1], *(3,) * dims)
    doc = f"Convolution over {dims} dim{'s' * (dims > 1)}: windows of the input times the weight."
    for overload, padding in (("", f"SymInt[{dims}] padding=0"), (".padding", 'str padding="valid"')):
        define(
            f"conv{dims}d{overload}{start}SymInt[{dims}] stride=1, {padding}, SymInt[{dims}] dilation=1, "
            "SymInt groups=1) -> Tensor",
            doc=doc,
            composite=_plain(dims),
            samples=[(sizes, weights, (4,))] if not overload else (),
            method=False,
        )
    define(
        f"conv_transpose{dims}d{'.input' if dims > 1 else ''}{start}SymInt[{dims}] stride=1, SymInt[{dims}] padding=0, "
        f"SymInt[{dims}] output_padding=0, SymInt groups=1, SymInt[{dims}] dilation=1) -> Tensor",
        doc=f"Transposed convolution over {dims} dim{'s' * (dims > 1)}: the gradient of a convolution's input.",
        composite=_transposed(dims),
        samples=[(sizes, (sizes[1], 4, *(3,) * dims), (4,))],
        method=False,
    )


for _dims in (1, 2, 3):
    _define(_dims)
