"""``torch.autograd.function``."""

from __future__ import annotations

from stridescope.engine.autograd.function import (
    BackwardCFunction,
    Function,
    FunctionCtx,
    FunctionMeta,
    InplaceFunction,
    NestedIOFunction,
    once_differentiable,
)

_ContextMethodMixin = FunctionCtx  # its older name

__all__ = [
    "FunctionCtx", "BackwardCFunction", "FunctionMeta", "Function", "once_differentiable", "InplaceFunction",
    "NestedIOFunction",
]  # fmt: skip
