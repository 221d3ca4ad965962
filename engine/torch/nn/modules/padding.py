"""Padding layers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules.module import Module


class _Pad(Module):
    """Pads the last ``_dims`` dims in a mode."""

    _dims: ClassVar[int]
    _mode: ClassVar[str]

    @in_each
    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, Iterable) else (padding,) * (2 * self._dims)

    def forward(self, input: Tensor) -> Tensor:
        """Call pad."""
        return F.pad(input, self.padding, self._mode)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    """Pads with one value."""

    _mode = "constant"

    @in_each
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Call pad."""
        return F.pad(input, self.padding, "constant", self.value)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The amounts and the value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads sequences with one value."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads images with one value."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads volumes with one value."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Pads sequences with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads images with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads volumes with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class _CircularPadNd(_Pad):
    """Pads with the other end."""

    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Call pad."""
        low = self._dims + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads sequences with their other end."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads images with their other side."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads volumes with their other side."""

    _dims = 3


class _ReflectionPadNd(_Pad):
    """Pads with their mirror image."""

    _mode = "reflect"

    def forward(self, input: Tensor) -> Tensor:
        """Call pad."""
        return super().forward(input)


class ReflectionPad1d(_ReflectionPadNd):
    """Pads sequences with their mirror image."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads images with their mirror image."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads volumes with their mirror image."""

    _dims = 3


class _ReplicationPadNd(_Pad):
    """Pads with their end elements."""

    _mode = "replicate"

    def forward(self, input: Tensor) -> Tensor:
        """Call pad."""
        return super().forward(input)


class ReplicationPad1d(_ReplicationPadNd):
    """Pads sequences with their end elements."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads images with their edges."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads volumes with their edges."""

    _dims = 3


named_as("padding", globals())
