"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn import init
from stridescope.engine.torch.nn.modules._factory import named_as, parameter
from stridescope.engine.torch.nn.modules._function import Applied
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.warn import warn


class _InPlace(Applied):
    """A function that may write its result over its input."""

    passed = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)


class _Plain(Applied):
    """A function without arguments."""

    def __init__(self) -> None:
        super().__init__()


class ReLU(_InPlace):
    """Zero for negative elements."""

    function = F.relu


class SELU(_InPlace):
    """elu with the numbers that keep mean and variance."""

    function = F.selu


class Hardsigmoid(_InPlace):
    """A sigmoid of three straight lines."""

    function = F.hardsigmoid

    def extra_repr(self) -> str:
        """PyTorch prints nothing here."""
        return ""


class Hardswish(_InPlace):
    """Each element times its hard sigmoid."""

    function = F.hardswish

    def extra_repr(self) -> str:
        """PyTorch prints nothing here."""
        return ""


class SiLU(_InPlace):
    """Each element times its sigmoid."""

    function = F.silu


class Mish(_InPlace):
    """Each element times the tanh of its softplus."""

    function = F.mish


class Sigmoid(_Plain):
    """The logistic function."""

    function = F.sigmoid


class Tanh(_Plain):
    """The hyperbolic tangent."""

    function = F.tanh


class LogSigmoid(_Plain):
    """The logarithm of the sigmoid."""

    function = F.logsigmoid


class Softsign(_Plain):
    """``x / (1 + |x|)``."""

    function = F.softsign


class Tanhshrink(_Plain):
    """``x - tanh(x)``."""

    function = F.tanhshrink


class ELU(Applied):
    """The element where positive, else an exponential that levels off."""

    function, passed, shown = F.elu, ("alpha", "inplace"), "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha, inplace=inplace)


class CELU(Applied):
    """elu with a continuous slope."""

    function, passed, shown = F.celu, ("alpha", "inplace"), "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha, inplace=inplace)


class GELU(Applied):
    """Each element times the share of a normal distribution below it."""

    shown = "approximate={approximate!r}"

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate=approximate)

    def forward(self, input: Tensor) -> Tensor:
        """Call gelu."""
        return F.gelu(input, approximate=self.approximate)  # type: ignore[no-any-return]


class GLU(Applied):
    """The first half of a dim, gated by the second."""

    function, passed, shown = F.glu, ("dim",), "dim={dim}"

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Hardshrink(Applied):
    """Each element, and zero near zero."""

    function, passed, shown = F.hardshrink, ("lambd",), "{lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Softshrink(Applied):
    """Each element moved towards zero, and zero near it."""

    function, passed, shown = F.softshrink, ("lambd",), "{lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Hardtanh(Applied):
    """Each element, held between two bounds."""

    function, passed = F.hardtanh, ("min_val", "max_val", "inplace")
    shown = "min_val={min_val}, max_val={max_val}"

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        for old, new in (("min_value", min_value), ("max_value", max_value)):
            if new is not None:
                warn(f"keyword argument `{old}` is deprecated and rename to `{old[:7]}`", FutureWarning)
        low, high = min_val if min_value is None else min_value, max_val if max_value is None else max_value
        super().__init__(min_val=low, max_val=high, inplace=inplace)
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val must be larger than min_val, got max_val={high} and min_val={low}")


class ReLU6(Hardtanh):
    """Each element, held between 0 and 6."""

    shown = ""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class LeakyReLU(Applied):
    """A small share of negative elements."""

    function, passed, shown = F.leaky_relu, ("negative_slope", "inplace"), "negative_slope={negative_slope}"

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(negative_slope=negative_slope, inplace=inplace)


class RReLU(Applied):
    """Leaky relu with a slope drawn anew for every element while training."""

    function, passed = F.rrelu, ("lower", "upper", "training", "inplace")
    shown = "lower={lower}, upper={upper}"

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(lower=lower, upper=upper, inplace=inplace)


class PReLU(Module):
    """Leaky relu whose slope is learned."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = parameter((num_parameters,), device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start at ``init``."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Call prelu."""
        return F.prelu(input, self.weight)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


class Threshold(Applied):
    """Each element above a threshold, a value elsewhere."""

    function, passed = F.threshold, ("threshold", "value", "inplace")
    shown = "threshold={threshold}, value={value}"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold=threshold, value=value, inplace=inplace)


class Softplus(Applied):
    """The smooth form of relu."""

    function, passed, shown = F.softplus, ("beta", "threshold"), "beta={beta}, threshold={threshold}"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


class _AlongDim(Applied):
    """A function along a dim."""

    passed, shown = ("dim",), "dim={dim}"

    def __init__(self, dim: int | None = None) -> None:
        super().__init__(dim=dim)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)


class Softmax(_AlongDim):
    """Exponentials along a dim as shares of their sum."""

    function = F.softmax


class Softmin(_AlongDim):
    """softmax of the negated elements."""

    function = F.softmin


class LogSoftmax(_AlongDim):
    """The logarithm of softmax."""

    function = F.log_softmax


class Softmax2d(Module):
    """softmax over the channels of an image."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Call softmax over dim -3."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)  # type: ignore[no-any-return]


named_as("activation", globals())
