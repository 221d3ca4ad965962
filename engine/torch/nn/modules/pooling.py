"""Pooling layers."""

from __future__ import annotations

from typing import Any, ClassVar

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as, numbers
from stridescope.engine.torch.nn.modules._function import _Applied, _AppliedToOne


class _MaxPoolNd(_AppliedToOne):
    """The maximum of each window."""

    _shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    @in_each
    def forward(self, input: Tensor) -> Any:
        """Call max_pool."""
        return type(self)._function(
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

    _function = F.max_pool1d


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of an image."""

    _function = F.max_pool2d


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of a volume."""

    _function = F.max_pool3d


class _AvgPoolNd(_AppliedToOne):
    """The average of each window."""

    _shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
    _passed = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")

    @in_each
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override


class AvgPool1d(_AvgPoolNd):
    """The average of each window of a sequence."""

    _function = F.avg_pool1d
    _passed = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")  # type: ignore[assignment]

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

    _function = F.avg_pool2d


class AvgPool3d(_AvgPoolNd):
    """The average of each window of a volume."""

    _function = F.avg_pool3d


class _AdaptiveAvgPoolNd(_AppliedToOne):
    """Pooling to a given size."""

    _passed, _shown = ("output_size",), "output_size={output_size}"

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size


class _AdaptiveMaxPoolNd(_AppliedToOne):
    """Maximum pooling to a given size."""

    _passed, _shown = ("output_size", "return_indices"), "output_size={output_size}"

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Averages of as many windows of a sequence as asked for."""

    _function = F.adaptive_avg_pool1d


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Averages of as many windows of an image as asked for."""

    _function = F.adaptive_avg_pool2d


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Averages of as many windows of a volume as asked for."""

    _function = F.adaptive_avg_pool3d


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of as many windows of a sequence as asked for."""

    _function = F.adaptive_max_pool1d


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of as many windows of an image as asked for."""

    _function = F.adaptive_max_pool2d


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of as many windows of a volume as asked for."""

    _function = F.adaptive_max_pool3d


class _LPPoolNd(_AppliedToOne):
    """The power sum of each window."""

    _passed = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _shown = "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}"

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    @in_each
    def forward(self, input: Tensor) -> Any:
        """Call lp_pool."""
        return type(self)._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """The power sum of each window of a sequence."""

    _function = F.lp_pool1d


class LPPool2d(_LPPoolNd):
    """The power sum of each window of an image."""

    _function = F.lp_pool2d


class LPPool3d(_LPPoolNd):
    """The power sum of each window of a volume."""

    _function = F.lp_pool3d


class _FractionalMax(_AppliedToOne):
    """Maxima of windows whose places are drawn anew in every call; raises ValueError for bad sizes."""

    _passed = ("kernel_size", "output_size", "output_ratio", "return_indices", "_random_samples")
    _dims: ClassVar[int]

    @in_each
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
        ratio = None if output_ratio is None else numbers(output_ratio, self._dims)
        if ratio is not None and not all(0 < part < 1 for part in ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        super().__init__()
        self.kernel_size, self.return_indices = numbers(kernel_size, self._dims), return_indices
        self.output_size = None if output_size is None else numbers(output_size, self._dims)
        self.output_ratio = ratio
        self.register_buffer("_random_samples", _random_samples)


class FractionalMaxPool2d(_FractionalMax):
    """Maxima of randomly placed windows of an image."""

    _dims, _function = 2, F.fractional_max_pool2d


class FractionalMaxPool3d(_FractionalMax):
    """Maxima of randomly placed windows of a volume."""

    _dims, _function = 3, F.fractional_max_pool3d


class _MaxUnpoolNd(_Applied):
    """The elements put where the maxima stood."""

    _shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
    _dims: ClassVar[int]

    @in_each
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        step = kernel_size if stride is None else stride
        super().__init__()
        self.kernel_size, self.stride = numbers(kernel_size, self._dims), numbers(step, self._dims)
        self.padding = numbers(padding, self._dims)

    @in_each
    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Any:
        """Call max_unpool."""
        return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """The inverse of MaxPool1d."""

    _dims, _function = 1, F.max_unpool1d


class MaxUnpool2d(_MaxUnpoolNd):
    """The inverse of MaxPool2d."""

    _dims, _function = 2, F.max_unpool2d


class MaxUnpool3d(_MaxUnpoolNd):
    """The inverse of MaxPool3d."""

    _dims, _function = 3, F.max_unpool3d


named_as("pooling", globals())
