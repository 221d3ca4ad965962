"""Rearranging pixels and channels, and images as columns of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stridescope.engine.dispatch.elementwise import not_implemented
from stridescope.engine.dispatch.op import define
from stridescope.engine.dispatch.run import resolved
from stridescope.engine.dtype import INTEGER
from stridescope.engine.kernels import convolution as kernels
from stridescope.engine.kernels.convolution import Geometry
from stridescope.engine.layout import suggests_channels_last, wrap_dim
from stridescope.engine.ops.conv import formatted
from stridescope.engine.tensor import Tensor, dense, fresh

NAMESPACE = "torch._C._nn"
Ints = Sequence[int]


def _shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    r, shape = upscale_factor, list(self.shape)
    if len(shape) < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            "but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    _need_format(self)
    n = len(lead)
    array = resolved(self).reshape((*lead, c // (r * r), r, r, h, w))
    moved = array.transpose((*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return _made(moved.reshape((*lead, c // (r * r), h * r, w * r)), self)


def _unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    r, shape = downscale_factor, list(self.shape)
    if len(shape) < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = shape
    for name, size, place in (("height", h, -2), ("width", w, -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({place})={size} "
                "is "
                f"not divisible by {r}"
            )
    if not self._array.size:  # PyTorch gives what has no elements back in its own shape
        return _made(resolved(self), self)
    _need_format(self)
    n = len(lead)
    array = resolved(self).reshape((*lead, c, h // r, r, w // r, r))
    moved = array.transpose((*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return _made(moved.reshape((*lead, c * r * r, h // r, w // r)), self)


def _need_format(self: Tensor) -> None:
    """Refuse channels_last_3d, for which PyTorch has no kernel."""
    if self._array.ndim == 5 and suggests_channels_last(self._array.shape, self.strides):
        raise RuntimeError("Unsupported memory format. Supports only ChannelsLast, Contiguous")


def _made(array: Any, like: Tensor) -> Tensor:
    import numpy as np

    shared = np.may_share_memory(array, like._array) or not array.flags.writeable  # windows are not to be written
    array = np.array(array) if shared else array
    return fresh(formatted(array, like) if array.ndim in (4, 5) else dense(array), like.dtype, like.device)


shuffle = define(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    doc="Groups of channels become blocks of pixels.",
    run=_shuffle,
    grads={"self": lambda grad, upscale_factor: unshuffle.call(grad, upscale_factor)},  # type: ignore[has-type]
    samples=[((1, 4, 2, 2), 2)],
    method=False,
)
unshuffle = define(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    doc="Blocks of pixels become groups of channels.",
    run=_unshuffle,
    grads={"self": lambda grad, downscale_factor: shuffle.call(grad, downscale_factor)},
    samples=[((1, 1, 4, 4), 2)],
    method=False,
)


def _channels(self: Tensor, groups: int) -> Tensor:
    shape = list(self.shape)
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {shape}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    array = resolved(self).reshape((shape[0], groups, shape[1] // groups, *shape[2:]))
    return _made(array.swapaxes(1, 2).reshape(shape), self)


channels = define(
    "channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    doc="Channels of different groups, interleaved.",
    run=_channels,
    grads={"self": lambda grad, groups: channels.call(grad, grad.shape[1] // groups)},  # type: ignore[has-type]
    samples=[((1, 4, 2, 2), 2)],
    method=False,
)

# ---- windows as columns ----------------------------------------------------------------------------------------------


def _geometry(dilation: Ints, padding: Ints, stride: Ints) -> Geometry:
    return Geometry(tuple(stride), tuple(padding), tuple(dilation), 1)


def _check_numbers(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> None:
    named = (("kernel", kernel), ("stride", stride), ("dilation", dilation))
    for name, values in named:
        if any(v <= 0 for v in values):
            full = "kernel size" if name == "kernel" else name
            short = "kernel" if name == "kernel" else name
            raise RuntimeError(
                f"{full} should be greater than zero, but got {short}_height: {values[0]} {short}_width: {values[1]}"
            )
    if any(p < 0 for p in padding):
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")


def _need_blocks(kernel: str, tensor: Tensor) -> None:
    """Refuse integers: PyTorch cuts out blocks of floating, complex and bool tensors only."""
    if tensor.dtype.category == INTEGER:
        raise not_implemented(kernel, tensor.dtype)


def _im2col(self: Tensor, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
    for name, values in (
        ("kernel_size", kernel_size),
        ("dilation", dilation),
        ("padding", padding),
        ("stride", stride),
    ):
        if len(values) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    _check_numbers(kernel_size, dilation, padding, stride)
    shape = list(self.shape)
    for dim in (1, 2):  # as far as PyTorch asks for them
        if not shape[wrap_dim(dim, len(shape), scalar=False)]:
            break
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {shape}"
        )
    how = _geometry(dilation, padding, stride)
    out = kernels.output_sizes(shape[-2:], kernel_size, how)
    if any(n < 1 for n in out):
        raise RuntimeError(
            f"Given input with spatial size ({shape[-2]}, {shape[-1]}), kernel_size=({kernel_size[0]}, "
            f"{kernel_size[1]}), dilation=({dilation[0]}, {dilation[1]}), padding=({padding[0]}, {padding[1]}), "
            f"calculated shape of the array of sliding blocks as ({out[0]}, {out[1]}), but its components must be at "
            "least one."
        )
    _need_blocks("im2col_out_cpu", self)
    array = resolved(self) if len(shape) == 4 else resolved(self)[None]
    parts = kernels.columns(array, kernel_size, out, how)[:, 0]
    return _made(parts if len(shape) == 4 else parts[0], self)


def _col2im(self: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
    _check_numbers(kernel_size, dilation, padding, stride)
    shape = list(self.shape)
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {shape}"
        )
    planes, blocks = shape[-2:]
    window = kernel_size[0] * kernel_size[1]
    if planes % window:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={planes} and kernel_size=({kernel_size[0]}, {kernel_size[1]})."
        )
    _need_blocks("col2im_out_cpu", self)
    how = _geometry(dilation, padding, stride)
    out = kernels.output_sizes(output_size, kernel_size, how)
    if out[0] * out[1] != blocks:
        raise RuntimeError(
            f"Given output_size=({output_size[0]}, {output_size[1]}), kernel_size=({kernel_size[0]}, "
            f"{kernel_size[1]}), dilation=({dilation[0]}, {dilation[1]}), padding=({padding[0]}, {padding[1]}), "
            f"stride=({stride[0]}, {stride[1]}), expected size of input's dimension 2 to match the calculated number "
            "of "
            f"sliding blocks {out[0]} * {out[1]} = {out[0] * out[1]}, but got input.size(2)={blocks}."
        )
    array = resolved(self) if len(shape) == 3 else resolved(self)[None]
    result = kernels.fold(array, kernel_size, output_size, how)
    return _made(result if len(shape) == 3 else result[0], self)


im2col = define(
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    doc="The windows of an image as columns.",
    run=_im2col,
    grads={
        "self": lambda grad, self_sym_argsize_minus_2, self_sym_argsize_minus_1, kernel_size, dilation, padding, stride: (  # noqa: E501
            col2im.call(  # type: ignore[has-type]
                grad, (self_sym_argsize_minus_2, self_sym_argsize_minus_1), kernel_size, dilation, padding, stride
            )
        )
    },
    samples=[((1, 2, 4, 4), [2], [1], [0], [1])],
    method=False,
    namespace=NAMESPACE,
)
col2im = define(
    "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> "
    "Tensor",
    doc="Columns of windows, added up into an image.",
    run=_col2im,
    grads={
        "self": lambda grad, kernel_size, dilation, padding, stride: im2col.call(
            grad, kernel_size, dilation, padding, stride
        )
    },
    method=False,
    namespace=NAMESPACE,
)
