"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from stridescope.engine.ops import FUNCTIONS
from stridescope.engine.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters in one vector."""
    return FUNCTIONS["torch"]["cat"]([p.view(-1) for p in parameters])  # type: ignore[no-any-return]


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give each parameter its part of the vector; they are views of it from then on."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    at = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[at : at + count].view_as(parameter).data  # type: ignore[attr-defined]
        at += count
