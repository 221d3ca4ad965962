"""``torch.autograd.variable``: the old name of a tensor that may require grad, and the engine's queue of callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.task import running
from stridescope.engine.tensor import Tensor
from stridescope.engine.warn import warn


class ExecutionEngine:
    """What hooks reach as ``Variable._execution_engine``."""

    @staticmethod
    def queue_callback(callback: Callable[[], None]) -> None:
        """Call ``callback`` when the backward pass that runs now is over; raises RuntimeError when none runs."""
        if running.task is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        running.task.callbacks.append(callback)


class VariableMeta(type):
    """Every tensor counts as a Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """``Variable(data, requires_grad=False)`` gives a tensor over the same storage, without history."""

    _execution_engine = ExecutionEngine()

    def __new__(
        cls, data: Any = None, requires_grad: bool = False, volatile: bool = False, name: str | None = None,
        **unknown: Any,
    ) -> Any:  # fmt: skip
        """The tensor; an empty one when ``data`` is None. ``volatile`` only warns, ``name`` does nothing any more."""
        if unknown:
            raise TypeError(f"'{next(iter(unknown))}' is an invalid keyword argument for this function")
        if volatile:
            warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
            if requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if data is None:
            from stridescope.engine import torch

            data = torch.empty(0)  # type: ignore[misc]
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made: Any = data.detach()
        if requires_grad and not (made.is_floating_point() or made.is_complex()):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        return made.requires_grad_() if requires_grad else made


Variable.__module__ = VariableMeta.__module__ = "torch.autograd.variable"

__all__ = ["Variable", "VariableMeta"]
