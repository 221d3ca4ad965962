"""Pooling layers."""

from __future__ import annotations

from typing import Any, ClassVar

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as, numbers
from stridescope.engine.torch.nn.modules._function import Applied


class _MaxPoolNd(Applied):
    """The maximum of each window."""

    shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"

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
    passed = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")  # type: ignore[assignment]

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


class _Adaptive(Applied):
    """Pooling to a given size."""

    passed, shown = ("output_size",), "output_size={output_size}"

    def __init__(self, output_size: Any) -> None:
        super().__init__(output_size=output_size)


class _AdaptiveMax(Applied):
    """Maximum pooling to a given size."""

    passed, shown = ("output_size", "return_indices"), "output_size={output_size}"

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size=output_size, return_indices=return_indices)


class AdaptiveAvgPool1d(_Adaptive):
    """Averages of as many windows of a sequence as asked for."""

    function = F.adaptive_avg_pool1d


class AdaptiveAvgPool2d(_Adaptive):
    """Averages of as many windows of an image as asked for."""

    function = F.adaptive_avg_pool2d


class AdaptiveAvgPool3d(_Adaptive):
    """Averages of as many windows of a volume as asked for."""

    function = F.adaptive_avg_pool3d


class AdaptiveMaxPool1d(_AdaptiveMax):
    """Maxima of as many windows of a sequence as asked for."""

    function = F.adaptive_max_pool1d


class AdaptiveMaxPool2d(_AdaptiveMax):
    """Maxima of as many windows of an image as asked for."""

    function = F.adaptive_max_pool2d


class AdaptiveMaxPool3d(_AdaptiveMax):
    """Maxima of as many windows of a volume as asked for."""

    function = F.adaptive_max_pool3d


class _LPPool(Applied):
    """The power sum of each window."""

    passed = ("norm_type", "kernel_size", "stride", "ceil_mode")
    shown = "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}"

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__(norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)

    def forward(self, input: Tensor) -> Any:
        """Call lp_pool."""
        return type(self).function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPool):
    """The power sum of each window of a sequence."""

    function = F.lp_pool1d


class LPPool2d(_LPPool):
    """The power sum of each window of an image."""

    function = F.lp_pool2d


class LPPool3d(_LPPool):
    """The power sum of each window of a volume."""

    function = F.lp_pool3d


class _FractionalMax(Applied):
    """Maxima of windows whose places are drawn anew in every call; raises ValueError for bad sizes."""

    passed = ("kernel_size", "output_size", "output_ratio", "return_indices", "_random_samples")
    dims: ClassVar[int]

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        ratio = None if output_ratio is None else numbers(output_ratio, self.dims)
        if ratio is not None and not all(0 < part < 1 for part in ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        super().__init__(
            kernel_size=numbers(kernel_size, self.dims),
            return_indices=return_indices,
            output_size=None if output_size is None else numbers(output_size, self.dims),
            output_ratio=ratio,
        )
        self.register_buffer("_random_samples", _random_samples)


class FractionalMaxPool2d(_FractionalMax):
    """Maxima of randomly placed windows of an image."""

    dims, function = 2, F.fractional_max_pool2d


class FractionalMaxPool3d(_FractionalMax):
    """Maxima of randomly placed windows of a volume."""

    dims, function = 3, F.fractional_max_pool3d


class _MaxUnpool(Applied):
    """The elements put where the maxima stood."""

    shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
    dims: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        step = kernel_size if stride is None else stride
        super().__init__(
            kernel_size=numbers(kernel_size, self.dims),
            stride=numbers(step, self.dims),
            padding=numbers(padding, self.dims),
        )

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Any:
        """Call max_unpool."""
        return type(self).function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """The inverse of MaxPool1d."""

    dims, function = 1, F.max_unpool1d


class MaxUnpool2d(_MaxUnpool):
    """The inverse of MaxPool2d."""

    dims, function = 2, F.max_unpool2d


class MaxUnpool3d(_MaxUnpool):
    """The inverse of MaxPool3d."""

    dims, function = 3, F.max_unpool3d


named_as("pooling", globals())
