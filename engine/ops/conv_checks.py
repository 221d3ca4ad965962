"""What a convolution refuses, with PyTorch's texts (``aten/src/ATen/native/Convolution.cpp``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

from stridescope.engine.dtype import can_cast, complex64, cpp_name, float32, promote_types, scalar_name, type_name
from stridescope.engine.kernels.convolution import Geometry
from stridescope.engine.tensor import Tensor

Ints = Sequence[int]


def expanded(name: str, values: Ints, dims: int) -> Ints:
    """One number stands for every dim."""
    if len(values) == 1:
        return (values[0],) * dims
    if len(values) != dims:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match the convolution "
            f"dimensions, but got {name}={list(values)}"
        )
    return values


def check_batch(input: Tensor, dims: int, name: str) -> tuple[Tensor, bool]:
    """The input with a batch dim, and whether it had one; raises RuntimeError for other numbers of dims."""
    if input._array.ndim == dims + 2:
        return input, True
    if input._array.ndim != dims + 1:
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    return input.unsqueeze(0), False


def check_places(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Input, weight and bias must have one device."""
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.device != input.device:
            _refuse_type(input, name, other, input.type(), other.type())


def _refuse_type(input: Tensor, name: str, other: Tensor, *types: str, more: str = "") -> NoReturn:
    own, its = types or (type_name(tensor.dtype, tensor.device.type) for tensor in (input, other))
    raise RuntimeError(f"Input type ({own}) and {name} type ({its}) should be the same{more}")


def check_parts(input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> None:
    """Complex numbers must all be of one dtype: they are convolved in parts."""
    check_places(input, weight, bias)
    check_bias(input, bias, transposed)
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype is not input.dtype:
            _refuse_type(input, name, other)


def check_bias(input: Tensor, bias: Tensor | None, transposed: bool) -> None:
    """The bias must have the input's dtype; that of a transposed convolution is added as any tensor is."""
    if bias is not None and bias.dtype is not input.dtype and not transposed:
        _refuse_type(input, "bias", bias, cpp_name(input.dtype), cpp_name(bias.dtype))


def check_kinds(input: Tensor, weight: Tensor, bias: Tensor | None, groups: int) -> None:
    """The weight must have the input's dtype: oneDNN says so in other words than the plain kernel."""
    on_cpu = input.device.type == "cpu"
    quick = on_cpu and input.dtype is float32 and goes_to_onednn(input, weight, groups)
    for name, other in (("weight", weight), ("bias", bias)):
        if other is None or other.dtype is input.dtype:
            continue
        if quick or not on_cpu:
            dense = f" or input should be a MKLDNN tensor and {name} is a dense tensor" if quick else ""
            _refuse_type(input, name, other, more=dense)
        kinds = scalar_name(input.dtype), scalar_name(other.dtype)
        if name == "weight":
            raise RuntimeError(f"expected scalar type {kinds[0]} but found {kinds[1]}")
        found = promote_types(other.dtype, input.dtype)
        if not can_cast(found, input.dtype):
            raise RuntimeError(f"result type {scalar_name(found)} can't be cast to the desired output type {kinds[0]}")


def check_shapes(
    input: Tensor, weight: Tensor, bias: Tensor | None, how: Geometry, transposed: bool, output_padding: Ints
) -> None:
    """Raise RuntimeError for sizes and numbers that do not fit each other."""
    _check_numbers(how, output_padding)
    shape, weights, groups = list(input.shape), list(weight.shape), how.groups
    if len(shape) != len(weights):
        raise RuntimeError(
            f"Expected {len(weights)}-dimensional input for {len(weights)}-dimensional weight {weights}, but got "
            f"{len(shape)}-dimensional input of size {shape} instead"
        )
    if weights[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{weights} instead"
        )
    if weights[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            "size "
            f"[{weights}] instead"
        )
    if transposed:
        _check_transposed(shape, weights, bias, groups)
    else:
        _check_channels(shape, weights, bias, groups)
        _check_kernel(shape, weights, how)


def _check_numbers(how: Geometry, output_padding: Ints) -> None:
    if any(p < 0 for p in how.padding):
        raise RuntimeError("negative padding is not supported")
    if any(p < 0 for p in output_padding):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in how.stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in how.dilation):
        raise RuntimeError("dilation should be greater than zero")
    if how.groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _check_channels(shape: Ints, weights: Ints, bias: Tensor | None, groups: int) -> None:
    wanted = weights[1] * groups
    if shape[1] != wanted:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {weights}, expected input{shape} to have {wanted} channels, but "
            "got "
            f"{shape[1]} channels instead"
        )
    if bias is not None and tuple(bias.shape) != (weights[0],):
        raise RuntimeError(
            f"Given weight of size {weights}, expected bias to be 1-dimensional with {weights[0]} elements, but got "
            "bias "
            f"of size {list(bias.shape)} instead"
        )


def _check_kernel(shape: Ints, weights: Ints, how: Geometry) -> None:
    sizes = [s + 2 * p for s, p in zip(shape[2:], how.padding, strict=True)]
    kernel = [d * (k - 1) + 1 for k, d in zip(weights[2:], how.dilation, strict=True)]
    if any(s < k for s, k in zip(sizes, kernel, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, sizes))}). Kernel size: "
            f"({' x '.join(map(str, kernel))}). Kernel size can't be greater than actual input size"
        )


def _check_transposed(shape: Ints, weights: Ints, bias: Tensor | None, groups: int) -> None:
    if shape[1] != weights[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {weights}, expected input{shape} to have {weights[0]} channels, but "
            "got "
            f"{shape[1]} channels instead"
        )
    wanted = weights[1] * groups
    if bias is not None and tuple(bias.shape) != (wanted,):
        raise RuntimeError(
            f"Given transposed=1, weight of size {weights}, expected bias to be 1-dimensional with {wanted} "
            "elements, but "
            f"got bias of size {list(bias.shape)} instead"
        )


def transposed_sizes(sizes: Ints, kernel: Ints, how: Geometry, output_padding: Ints) -> tuple[int, ...]:
    """The sizes of a transposed convolution's result; raises RuntimeError when one is not positive."""
    found = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, k, s, p, d, o in zip(sizes, kernel, how.stride, how.padding, how.dilation, output_padding, strict=True)
    )
    for extra, stride, dilation in zip(output_padding, how.stride, how.dilation, strict=True):
        if extra >= stride and extra >= dilation:
            names = ("height", "width", "depth")
            pairs = " ".join(f"output_padding_{n}: {v}" for n, v in zip(names, output_padding, strict=False))
            raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {pairs}")
    return found


def goes_to_onednn(input: Tensor, weight: Tensor, groups: int) -> bool:
    """Whether PyTorch finds a single-precision convolution worth the way to oneDNN."""
    many = input.shape[0] > 1 or groups > 1 or math.prod(input.shape[:4]) > 20480
    return many or (weight._array.ndim > 3 and min(weight.shape[-2:]) > 3)


def refuse_empty(input: Tensor, weight: Tensor, groups: int) -> NoReturn:
    """Raise what a transposed convolution to no channels meets: oneDNN, or the plain kernel that sees one group."""
    if not input.shape[0]:
        raise IndexError("select(): index 0 out of range for tensor of size [0] at dimension 0")
    if input.dtype in (float32, complex64) and goes_to_onednn(input, weight, groups):
        raise RuntimeError(
            "could not create a primitive descriptor for the deconvolution forward propagation primitive. Run workload "
            "with environment variable ONEDNN_VERBOSE=all to get additional diagnostic information."
        )
    first, *rest = weight.shape
    shape = [first // groups, *rest] if len(rest) != 2 else [first // groups, rest[0], 1, rest[1]]
    if len(shape) == 4:
        raise RuntimeError(f"non-empty 2D or 4D weight tensor expected, but got: {shape}")
    raise RuntimeError(
        "non-empty 5D (n_output_plane x n_input_plane x kernel_depth x kernel_height x kernel_width) tensor expected "
        f"for weight, but got: {shape}"
    )
