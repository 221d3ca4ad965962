"""What a tensor answers about itself: sizes, strides, dtype, device, autograd state; and ``backward``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stridescope.engine.autograd import leaf
from stridescope.engine.autograd.api import backward
from stridescope.engine.autograd.history import mark_inference
from stridescope.engine.autograd.lockstep import batch_of
from stridescope.engine.autograd.modes import grad_mode
from stridescope.engine.dispatch.converters import is_number
from stridescope.engine.dispatch.invalid_arguments import type_name
from stridescope.engine.dtype import FLOAT, scalar_name
from stridescope.engine.layout import (
    channels_last,
    channels_last_3d,
    is_channels_last,
    is_contiguous,
    is_non_overlapping_and_dense,
    memory_format,
    strided,
    wrap_dim,
)
from stridescope.engine.ops import (
    from_data,
    gpu_memory,
    old_types,
    resizing,
    selecting,
    storage_objects,
    strided_only,
    subclasses,
    to_python,
)
from stridescope.engine.tensor import Size, Tensor, alias, moved
from stridescope.engine.warn import internal, warn, warn_once


def _size(self: Tensor, dim: int | None = None) -> Any:
    return Size(self._array.shape) if dim is None else self._array.shape[wrap_dim(dim, self._array.ndim, False)]


def _stride(self: Tensor, dim: int | None = None) -> Any:
    return self.strides if dim is None else self.strides[wrap_dim(dim, self._array.ndim, False)]


def _is_contiguous(self: Tensor, memory_format: memory_format | None = None) -> bool:
    sizes = self._array.shape
    if memory_format is channels_last or memory_format is channels_last_3d:
        dims = 4 if memory_format is channels_last else 5
        return len(sizes) == dims and is_channels_last(sizes, self.strides)
    return is_contiguous(sizes, self.strides)


def _data_ptr(self: Tensor) -> int:
    if not self._array.size or self.device.type == "meta":
        return 0
    return self.storage_.address + self.offset * self._array.itemsize


def _dim_order(self: Tensor) -> tuple[int, ...]:
    strides = self.strides
    return tuple(sorted(range(len(strides)), key=lambda d: (-strides[d], d)))


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if not self._array.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def _contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, Tensor) or is_number(element):
        return bool((element == self).any().item())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )  # fmt: skip


def _get_grad(self: Tensor) -> Tensor | None:
    if self._node is not None and not self._retains_grad and self._grad is None:
        warn(
            internal(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for "
                "a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by "
                "mistake, make sure you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for "
                "more information.",
                "build/aten/src/ATen/core/TensorBody.h:493",
            )
        )
    return self._grad  # type: ignore[no-any-return]


def _set_grad(self: Tensor, value: Any) -> None:
    if value is not None:
        _check_grad(self, value)
    leaf.set_grad(self, value)


def _check_grad(self: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type_name(value)}")
    if value is self:
        raise RuntimeError("can't assign Variable as its own grad")
    if value.dtype is not self.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{_c_name(value)}' to a tensor with grad_dtype "
            f"'{scalar_name(self.dtype)}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
            "dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. "
            "Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream "
            "systems that assume they match."
        )
    if value.device is not self.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type "
            f"'{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if value._array.shape != self._array.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value._array.shape)}' to a tensor of size "
            f"'{list(self._array.shape)}'. Please ensure that the gradient and the tensor are the same size"
        )


def _c_name(tensor: Tensor) -> str:
    """How a caffe2 TypeMeta names the dtype."""
    names = {"float32": "float", "float64": "double", "int64": "long", "int32": "int", "int16": "short"}
    return names.get(tensor.dtype.name, tensor.dtype.name)


def _data(self: Tensor) -> Tensor:
    """The same storage and layout, without history and with a version counter of its own."""
    if batch_of(self) is not None:
        raise RuntimeError("accessing `data` under vmap transform is not allowed")
    if grad_mode.shown is not None:
        return grad_mode.shown.call("detach", (self,), {}, lambda: _own_alias(self))  # type: ignore[no-any-return]
    return _own_alias(self)


def _own_alias(self: Tensor) -> Tensor:
    result = alias(self)
    result._version_counter = None
    if self._inference:
        mark_inference(result, "detached")
    return result


def _set_data(self: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type_name(value)}")
    if self._requires_grad and value.dtype.category < FLOAT:
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    self.storage_ = value.storage_
    self._array, self.dtype = value._array, value.dtype
    self._empty_offset, self._conj, self._neg = value._empty_offset, value._conj, value._neg
    if self.device is not value.device:
        self.device = value.device
    moved(self)


def _reversed_dims(self: Tensor) -> Tensor:
    if self._array.ndim == 0:
        warn_once(
            internal(
                "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.",
                "aten/src/ATen/native/TensorShape.cpp:4321",
            )
        )
    elif self._array.ndim != 2:
        warn_once(
            internal(
                "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
                "will throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
                "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
                "aten/src/ATen/native/TensorShape.cpp:4314",
            )
        )
    return self.permute(tuple(range(self._array.ndim - 1, -1, -1)))  # type: ignore[no-any-return]


def _identity_once(name: str, line: int, advice: str) -> None:
    text = f"Tensor.{name} is deprecated on 0-D tensors. {advice}"
    warn_once(internal(text, f"aten/src/ATen/native/TensorShape.cpp:{line}"))


def _matrix_transpose(self: Tensor) -> Tensor:
    ndim = self._array.ndim
    if ndim == 0:
        _identity_once("mT", 4373, "This function is the identity in these cases.")
        return self
    if ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {ndim}-D tensor."
        )  # fmt: skip
    return self.transpose(-2, -1)  # type: ignore[no-any-return]


def _conjugated(self: Tensor) -> Tensor:
    return self.conj() if self.dtype.is_complex else self


def _hermitian(self: Tensor) -> Tensor:
    ndim = self._array.ndim
    if ndim == 0:
        _identity_once("H", 4335, "Consider using x.conj().")
        return _conjugated(self)
    if ndim != 2:
        more = ". For batches of matrices, consider using tensor.mH" if ndim > 2 else "."
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor{more}")
    return _conjugated(self.transpose(-2, -1))


def _matrix_hermitian(self: Tensor) -> Tensor:
    ndim = self._array.ndim
    if ndim == 0:
        _identity_once("mH", 4382, "Consider using x.conj().")
        return _conjugated(self)
    if ndim < 2:
        raise RuntimeError(f"tensor.mH is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
    return _conjugated(self.transpose(-2, -1))


def _is_nonzero(self: Tensor) -> bool:
    if self._array.size != 1:
        few = "no values" if not self._array.size else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {few} is ambiguous")
    return bool(self.item())


def _is_set_to(self: Tensor, tensor: Tensor) -> bool:
    return self.storage_ is tensor.storage_ and self.layout_ == tensor.layout_ and self.dtype is tensor.dtype


def _get_device(self: Tensor) -> int:
    return -1 if self.device.index is None else self.device.index


def _tensor_dir(self: Tensor) -> list[str]:
    return sorted({*dir(type(self)), *self.__dict__})


METHODS: dict[str, Any] = {
    "size": _size,
    "stride": _stride,
    "dim": lambda self: self._array.ndim,
    "ndimension": lambda self: self._array.ndim,
    "ndim": property(lambda self: self._array.ndim),
    "numel": lambda self: self._array.size,
    "nelement": lambda self: self._array.size,
    "nbytes": property(lambda self: self._array.size * self._array.itemsize),
    "itemsize": property(lambda self: self._array.itemsize),
    "storage_offset": lambda self: self.offset,
    "element_size": lambda self: self._array.itemsize,
    "is_contiguous": _is_contiguous,
    "is_non_overlapping_and_dense": lambda self: is_non_overlapping_and_dense(self._array.shape, self.strides),
    "dim_order": _dim_order,
    "data_ptr": _data_ptr,
    "layout": property(lambda self: strided),
    "__hash__": lambda self: id(self),
    "__iter__": _iterate,
    "__contains__": _contains,
    "__dir__": _tensor_dir,
    "grad": property(_get_grad, _set_grad, lambda self: _set_grad(self, None)),
    "output_nr": property(lambda self: self._output_nr),
    "retains_grad": property(lambda self: self._retains_grad),
    "_base": property(lambda self: self._base_tensor),
    "_is_view": lambda self: self._base_tensor is not None,
    "data": property(_data, _set_data),
    "T": property(_reversed_dims),
    "mT": property(_matrix_transpose),
    "H": property(_hermitian),
    "mH": property(_matrix_hermitian),
    "backward": backward,
    "is_cuda": property(lambda self: self.device.type == "cuda"),
    "is_cpu": property(lambda self: self.device.type == "cpu"),
    "is_meta": property(lambda self: self.device.type == "meta"),
    **dict.fromkeys(
        (
            "is_sparse", "is_quantized", "is_mkldnn", "is_mps", "is_nested", "is_xpu", "is_ipu", "is_xla", "is_hpu",
            "is_maia", "is_mtia", "is_ort", "is_vulkan", "is_sparse_csr",
        ),
        property(lambda self: False),
    ),
    "is_floating_point": lambda self: self.dtype.is_floating_point,
    "is_complex": lambda self: self.dtype.is_complex,
    "is_signed": lambda self: self.dtype.is_signed,
    "is_conj": lambda self: self._conj,
    "is_neg": lambda self: self._neg,
    "is_inference": lambda self: self._inference,
    "is_nonzero": _is_nonzero,
    "is_same_size": lambda self, other: self._array.shape == other._array.shape,
    "is_set_to": _is_set_to,
    "is_shared": lambda self: self.device.type == "cuda",
    "is_distributed": lambda self: False,
    "get_device": _get_device,
    "share_memory_": lambda self: self,
    **gpu_memory.METHODS,
    **leaf.METHODS,
    **from_data.METHODS,
    **old_types.METHODS,
    **resizing.METHODS,
    **selecting.METHODS,
    **strided_only.METHODS,
    **storage_objects.METHODS,
    **subclasses.METHODS,
    **to_python.METHODS,
}  # fmt: skip
