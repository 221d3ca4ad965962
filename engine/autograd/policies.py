"""Switches of autograd for special needs: the layout of gradients, and writes that nobody is to notice."""

from __future__ import annotations

from typing import Any

from stridescope.engine.autograd.modes import ModeContext, grad_mode
from stridescope.engine.tensor import Tensor


class enforce_grad_layout_policy(ModeContext):  # noqa: N801
    """Whether the first gradient of a leaf has to have the leaf's layout; off, it is taken as it arrives.

    As a function it holds from now on, as a context or decorator until the end.
    """

    def __init__(self, enable: bool = True) -> None:
        self.prev, self.mode = grad_mode.layout, enable
        grad_mode.layout = enable

    def __enter__(self) -> None:
        """Nothing more: the switch was made when the context was."""

    def __exit__(self, *exc: object) -> None:
        grad_mode.layout = self.prev

    def clone(self) -> enforce_grad_layout_policy:
        """A context with the same setting."""
        return type(self)(self.mode)


class _unsafe_preserve_version_counter(ModeContext):  # noqa: N801
    """Writes into these tensors inside the block are not counted, so that autograd does not see them."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tensors
        if not isinstance(self.tensors, tuple):
            raise AssertionError("Expected tensors to be a tuple")
        self.prev_versions = tuple(tensor.version_counter.value for tensor in self.tensors)

    def __enter__(self) -> None:
        """Nothing: the versions were read when the context was made."""

    def __exit__(self, *exc: object) -> None:
        for tensor, version in zip(self.tensors, self.prev_versions, strict=True):
            tensor.version_counter.value = version


for _class in (enforce_grad_layout_policy, _unsafe_preserve_version_counter):
    _class.__module__ = "torch.autograd.grad_mode"
