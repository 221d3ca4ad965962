"""Activation functions, softmax and dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.dtype import dtype as dtype_
from stridescope.engine.layout import contiguous_format
from stridescope.engine.tensor import Tensor
from stridescope.engine.torch.nn.functional._native import NATIVE, TORCH
from stridescope.engine.warn import warn

gelu, softplus, softshrink, logsigmoid = (NATIVE[n] for n in ("gelu", "softplus", "softshrink", "log_sigmoid"))
hardshrink, prelu, relu_, celu_, selu_, threshold_ = (
    TORCH[n] for n in ("hardshrink", "prelu", "relu_", "celu_", "selu_", "threshold_")
)
elu_, hardtanh_, leaky_relu_ = NATIVE["elu_"], NATIVE["hardtanh_"], NATIVE["leaky_relu_"]


def _either(name: str, inplace: bool, *args: Any) -> Any:
    """The op of that name, or its in-place form."""
    space = TORCH if name in TORCH else NATIVE
    return space[f"{name}_" if inplace else name](*args)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Zero for negative elements."""
    return TORCH["relu_"](input) if inplace else TORCH["relu"](input)  # type: ignore[no-any-return]


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element, held between 0 and 6."""
    return _either("relu6", inplace, input)  # type: ignore[no-any-return]


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The element where positive, else ``alpha * (exp(x) - 1)``."""
    return _either("elu", inplace, input, alpha)  # type: ignore[no-any-return]


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu with the numbers that keep mean and variance."""
    return _either("selu", inplace, input)  # type: ignore[no-any-return]


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """elu with a continuous slope."""
    return _either("celu", inplace, input, alpha)  # type: ignore[no-any-return]


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """A small share of negative elements."""
    return _either("leaky_relu", inplace, input, negative_slope)  # type: ignore[no-any-return]


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, held between two bounds."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _either("hardtanh", inplace, input, min_val, max_val)  # type: ignore[no-any-return]


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """A sigmoid of three straight lines."""
    return _either("hardsigmoid", inplace, input)  # type: ignore[no-any-return]


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its hard sigmoid."""
    return _either("hardswish", inplace, input)  # type: ignore[no-any-return]


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times its sigmoid."""
    return _either("silu", inplace, input)  # type: ignore[no-any-return]


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element times the tanh of its softplus."""
    return _either("mish", inplace, input)  # type: ignore[no-any-return]


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Each element above the threshold, ``value`` elsewhere."""
    return _either("threshold", inplace, input, threshold, value)  # type: ignore[no-any-return]


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky relu with a slope drawn anew for every element while training."""
    return _either("rrelu", inplace, input, lower, upper, training)  # type: ignore[no-any-return]


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of a dim, gated by the sigmoid of the second."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return NATIVE["glu"](input, dim)  # type: ignore[no-any-return]


def tanh(input: Tensor) -> Tensor:
    """``input.tanh()``."""
    return input.tanh()  # type: ignore[no-any-return]


def sigmoid(input: Tensor) -> Tensor:
    """``input.sigmoid()``."""
    return input.sigmoid()  # type: ignore[no-any-return]


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return input / (input.abs() + 1)  # type: ignore[no-any-return]


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return input - input.tanh()  # type: ignore[no-any-return]


# ---- softmax -----------------------------------------------------------------------------------------------------


def _dim_of(name: str, ndim: int) -> int:
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


def _along(method: str, name: str, input: Tensor, dim: int | None, dtype: dtype_ | None) -> Any:
    dim = _dim_of(name, input.dim()) if dim is None else dim
    function: Callable[..., Any] = getattr(input, method)
    return function(dim) if dtype is None else function(dim, dtype=dtype)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype_ | None = None) -> Tensor:
    """Exponentials along a dim as shares of their sum."""
    return _along("softmax", "softmax", input, dim, dtype)  # type: ignore[no-any-return]


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype_ | None = None) -> Tensor:
    """softmax of the negated elements."""
    dim = _dim_of("softmin", input.dim()) if dim is None else dim
    return _along("softmax", "softmin", -input, dim, dtype)  # type: ignore[no-any-return]


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype_ | None = None) -> Tensor:
    """The logarithm of softmax, computed without overflow."""
    return _along("log_softmax", "log_softmax", input, dim, dtype)  # type: ignore[no-any-return]


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-Softmax distribution; ``hard`` gives a one-hot value with the soft gradient."""
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    noise = -TORCH["empty_like"](logits, memory_format=contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft  # type: ignore[no-any-return]
    index = soft.max(dim, keepdim=True)[1]
    picked = TORCH["zeros_like"](logits).scatter_(dim, index, 1.0)
    return picked - soft.detach() + soft  # type: ignore[no-any-return]


# ---- dropout -----------------------------------------------------------------------------------------------------


def _dropped(name: str, input: Tensor, p: float, training: bool, inplace: bool) -> Any:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return TORCH[f"{name}_" if inplace else name](input, p, training)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Elements become 0 with probability ``p``, the rest is scaled up."""
    return _dropped("dropout", input, p, training, inplace)  # type: ignore[no-any-return]


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of SELU activations."""
    return _dropped("alpha_dropout", input, p, training, inplace)  # type: ignore[no-any-return]


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """``alpha_dropout`` of whole channels."""
    return _dropped("feature_alpha_dropout", input, p, training, inplace)  # type: ignore[no-any-return]


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (batch, channels, length)."""
    dims = input.dim()
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if dims not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {dims}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return _by_channel(input, dims == 3, p, training, inplace)  # type: ignore[no-any-return]


def _by_channel(input: Tensor, batched: bool, p: float, training: bool, inplace: bool) -> Any:
    if not batched:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _dropped("feature_dropout", input, p, training, inplace)
    return result if batched else result.squeeze_(0) if inplace else result.squeeze(0)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (batch, channels, height, width)."""
    dims = input.dim()
    if dims not in (3, 4):
        warn(
            f"dropout2d: Received a {dims}-D input to dropout2d, which is deprecated and will result in an error in a "
            "future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
            "dropout2d exists to provide channel-wise dropout on inputs with 2 spatial dimensions, a channel "
            "dimension, "
            "and an optional batch dimension (i.e. 3D or 4D inputs)."
        )
    if dims == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _dropped("feature_dropout", input, p, training, inplace)  # type: ignore[no-any-return]


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (batch, channels, depth, height, width)."""
    dims = input.dim()
    if dims not in (4, 5):
        warn(
            f"dropout3d: Received a {dims}-D input to dropout3d, which is deprecated and will result in an error in a "
            "future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
            "dropout3d exists to provide channel-wise dropout on inputs with 3 spatial dimensions, a channel "
            "dimension, "
            "and an optional batch dimension (i.e. 4D or 5D inputs)."
        )
    return _by_channel(input, dims == 5, p, training, inplace)  # type: ignore[no-any-return]
