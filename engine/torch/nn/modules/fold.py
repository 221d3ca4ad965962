"""Images as columns of windows, and back."""

from __future__ import annotations

from typing import Any

from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules._function import _AppliedToOne


class Fold(_AppliedToOne):
    """Columns of windows, added up into an image."""

    _function, _passed = F.fold, ("output_size", "kernel_size", "dilation", "padding", "stride")
    _shown = (
        "output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"
    )

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride


class Unfold(_AppliedToOne):
    """The windows of an image as columns."""

    _function, _passed = F.unfold, ("kernel_size", "dilation", "padding", "stride")
    _shown = "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride


named_as("fold", globals())
