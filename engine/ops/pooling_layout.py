"""How pooled tensors lie in memory: which of PyTorch's pooling kernels keep a channels-last input's order.

Windows over two dims keep it, of batches only. Over three dims only the maxima of fixed windows do; averages and
adaptive pooling give their results row by row.
"""

from __future__ import annotations

from stridescope.engine.dispatch.run import laid_out
from stridescope.engine.dtype import dtype
from stridescope.engine.layout import channels_last_strides, is_channels_last, is_contiguous, suggests_channels_last
from stridescope.engine.storage import Array
from stridescope.engine.tensor import Tensor, dense, fresh


def batched(array: Array, dims: int) -> Array:
    """With a batch dim in front."""
    return array if array.ndim == dims + 2 else array[None]


def unbatched(array: Array, like: Tensor) -> Array:
    """Without the batch dim when ``like`` has none."""
    return array if array.ndim == like._array.ndim else array[0]


def channels_last(tensor: Tensor, dims: int) -> bool:
    """Whether a kernel for windows over ``dims`` dims takes the tensor, a batch, for channels last."""
    array = tensor._array
    return array.ndim == dims + 2 and suggests_channels_last(array.shape, tensor.strides)


def flat_channels_last(tensor: Tensor, dims: int) -> bool:
    """:func:`channels_last` of kernels that know it for windows over two dims only."""
    return dims == 2 and channels_last(tensor, 2)


def of_kernel(name: str, last: bool) -> str:
    """The name of the kernel in its errors."""
    return f"{name}_channels_last" if last else name


def volume_channels_last(tensor: Tensor) -> bool:
    """Whether maxima over volumes come out channels last; one volume counts as a batch of one.

    Raises RuntimeError for one volume that would be channels last if it were a batch of images.
    """
    shape, strides = tensor._array.shape, tensor.strides
    if len(shape) == 5:
        return suggests_channels_last(shape, strides)
    if suggests_channels_last(shape, strides):
        raise RuntimeError("Unsupported memory format. Supports only ChannelsLast3d, Contiguous")
    whole = (1, *shape), (shape[0] * strides[0], *strides)
    return not is_contiguous(*whole) and is_channels_last(*whole)


def pooled(array: Array, like: Tensor, last: bool, kind: dtype | None = None) -> Tensor:
    """A pooling's result, of a batch, with as many dims as ``like`` has, in its dtype (or ``kind``) and on its device.

    ``last`` says whether it lies channels last.
    """
    result = unbatched(array, like)
    result = laid_out(result, channels_last_strides(array.shape)[array.ndim - result.ndim :]) if last else dense(result)
    return fresh(result, kind or like.dtype, like.device)
