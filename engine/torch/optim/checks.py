"""What optimizers ask of their options, with PyTorch's words for what is wrong."""

from __future__ import annotations

from typing import Any

from stridescope.engine.tensor import Tensor


def require(holds: Any, complaint: str) -> None:
    """Raise ValueError with ``complaint`` unless ``holds``."""
    if not holds:
        raise ValueError(complaint)


def not_negative(**values: Any) -> None:
    """Raise ValueError for the first value below zero; ``_`` in a name stands for itself, as in PyTorch's texts."""
    for name, value in values.items():
        require(value >= 0.0, f"Invalid {_SPOKEN.get(name, name + ' value')}: {value}")


_SPOKEN = {"lr": "learning rate", "eps": "epsilon value"}


def one_element(lr: Any) -> None:
    """Raise ValueError for a learning rate that is a tensor of several numbers."""
    require(not isinstance(lr, Tensor) or lr.numel() == 1, "Tensor lr must be 1-element")


def learning_rate(lr: Any) -> None:
    """Raise ValueError for a learning rate below zero or of several numbers."""
    one_element(lr)
    not_negative(lr=lr)


def decay_rates(betas: Any) -> None:
    """Raise ValueError unless both betas lie in [0, 1)."""
    for index in (0, 1):
        require(0.0 <= betas[index] < 1.0, f"Invalid beta parameter at index {index}: {betas[index]}")


def fused_alone(fused: Any, foreach: Any, differentiable: bool) -> None:
    """Raise RuntimeError when ``fused`` is combined with what it excludes."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def scalar(value: Any) -> Any:
    """A tensor of one number without dims; anything else as it is."""
    return value.squeeze() if isinstance(value, Tensor) and value.dim() != 0 else value
