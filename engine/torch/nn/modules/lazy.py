"""Modules that learn the number of their inputs from the first batch that they see."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

from stridescope.engine import torch
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._in_each import in_each, write_out
from stridescope.engine.torch.nn.modules import batchnorm, conv, instancenorm, linear
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.torch.nn.modules.told import look
from stridescope.engine.torch.nn.uninitialized import (
    UninitializedBuffer,
    UninitializedParameter,
    is_lazy,
    materialize_as,
)


class LazyModuleMixin:
    """Makes a module lazy: before its first call ``initialize_parameters`` sees the arguments and gives all shapes.

    After that the module becomes one of ``cls_to_become`` (unless that is None), its hooks are gone.
    """

    cls_to_become: ClassVar[type[Module] | None] = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give all parameters their shapes; a subclass says how."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self: Any) -> bool:
        """Whether some parameter or buffer has no shape yet."""
        return any(map(is_lazy, itertools.chain(self._parameters.values(), self._buffers.values())))

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _lazy_load_hook(self: Any, state_dict: Any, prefix: str, *_: Any) -> None:
        """What is loaded gives uninitialized parameters their shapes."""
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(value) and not is_lazy(given):
                materialize_as(value, given.shape)

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
        look(module)

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )


class LazyLinear(LazyModuleMixin, linear.Linear):
    """A Linear that learns ``in_features`` from its first input."""

    cls_to_become = linear.Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Start the parameters once they have a shape."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``in_features`` from the input."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            materialize_as(self.weight, (self.out_features, self.in_features))
            if self.bias is not None:
                materialize_as(self.bias, (self.out_features,))
            self.reset_parameters()
        if self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from "
                    f"self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution that learns ``in_channels`` from its first input."""

    @in_each
    def __init__(
        self: Any,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device=device, dtype=dtype
        )
        self._start_lazy(out_channels, bias, device, dtype)

    def _start_lazy(self: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(True, device, dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(True, device, dtype)

    def reset_parameters(self: Any) -> None:
        """Start the parameters once they have a shape."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self: Any, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take ``in_channels`` from the input."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._channels_of(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        ends = (self.in_channels, self.out_channels) if self.transposed else (self.out_channels, self.in_channels)
        materialize_as(self.weight, (ends[0], ends[1] // self.groups, *self.kernel_size))
        if self.bias is not None:
            materialize_as(self.bias, (self.out_channels,))
        self.reset_parameters()

    def _channels_of(self: Any, input: Tensor) -> int:
        dims = self._dims + 1
        if input.dim() not in (dims, dims + 1):
            raise RuntimeError(
                f"Expected {dims}D (unbatched) or {dims + 1}D (batched) input to {type(self).__name__}, but got input "
                f"of size: {input.shape}"
            )
        return int(input.shape[input.dim() - dims])


class _LazyConvTranspose(_LazyConvXdMixin):
    """The same of a transposed convolution, which takes its arguments in another order."""

    @in_each
    def __init__(
        self: Any,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super(_LazyConvXdMixin, self).__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._start_lazy(out_channels, bias, device, dtype)


class _LazyNormBase(LazyModuleMixin):
    """A norm that learns ``num_features`` from its first input."""

    def __init__(
        self: Any,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = torch.tensor(0, dtype=torch.long, device=device)

    def reset_parameters(self: Any) -> None:
        """Start the parameters once they have a shape."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self: Any, input: Tensor) -> None:
        """Take ``num_features`` from the input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for name in ("weight", "bias", "running_mean", "running_var"):
            value = getattr(self, name)
            if is_lazy(value):
                materialize_as(value, (self.num_features,))
        self.reset_parameters()


def _lazy(plain: type[Module], mixin: type[LazyModuleMixin], what: str) -> Any:
    """The lazy form of a class."""
    doc = f"A {plain.__name__} that learns ``{what}`` from its first input."
    body = {"cls_to_become": plain, "__doc__": doc, "__module__": plain.__module__}
    made = type(f"Lazy{plain.__name__}", (mixin, plain), body)
    write_out(made)
    return made


LazyConv1d = _lazy(conv.Conv1d, _LazyConvXdMixin, "in_channels")
LazyConv2d = _lazy(conv.Conv2d, _LazyConvXdMixin, "in_channels")
LazyConv3d = _lazy(conv.Conv3d, _LazyConvXdMixin, "in_channels")
LazyConvTranspose1d = _lazy(conv.ConvTranspose1d, _LazyConvTranspose, "in_channels")
LazyConvTranspose2d = _lazy(conv.ConvTranspose2d, _LazyConvTranspose, "in_channels")
LazyConvTranspose3d = _lazy(conv.ConvTranspose3d, _LazyConvTranspose, "in_channels")
LazyBatchNorm1d = _lazy(batchnorm.BatchNorm1d, _LazyNormBase, "num_features")
LazyBatchNorm2d = _lazy(batchnorm.BatchNorm2d, _LazyNormBase, "num_features")
LazyBatchNorm3d = _lazy(batchnorm.BatchNorm3d, _LazyNormBase, "num_features")
LazyInstanceNorm1d = _lazy(instancenorm.InstanceNorm1d, _LazyNormBase, "num_features")
LazyInstanceNorm2d = _lazy(instancenorm.InstanceNorm2d, _LazyNormBase, "num_features")
LazyInstanceNorm3d = _lazy(instancenorm.InstanceNorm3d, _LazyNormBase, "num_features")
LazyModuleMixin.__module__, LazyLinear.__module__ = "torch.nn.modules.lazy", "torch.nn.modules.linear"
LAZY = (
    LazyLinear, LazyConv1d, LazyConv2d, LazyConv3d, LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d,
    LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d, LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d,
)  # fmt: skip
