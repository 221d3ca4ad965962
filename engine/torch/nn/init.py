"""``torch.nn.init``: filling parameters, with PyTorch's numbers from the same seed."""

from __future__ import annotations

import math
from typing import Any

from stridescope.engine.autograd.modes import grad_mode, no_grad
from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.ops.lookup import where
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import warn

_GAINS: dict[str, float] = {"linear": 1, "sigmoid": 1, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4} | {
    f"conv{mark}{dims}d": 1 for mark in ("", "_transpose") for dims in (1, 2, 3)
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much the weights before a nonlinearity are scaled up."""
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _quietly(method: str, tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    before, grad_mode.enabled = grad_mode.enabled, False
    try:
        return getattr(tensor, method)(*args, **kwargs)  # type: ignore[no-any-return]
    finally:
        grad_mode.enabled = before


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers in [a, b)."""
    return _quietly("uniform_", tensor, a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal numbers."""
    return _quietly("normal_", tensor, mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    return _quietly("fill_", tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return _quietly("fill_", tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return _quietly("zero_", tensor)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.copy_(FUNCTIONS["torch"]["eye"](*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Weights of a convolution that passes its input on."""
    dims = tensor.ndimension()
    if dims not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    middle = tuple(s // 2 for s in sizes[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(per_group, sizes[1])):
                tensor[(group * per_group + d, d, *middle)] = 1
    return tensor


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Normal numbers, drawn from the part of the distribution between a and b."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )
    if tensor.is_meta:
        return tensor
    low, high = (0.5 * (1 + math.erf((x - mean) / std / math.sqrt(2.0))) for x in (a, b))
    with no_grad():
        if high - low > _USUAL:
            return _redrawn(tensor, mean, std, a, b, generator)
        return _accepted(tensor, mean, std, a, b, generator)


_USUAL = 0.3  # so much of the distribution must lie between the bounds for its own numbers to be drawn until they fit


def _redrawn(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """Normal numbers; those outside of the bounds are drawn again, all of them each time."""
    low, high = (tensor.new_tensor(bound, device="cpu").item() for bound in (a, b))
    result = tensor.normal_(mean, std, generator=generator)
    while (outside := (result < low) | (result > high)).any():
        result = where(outside, result.new_empty(result.shape).normal_(mean, std, generator=generator), result)
    return tensor if result is tensor else tensor.copy_(result)  # type: ignore[no-any-return]


def _accepted(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """Uniform numbers, each kept with the density's probability: for bounds far out in a tail."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    result: Any = tensor.uniform_(a, b, generator=generator)
    drawn, pending = result.clone(), None
    while True:
        density = drawn.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        refused = drawn.new_empty(drawn.shape).uniform_(generator=generator).log_().gt(density)
        pending = refused if pending is None else where(pending, refused, pending)
        if not pending.any():
            return tensor if result is tensor else tensor.copy_(result)  # type: ignore[no-any-return]
        drawn.uniform_(a, b, generator=generator)
        result = where(pending, drawn, result)


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot's uniform numbers."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot's normal numbers."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """He's uniform numbers."""
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """He's normal numbers."""
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A matrix whose rows or columns are orthogonal."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, cols = tensor.size(0), tensor.numel() // tensor.size(0)
    with no_grad():
        flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        if rows < cols:
            flat.t_()
        q, r = FUNCTIONS["torch.linalg"]["qr"](flat)
        q *= r.diag().sign()
        if rows < cols:
            q.t_()
        tensor.view_as(q).copy_(q)
        return tensor.mul_(gain)  # type: ignore[no-any-return]


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal numbers with a share of zeros in every column."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(cols):
            chosen = FUNCTIONS["torch"]["randperm"](rows)[:zeros]
            tensor[chosen, column] = 0
    return tensor


def _deprecated(name: str) -> Any:
    new = globals()[f"{name}_"]

    def old(*args: Any, **kwargs: Any) -> Any:
        warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning)
        return new(*args, **kwargs)

    old.__name__ = name
    old.__doc__ = f"The old name of ``{name}_``."
    return old


for _name in (
    "uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform",
    "kaiming_normal", "orthogonal", "sparse",
):  # fmt: skip
    globals()[_name] = _deprecated(_name)
