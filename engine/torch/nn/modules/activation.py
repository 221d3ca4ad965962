"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor
from stridescope.engine.torch._in_each import in_each
from stridescope.engine.torch.nn import functional as F
from stridescope.engine.torch.nn import init
from stridescope.engine.torch.nn.functional._native import TORCH
from stridescope.engine.torch.nn.modules._factory import named_as, parameter
from stridescope.engine.torch.nn.modules._function import _AppliedToOne
from stridescope.engine.torch.nn.modules.module import Module
from stridescope.engine.warn import warn


class _InPlace(_AppliedToOne):
    """A function that may write its result over its input."""

    _passed = ("inplace",)

    @in_each
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _InPlaceByName(_InPlace):
    """The same, told by keyword: so graphs show it."""

    @in_each
    def forward(self, input: Any) -> Any:
        """Call the function."""
        return type(self)._function(input, inplace=self.inplace)


class ReLU(_InPlaceByName):
    """Zero for negative elements."""

    _function = F.relu


class SELU(_InPlace):
    """elu with the numbers that keep mean and variance."""

    _function = F.selu


class Hardsigmoid(_InPlace):
    """A sigmoid of three straight lines."""

    _function = F.hardsigmoid

    def extra_repr(self) -> str:
        """PyTorch prints nothing here."""
        return ""


class Hardswish(_InPlace):
    """Each element times its hard sigmoid."""

    _function = F.hardswish

    def extra_repr(self) -> str:
        """PyTorch prints nothing here."""
        return ""


class SiLU(_InPlaceByName):
    """Each element times its sigmoid."""

    _function = F.silu


class Mish(_InPlaceByName):
    """Each element times the tanh of its softplus."""

    _function = F.mish


class Sigmoid(_AppliedToOne):
    """The logistic function."""

    _function = TORCH["sigmoid"]


class Tanh(_AppliedToOne):
    """The hyperbolic tangent."""

    _function = TORCH["tanh"]


class LogSigmoid(_AppliedToOne):
    """The logarithm of the sigmoid."""

    _function = F.logsigmoid


class Softsign(_AppliedToOne):
    """``x / (1 + |x|)``."""

    _function = F.softsign


class Tanhshrink(_AppliedToOne):
    """``x - tanh(x)``."""

    _function = F.tanhshrink


class ELU(_AppliedToOne):
    """The element where positive, else an exponential that levels off."""

    _function, _passed, _shown = F.elu, ("alpha", "inplace"), "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace


class CELU(_AppliedToOne):
    """elu with a continuous slope."""

    _function, _passed, _shown = F.celu, ("alpha", "inplace"), "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace


class GELU(_AppliedToOne):
    """Each element times the share of a normal distribution below it."""

    _shown = "approximate={approximate!r}"

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Call gelu."""
        return F.gelu(input, approximate=self.approximate)  # type: ignore[no-any-return]


class GLU(_AppliedToOne):
    """The first half of a dim, gated by the second."""

    _function, _passed, _shown = F.glu, ("dim",), "dim={dim}"

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim


class Hardshrink(_AppliedToOne):
    """Each element, and zero near zero."""

    _function, _passed, _shown = F.hardshrink, ("lambd",), "{lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Softshrink(_AppliedToOne):
    """Each element moved towards zero, and zero near it."""

    _function, _passed, _shown = F.softshrink, ("lambd",), "{lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Hardtanh(_AppliedToOne):
    """Each element, held between two bounds."""

    _function, _passed = F.hardtanh, ("min_val", "max_val", "inplace")
    _shown = "min_val={min_val}, max_val={max_val}"

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
        super().__init__()
        self.min_val, self.max_val, self.inplace = low, high, inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val must be larger than min_val, got max_val={high} and min_val={low}")


class ReLU6(Hardtanh):
    """Each element, held between 0 and 6."""

    _shown = ""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class LeakyReLU(_AppliedToOne):
    """A small share of negative elements."""

    _function, _passed, _shown = F.leaky_relu, ("negative_slope", "inplace"), "negative_slope={negative_slope}"

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace


class RReLU(_AppliedToOne):
    """Leaky relu with a slope drawn anew for every element while training."""

    _function, _passed = F.rrelu, ("lower", "upper", "training", "inplace")
    _shown = "lower={lower}, upper={upper}"

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace


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


class Threshold(_AppliedToOne):
    """Each element above a threshold, a value elsewhere."""

    _function, _passed = F.threshold, ("threshold", "value", "inplace")
    _shown = "threshold={threshold}, value={value}"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace


class Softplus(_AppliedToOne):
    """The smooth form of relu."""

    _function, _passed, _shown = F.softplus, ("beta", "threshold"), "beta={beta}, threshold={threshold}"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold


class _AlongDim(_AppliedToOne):
    """A function along a dim."""

    _passed, _shown = ("dim",), "dim={dim}"

    @in_each
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    @in_each
    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)


class Softmax(_AlongDim):
    """Exponentials along a dim as shares of their sum."""

    _function = F.softmax


class Softmin(_AlongDim):
    """softmax of the negated elements."""

    _function = F.softmin


class LogSoftmax(_AlongDim):
    """The logarithm of softmax."""

    _function = F.log_softmax


class Softmax2d(Module):
    """softmax over the channels of an image."""

    def forward(self, input: Tensor) -> Tensor:
        """Call softmax over dim -3."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)  # type: ignore[no-any-return]


named_as("activation", globals())
