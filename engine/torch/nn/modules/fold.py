"""Images as columns of windows, and back."""

from __future__ import annotations

from typing import Any

from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules._function import Applied


class Fold(Applied):
    """Columns of windows, added up into an image."""

    function, passed = F.fold, ("output_size", "kernel_size", "dilation", "padding", "stride")
    shown = (
        "output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"
    )

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(
            output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
        )


class Unfold(Applied):
    """The windows of an image as columns."""

    function, passed = F.unfold, ("kernel_size", "dilation", "padding", "stride")
    shown = "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


named_as("fold", globals())
