"""Pooling layers."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as, numbers
from stridescope.engine.torch.nn.modules._function import Applied


class _MaxPoolNd(Applied):
    """The maximum of each window."""

    shown = (
        "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"
    )

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            dilation=dilation,
            return_indices=return_indices,
            ceil_mode=ceil_mode,
        )

    def forward(self, input: Tensor) -> Any:
        """Call max_pool."""
        return type(self).function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of a sequence."""

    function = F.max_pool1d


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of an image."""

    function = F.max_pool2d


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of a volume."""

    function = F.max_pool3d


class _AvgPoolNd(Applied):
    """The average of each window."""

    shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
    passed = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            divisor_override=divisor_override,
        )


class AvgPool1d(_AvgPoolNd):
    """The average of each window of a sequence."""

    function = F.avg_pool1d
    passed = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        step = numbers(kernel_size if stride is None else stride, 1)
        super().__init__(numbers(kernel_size, 1), step, numbers(padding, 1), ceil_mode, count_include_pad)
        del self.divisor_override


class AvgPool2d(_AvgPoolNd):
    """The average of each window of an image."""

    function = F.avg_pool2d


class AvgPool3d(_AvgPoolNd):
    """The average of each window of a volume."""

    function = F.avg_pool3d


named_as("pooling", globals())
