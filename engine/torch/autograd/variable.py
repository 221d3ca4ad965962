"""``torch.autograd.variable``: the old name of a tensor that may require grad, and the engine's queue of callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stridescope.engine.autograd.task import running
from stridescope.engine.tensor import Tensor


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

    def __new__(cls, data: Any = None, requires_grad: bool = False) -> Any:
        """The tensor; an empty one when ``data`` is None."""
        if data is None:
            from stridescope.engine import torch

            data = torch.empty(0)  # type: ignore[misc]
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made: Any = data.detach()
        return made.requires_grad_() if requires_grad else made


Variable.__module__ = VariableMeta.__module__ = "torch.autograd.variable"

__all__ = ["Variable", "VariableMeta"]
