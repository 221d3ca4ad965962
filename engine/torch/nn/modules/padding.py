"""Padding layers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn.modules._factory import named_as
from stridescope.engine.torch.nn.modules.module import Module


class _Pad(Module):
    """Pads the last ``dims`` dims in a mode."""

    dims: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, Iterable) else (padding,) * (2 * self.dims)

    def forward(self, input: Tensor) -> Tensor:
        """Call pad."""
        return F.pad(input, self.padding, self.mode)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The amounts."""
        return f"{self.padding}"


class _Constant(_Pad):
    """Pads with one value."""

    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Call pad."""
        return F.pad(input, self.padding, "constant", self.value)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The amounts and the value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_Constant):
    """Pads sequences with one value."""

    dims = 1


class ConstantPad2d(_Constant):
    """Pads images with one value."""

    dims = 2


class ConstantPad3d(_Constant):
    """Pads volumes with one value."""

    dims = 3


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


class _Circular(_Pad):
    """Pads with the other end."""

    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Call pad."""
        low = self.dims + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_Circular):
    """Pads sequences with their other end."""

    dims = 1


class CircularPad2d(_Circular):
    """Pads images with their other side."""

    dims = 2


class CircularPad3d(_Circular):
    """Pads volumes with their other side."""

    dims = 3


class ReflectionPad1d(_Pad):
    """Pads sequences with their mirror image."""

    dims, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Pads images with their mirror image."""

    dims, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Pads volumes with their mirror image."""

    dims, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Pads sequences with their end elements."""

    dims, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Pads images with their edges."""

    dims, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Pads volumes with their edges."""

    dims, mode = 3, "replicate"


named_as("padding", globals())
