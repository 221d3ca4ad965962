"""Convolution layers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn import init
from stridescope.engine.torch.nn.modules._factory import named_as, numbers, parameter
from stridescope.engine.torch.nn.modules.module import Module

PADDING_MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """What all convolution layers share: their numbers, parameters and printed form."""

    _dims: ClassVar[int]
    _function: ClassVar[Any]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check(in_channels, out_channels, groups, padding, stride, padding_mode)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel_size
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.transposed, self.output_padding, self.groups = transposed, output_padding, groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._sides()
        shape = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = parameter((*shape, *kernel_size), device, dtype)
        if bias:
            self.bias = parameter((out_channels,), device, dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _sides(self) -> list[int]:
        """The padding as ``pad`` takes it: last dim first, both sides."""
        if not isinstance(self.padding, str):
            return [p for p in reversed(self.padding) for _ in range(2)]
        sides = [0] * (2 * len(self.kernel_size))
        if self.padding == "same":
            for place, (d, k) in enumerate(zip(reversed(self.dilation), reversed(self.kernel_size), strict=True)):
                total = d * (k - 1)
                sides[2 * place : 2 * place + 2] = [total // 2, total - total // 2]
        return sides

    def reset_parameters(self) -> None:
        """Uniform numbers within one over the root of the number of inputs of each output."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Channels and sizes; the rest where it is not the default."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        zeros, ones = (0,) * len(self.dilation), (1,) * len(self.dilation)
        parts = (("padding", self.padding, zeros), ("dilation", self.dilation, ones),
                 ("output_padding", self.output_padding, zeros), ("groups", self.groups, 1))  # fmt: skip
        text += "".join(f", {name}={value}" for name, value, default in parts if value != default)
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        function = type(self)._function
        if self.padding_mode == "zeros":
            return function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)  # type: ignore[no-any-return]
        wide = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return function(wide, weight, bias, self.stride, (0,) * self._dims, self.dilation, self.groups)  # type: ignore[no-any-return]

    @in_each
    def forward(self, input: Tensor) -> Tensor:
        """Call the convolution."""
        return self._conv_forward(input, self.weight, self.bias)


def _check(inputs: int, outputs: int, groups: int, padding: Any, stride: tuple[int, ...], mode: str) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if inputs % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if outputs % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if mode not in PADDING_MODES:
        raise ValueError(f"padding_mode must be one of {PADDING_MODES}, but got padding_mode='{mode}'")


class _Plain(_ConvNd):
    """A convolution that is not transposed."""

    @in_each
    def __init__(
        self,
        in_channels: int,
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
        dims = self._dims
        super().__init__(
            in_channels,
            out_channels,
            numbers(kernel_size, dims),
            numbers(stride, dims),
            padding if isinstance(padding, str) else numbers(padding, dims),
            numbers(dilation, dims),
            False,
            (0,) * dims,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class Conv1d(_Plain):
    """Convolution of sequences."""

    _dims, _function = 1, F.conv1d


class Conv2d(_Plain):
    """Convolution of images."""

    _dims, _function = 2, F.conv2d


class Conv3d(_Plain):
    """Convolution of volumes."""

    _dims, _function = 3, F.conv3d


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution with respect to its input, as a layer."""

    @in_each
    def __init__(
        self,
        in_channels: int,
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
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        dims = self._dims
        super().__init__(
            in_channels,
            out_channels,
            numbers(kernel_size, dims),
            numbers(stride, dims),
            numbers(padding, dims),
            numbers(dilation, dims),
            True,
            numbers(output_padding, dims),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """The padding that makes the result as large as asked; raises ValueError when none does."""
        if output_size is None:
            return numbers(self.output_padding, self._dims)
        dims = self._dims
        given = list(output_size)
        if len(given) == (dims + 2 if input.dim() == dims + 2 else dims + 1):
            given = given[-dims:]
        if len(given) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or "
                f"{dims + (2 if input.dim() == dims + 2 else 1)} elements (got {len(given)})"
            )
        lowest = [
            (input.size(d + input.dim() - dims) - 1) * self.stride[d]
            - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(dims)
        ]
        highest = [low + self.stride[d] - 1 for d, low in enumerate(lowest)]
        if any(not low <= size <= high for low, size, high in zip(lowest, given, highest, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {lowest} to {highest} (for an "
                f"input of {input.size()[2:]})"
            )
        return tuple(size - low for size, low in zip(given, lowest, strict=True))

    @in_each
    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Call the transposed convolution; ``output_size`` chooses among the sizes that the stride leaves open."""
        extra = self._output_padding(input, output_size)
        return type(self)._function(  # type: ignore[no-any-return]
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of sequences."""

    _dims, _function = 1, F.conv_transpose1d


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of images."""

    _dims, _function = 2, F.conv_transpose2d


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of volumes."""

    _dims, _function = 3, F.conv_transpose3d


named_as("conv", globals())
